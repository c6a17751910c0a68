"""Calls functions when modules of MindSpore have been imported."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from .log import Log


class Actions:
    """What to do after the import of which module."""

    def __init__(self) -> None:
        self.by_module: dict[str, list[Callable[[ModuleType], None]]] = {}

    def after(self, module: str, action: Callable[[ModuleType], None]) -> None:
        """Call a function with a module as soon as it has been imported."""
        self.by_module.setdefault(module, []).append(action)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, actions: Actions, log: Log) -> None:
        self.actions, self.log = actions, log

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        actions = self.actions.by_module.pop(fullname, None)
        if actions is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is None or spec.loader is None:
            return None
        loader: Any = spec.loader
        original = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            if fullname == "mindspore":
                # Subprocesses of the program have this environment too, and are not it.
                self.log.open()
            original(module)
            for action in actions:
                try:
                    action(module)
                except (AttributeError, KeyError) as error:
                    self.log.write("unwatched", module=fullname, why=str(error))

        loader.exec_module = exec_module
        return spec


def install(actions: Actions, log: Log) -> None:
    """Begin to watch imports."""
    actions.by_module.setdefault("mindspore", [])
    sys.meta_path.insert(0, _Finder(actions, log))
