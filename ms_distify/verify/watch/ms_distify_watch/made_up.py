"""Gives datasets whose files are not there made-up ones (``--fake-data``)."""

from __future__ import annotations

import functools
import inspect
import os
from types import ModuleType
from typing import Any

import fake_data_files

from .after import Actions
from .log import Log


def install(config: dict[str, Any], log: Log, actions: Actions) -> None:
    """Watch the constructors of datasets, where the configuration names a folder for made-up data."""
    folder = config["made_up"]
    if folder:
        actions.after("mindspore.dataset", lambda module: _wrap_all(module, folder, log))


def _wrap_all(module: ModuleType, folder: str, log: Log) -> None:
    for kind, parameter in fake_data_files.PATHS.items():
        cls = getattr(module, kind, None)
        if isinstance(cls, type):
            _wrap(cls, kind, parameter, folder, log)


def _wrap(cls: Any, kind: str, parameter: str, folder: str, log: Log) -> None:
    original = cls.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind_partial(self, *args, **kwargs)
        given = bound.arguments.get(parameter)
        paths = list(given) if isinstance(given, (list, tuple)) else [given]
        if given is not None and paths and not any(os.path.exists(str(path)) for path in paths):
            arguments = {name: value for name, value in bound.arguments.items() if name not in ("self", parameter)}
            made = [_place(folder, str(path)) for path in paths]
            for path in made:
                fake_data_files.fake_for(kind, path, {**arguments, parameter: made}, scratch=folder)
            log.write("changed", what=f"{kind} reads made-up data in the place of {_inside(str(paths[0]))}")
            bound.arguments[parameter] = made if isinstance(given, (list, tuple)) else made[0]
        original(*bound.args, **bound.kwargs)

    cls.__init__ = __init__


def _inside(path: str) -> str:
    """Return a path as it is for all runs, whose working folders differ."""
    return os.path.relpath(path) if os.path.isabs(path) and path.startswith(os.getcwd()) else path


def _place(folder: str, path: str) -> str:
    """Return where the made-up files for a path lie: the same for all runs, whose working folders differ."""
    parts = [part for part in _inside(path).split(os.sep) if part not in ("", ".")]
    return os.path.join(folder, *("up" if part == ".." else part for part in parts))
