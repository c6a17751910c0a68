"""Records in which order a program calls ``init`` and builds its first Cell, Tensor, dataset and optimizer."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from .after import Actions
from .log import Log, caller


def watch(log: Log, actions: Actions) -> None:
    """Record the first of each kind, and every call of ``init``."""
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
        original = module.init

        @functools.wraps(original)
        def init(*args: Any, **kwargs: Any) -> Any:
            place = caller()
            result = original(*args, **kwargs)
            if place is not None:
                log.write("init", at=place)
            return result

        module.init = init  # type: ignore[attr-defined]

    actions.after("mindspore.communication.management", communication)
    actions.after("mindspore.nn.cell", lambda module: at_init(module.Cell, "Cell"))
    actions.after("mindspore.common.tensor", lambda module: at_init(module.Tensor, "Tensor"))
    actions.after("mindspore.common.parameter", lambda module: at_init(module.Parameter, "Parameter"))
    actions.after("mindspore.dataset.engine.datasets", lambda module: at_init(module.Dataset, "dataset"))
