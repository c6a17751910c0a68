"""How inserted code names things: with the user's own aliases where there are some, else with new imports."""

from __future__ import annotations

import libcst as cst

from ..mindspore import names
from ..model import Need
from ..reading.bindings import Binding, Scope
from ..reading.script import Script

# Things that `mindspore.context` offers as well as `mindspore`.
_IN_CONTEXT = frozenset({names.SET_PARALLEL, names.RESET_PARALLEL, names.PARALLEL_MODE})


class Speller:
    """Spells library names for one file.

    New names are chosen once per file, so that every rule uses the same; they never equal a name of the file.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self._chosen: dict[str, list[str]] = {}
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
                prefixes = [names.CONTEXT, module] if self._prefers_context() else [module, names.CONTEXT]
            for prefix in prefixes:
                alias = self._bound(prefix, place)
                if alias is not None:
                    return f"{alias}.{attribute}", ()
        local = self._new(qualified, attribute, place)
        return local, (Need(module or qualified, attribute if module else "", local),)

    def _new(self, qualified: str, attribute: str, place: cst.CSTNode) -> str:
        """Return the name under which a new import at the head of the file gives something."""
        scope = self.script.bindings.scope_of(place)
        chosen = self._chosen.setdefault(qualified, [])
        for local in chosen:
            if not _shadowed(local, scope):
                return local
        last = attribute or qualified
        if last in self._taken and self._always(last, qualified) and not _shadowed(last, scope):
            local = last  # the file imports the same thing under this name, only not where it can be used
        else:
            local = self.fresh(last, f"ms_{last}" if "." in qualified else f"{last}_module")
        chosen.append(local)
        return local

    def _always(self, name: str, qualified: str) -> bool:
        """Whether a name means one imported thing wherever the file binds it."""
        found = [b for scope in self.script.bindings.scopes.values() for b in scope.bindings.get(name, [])]
        return bool(found) and all(_is(binding, qualified) for binding in found)

    def _prefers_context(self) -> bool:
        return any(
            binding.qualified == names.CONTEXT
            for bindings in self.script.bindings.module.bindings.values()
            for binding in bindings
        )

    def _bound(self, qualified: str, place: cst.CSTNode) -> str | None:
        """Return the file's own name for something, where it is safe to use at a place."""
        home = scope = self.script.bindings.scope_of(place)
        current: Scope | None = scope
        while current is not None:
            if current is home or current.kind != "class":
                for name, every in current.bindings.items():
                    same = all(_is(binding, qualified) for binding in every)
                    if not same or _shadowed(name, scope, current):
                        continue
                    if any(self._before(binding, place, current) for binding in every):
                        return name
            current = current.parent
        return None

    def _before(self, binding: Binding, place: cst.CSTNode, scope: Scope) -> bool:
        """Whether an import is surely done when a place is reached."""
        tree = self.script.tree
        here = self.script.bindings.scope_of(place)
        later = here is not scope and here.function() not in (
            None,
            scope,
        )  # in a function that is called later
        if not later and binding.at > tree.start(place):
            return False
        block = tree.parent.get(tree.parent[binding.node])
        # `try: import x` without another binding of the name: who goes on without x could not use it either.
        while block is not None and isinstance(tree.parent.get(block), (cst.Try, cst.TryStar)):
            attempt = tree.parent[block]
            if block is not getattr(attempt, "body", None):
                return False
            block = tree.parent.get(attempt)
        if later:
            return block is scope.node or block is getattr(scope.node, "body", None)
        return block is not None and any(parent is block for parent in tree.ancestors(place))


def _is(binding: Binding, qualified: str) -> bool:
    return binding.kind == "import" and names.canonical(binding.qualified or "") == names.canonical(qualified)


def _shadowed(name: str, scope: Scope, home: Scope | None = None) -> bool:
    """Whether a scope around a place binds a name anew, inside the scope it lives in (the module)."""
    current: Scope | None = scope
    while current is not None and current is not home and current.parent is not None:
        if name in current.bindings:
            return True
        current = current.parent
    return False
