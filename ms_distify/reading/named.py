"""What names are bound to: assignments, imports, parameters, module-level names of other files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ..mindspore import names
from .bindings import Binding, literal
from .origin import At, Origin
from .script import Script

if TYPE_CHECKING:
    from .flow import Flow


def name(flow: Flow, node: cst.Name, at: At) -> Iterator[Origin]:
    """Go on at what a name is bound to."""
    bindings = at.script.bindings.lookup(node)
    if not bindings:
        if literal(node) is not ...:
            yield at.origin("literal", node)
            return
        for home, found in flow.project.star_names(at.script, node.value):
            for binding in found:
                yield from bound(flow, binding, replace(at, script=home), node)
            return
        yield at.origin("external", node, node.value)
        return
    feasible = [b for b in bindings if flow.possible(at.script, b.node, at.calls)]
    for binding in feasible or bindings:
        yield from bound(flow, binding, at, node)


def bound(flow: Flow, binding: Binding, at: At, use: cst.CSTNode) -> Iterator[Origin]:
    """Go on at what a binding binds."""
    node = binding.node
    if binding.kind == "import":
        yield from _import(flow, binding, at)
    elif binding.kind in ("function", "class"):
        yield at.origin(binding.kind, node)
    elif binding.kind == "parameter" and isinstance(node, cst.Param):
        yield from flow.parameter(binding.scope, node, at)
    elif binding.kind == "augment" and isinstance(node, cst.AugAssign):
        yield from _augment(flow, node, binding, at)
    elif binding.value is not None and binding.kind in ("assign", "for", "with"):
        path = tuple(step for step in binding.path if step[0] != "enter")
        # A `for` over `range(...)` or the like ends in an unknown, which is right.
        yield from flow.walk(binding.value, at.taking(*path, *at.selectors))
    else:
        yield at.origin("unknown", node, reason=f"bound by {binding.kind}")


def _augment(flow: Flow, node: cst.AugAssign, binding: Binding, at: At) -> Iterator[Origin]:
    """``x += y``: what x was before, and y."""
    if not isinstance(node.operator, cst.AddAssign):
        yield at.origin("unknown", node, reason="a computed value")
        return
    # Several `x += ...` in a loop reach each other: gather them all before going on.
    pending, gathered = [node], [node]
    while pending:
        current = pending.pop()
        joined = at.through(current)
        yield from flow.walk(current.value, joined)
        for earlier in at.script.bindings.reaching(current, binding.scope, binding.name):
            if not isinstance(earlier.node, cst.AugAssign):
                yield from bound(flow, earlier, joined, current)
            elif earlier.node not in gathered:
                gathered.append(earlier.node)
                pending.append(earlier.node)


def _import(flow: Flow, binding: Binding, at: At) -> Iterator[Origin]:
    qualified = binding.qualified or ""
    found = flow.project.resolve(at.script, binding)
    if found is None:
        yield at.origin("external", binding.node, names.canonical(qualified))
        return
    home, attribute = found
    if attribute is None:
        yield replace(at, script=home).origin("module", home.tree.module, qualified)
    elif binding in flow.importing:
        # Two files that take a name from each other: the other ways to it say where it comes from.
        flow.cut()
    else:
        flow.importing.add(binding)
        try:
            yield from list(member(flow, home, attribute, at, binding.node))
        finally:
            flow.importing.discard(binding)


def member(flow: Flow, home: Script, attribute: str, at: At, node: cst.CSTNode) -> Iterator[Origin]:
    """Go on at a module-level name of another file."""
    bindings = home.bindings.global_bindings(attribute)
    if not bindings:
        for script, found in flow.project.star_names(home, attribute):
            home, bindings = script, found
    for binding in bindings:
        yield from bound(flow, binding, replace(at, script=home), node)
    if not bindings:
        yield at.origin("unknown", node, reason=f"{attribute} is not found in {home.path}")
