"""How inserted code names things: with the user's own aliases where they have them, else with a new import."""

from __future__ import annotations

import libcst as cst

from ..mindspore import names
from ..model import Need
from ..reading.bindings import Scope
from ..reading.script import Script

# Things that `mindspore.context` offers as well as `mindspore`.
_IN_CONTEXT = frozenset({names.SET_PARALLEL, names.RESET_PARALLEL, names.PARALLEL_MODE})


class Speller:
    """Spells library names for one file.

    New names are chosen once per file, so that every rule uses the same; they never equal a name of the file.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self._chosen: dict[str, str] = {}
        self._taken = set(script.bindings.names)

    def fresh(self, *wanted: str) -> str:
        """Return the first of some names that the file does not use for anything, numbered if it uses all."""
        for name in wanted:
            if name not in self._taken:
                self._taken.add(name)
                return name
        number = 2
        while f"{wanted[-1]}_{number}" in self._taken:
            number += 1
        self._taken.add(f"{wanted[-1]}_{number}")
        return f"{wanted[-1]}_{number}"

    def spell(self, qualified: str, place: cst.CSTNode) -> tuple[str, tuple[Need, ...]]:
        """Return how a library name is written at a place, and the imports that takes.

        Args:
            qualified: the canonical name, e.g. "mindspore.communication.init" or "os".
            place: the node beside which the text will stand.
        """
        module, _, attribute = qualified.rpartition(".")
        own = self._bound(qualified, place)
        if own is not None:
            return own, ()
        if module:
            prefixes = [module]
            if qualified in _IN_CONTEXT:
                prefixes = ["mindspore.context", module] if self._prefers_context() else [module, "mindspore.context"]
            for prefix in prefixes:
                alias = self._bound(prefix, place)
                if alias is not None:
                    return f"{alias}.{attribute}", ()
        local = self._chosen.get(qualified)
        if local is None:
            last = attribute or qualified
            local = self._chosen[qualified] = self.fresh(last, f"ms_{last}" if module else f"{last}_module")
        return local, (Need(module or qualified, attribute if module else "", local),)

    def _prefers_context(self) -> bool:
        return any(
            binding.qualified in ("mindspore.context",)
            for bindings in self.script.bindings.module.bindings.values()
            for binding in bindings
        )

    def _bound(self, qualified: str, place: cst.CSTNode) -> str | None:
        """Return the file's own module-level name for something, where it is safe to use at a place."""
        bindings = self.script.bindings
        start = self.script.tree.start(place)
        scope = bindings.scope_of(place)
        for name, every in bindings.module.bindings.items():
            if len(every) != 1 or every[0].kind != "import" or every[0].qualified is None:
                continue
            binding = every[0]
            if names.canonical(binding.qualified or "") != qualified:
                continue
            if not self._unconditional(binding.node) or (scope.function() is None and binding.at > start):
                continue
            if not _shadowed(name, scope):
                return name
        return None

    def _unconditional(self, node: cst.CSTNode) -> bool:
        statement = self.script.tree.parent.get(node)
        return statement is not None and self.script.tree.parent.get(statement) is self.script.tree.module


def _shadowed(name: str, scope: Scope) -> bool:
    """Whether a function or class around a place binds a name of the module anew."""
    current: Scope | None = scope
    while current is not None and current.parent is not None:
        if name in current.bindings:
            return True
        current = current.parent
    return False
