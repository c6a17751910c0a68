"""Records in which order a program calls ``init`` and builds its first Cell, Tensor, dataset and optimizer."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from .after import Actions
from .log import Log, caller


def watch(log: Log, actions: Actions) -> None:
    """Record the first of each kind, and every call of ``init`` and reading of the rank."""
    seen: set[str] = set()

    def first(kind: str, what: str) -> None:
        if kind not in seen:
            place = caller()
            if place is not None:
                seen.add(kind)
                log.write("first", kind=kind, what=what, at=place)

    def at_init(cls: Any, kind: str) -> None:
        original = cls.__init__

        @functools.wraps(original)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            if kind not in seen:
                first(kind, type(self).__name__)
            original(self, *args, **kwargs)

        cls.__init__ = __init__

    def communication(module: ModuleType) -> None:
        for name in ("init", "get_rank", "get_group_size"):
            original = getattr(module, name)

            def call(*args: Any, _name: str = name, _original: Any = original, **kwargs: Any) -> Any:
                place = caller()
                result = _original(*args, **kwargs)
                if place is not None and (_name == "init" or _name not in seen):
                    seen.add(_name)
                    log.write("call", name=_name, at=place)
                return result

            setattr(module, name, functools.wraps(original)(call))

    actions.after("mindspore.communication.management", communication)
    actions.after("mindspore.nn.cell", lambda module: at_init(module.Cell, "Cell"))
    actions.after("mindspore.common.tensor", lambda module: at_init(module.Tensor, "Tensor"))
    actions.after("mindspore.common.parameter", lambda module: at_init(module.Parameter, "Parameter"))
    actions.after("mindspore.dataset.engine.datasets", lambda module: at_init(module.Dataset, "dataset"))
