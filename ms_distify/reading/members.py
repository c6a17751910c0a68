"""What objects of the program give: their attributes, and what iterating over them yields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ..mindspore import names
from .calls import decorated
from .expressions import literal
from .named import bound, member
from .origin import At, Origin
from .script import Script

if TYPE_CHECKING:
    from .flow import Flow

OF_NOTHING = "of None"


def instance(flow: Flow, cls: Origin, at: At) -> Iterator[Origin]:
    """End in an instance of a class of the program, or go on at what iterating over it gives."""
    assert isinstance(cls.node, cst.ClassDef)
    inner = replace(at, script=cls.script)
    special = ("__iter__", "__next__", "__getitem__") if at.selectors else ()
    for name in special:
        found = flow.method(cls.script, cls.node, name)
        if found is None:
            continue
        home, function = found
        values = [(y.value, at.selectors[1:]) for y in home.bindings.yields.get(function, ())]
        if not values:
            values = [(v, at.selectors if name == "__iter__" else at.selectors[1:])
                      for v in home.bindings.returns.get(function, ())]  # fmt: skip
        values = [(v, s) for v, s in values if not (isinstance(v, cst.Name) and v.value == "self")]
        for value, selectors in values:
            if isinstance(value, cst.From):
                yield from flow.walk(value.item, replace(inner, script=home, selectors=at.selectors))
            elif value is not None:
                yield from flow.walk(value, replace(inner, script=home, selectors=selectors))
        if values:
            return
    yield inner.origin("instance", cls.node)


def attribute(flow: Flow, value: cst.BaseExpression, name: str, node: cst.CSTNode, at: At) -> Iterator[Origin]:
    """Go on at an attribute of what an expression gives."""
    for origin in flow.origins(at.script, value, at.calls):
        if origin.kind == "external":
            joined = names.canonical(f"{origin.qualified}.{name}")
            local = flow.project.module_attribute(at.script, joined)
            if local is not None:
                yield replace(at, script=local).origin("module", local.tree.module, joined)
            else:
                yield at.origin("external", node, joined)
        elif origin.kind == "module":
            yield from member(flow, origin.script, name, at, node)
        elif origin.kind in ("instance", "class") and isinstance(origin.node, cst.ClassDef):
            inner = replace(at, script=origin.script, calls=origin.calls)
            yield from _class_attribute(flow, origin, origin.node, name, inner, node)
        elif origin.kind == "call":
            yield at.origin("external", node, f"{origin.qualified}().{name}")
            yield from _put_on(flow, origin, name, at)
        elif origin.kind == "literal" and not origin.selectors and literal(origin.node) is None:
            yield at.origin("unknown", node, reason=f"attribute {name} {OF_NOTHING}")
        else:
            yield at.origin("unknown", node, reason=f"attribute {name} of something that cannot be followed")
            if isinstance(origin.node, cst.Call):
                yield from _put_on(flow, origin, name, at)


def _put_on(flow: Flow, holder: Origin, name: str, at: At) -> Iterator[Origin]:
    """Go on at what the program puts on an object that a library gave: ``args.rank = get_rank()``."""
    for script, target, value, path in flow.project.attribute_assignments(name):
        if any(origin.node is holder.node for origin in flow.origins(script, target.value)):
            yield from flow.walk(value, replace(at, script=script, selectors=(*path, *at.selectors)))


def _class_attribute(
    flow: Flow, origin: Origin, owner: cst.ClassDef, name: str, at: At, node: cst.CSTNode
) -> Iterator[Origin]:
    method = flow.method(origin.script, owner, name)
    if method is not None:
        home, function = method
        if decorated(function, "property") or decorated(function, "cached_property"):
            for value in home.bindings.returns.get(function, []):
                yield from flow.walk(value, replace(at, script=home))
            return
        yield replace(at, script=home).origin("function", function)
        return
    found = False
    family = list(flow.ancestry(origin.script, owner))
    for home, cls in family:
        for binding in home.bindings.scopes[cls].bindings.get(name, []):
            found = True
            yield from bound(flow, binding, replace(at, script=home), node)
    classes = [cls for _, cls in family]
    for script, target, value, path in flow.project.attribute_assignments(name):
        if _assigns_to(flow, script, target, classes):
            found = True
            yield from flow.walk(value, replace(at, script=script, selectors=(*path, *at.selectors)))
    if found:
        return
    if name in names.INHERITED and any(map(names.is_train_cell, flow.library_bases(origin.script, owner))):
        yield at.origin("call", owner, names.INHERITED[name])
    else:
        yield at.origin("unknown", node, reason=f"attribute {name} of {owner.name.value} is set nowhere here")


def _assigns_to(flow: Flow, script: Script, target: cst.Attribute, family: list[cst.ClassDef]) -> bool:
    """Whether ``something.name = ...`` sets an attribute on an instance of one of these classes."""
    for origin in flow.origins(script, target.value):
        if origin.node in family and origin.kind in ("instance", "class"):
            return True
        if (
            origin.kind == "instance"
            and isinstance(origin.node, cst.ClassDef)
            and any(cls in family for _, cls in flow.ancestry(origin.script, origin.node))
        ):
            return True  # set in a subclass, read in its base
    return False
