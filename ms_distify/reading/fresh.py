"""Which names of a loop hold things that came into being in the same round, so that changing them reaches no other round."""

from __future__ import annotations

import libcst as cst

from .bindings import Binding
from .flow import Flow
from .script import Script

# What hands on its arguments, or what is in them.
_HANDS_ON = frozenset({"dict", "enumerate", "iter", "list", "next", "reversed", "set", "sorted", "tuple", "zip"})
_NEW = (cst.BaseNumber, cst.BaseString, cst.BinaryOperation, cst.Comparison, cst.UnaryOperation, cst.BaseComp)


def fresh(flow: Flow, script: Script, loop: cst.For, bound: dict[str, list[Binding]]) -> set[str]:
    """Return the names that a loop binds only to what is new in each round: its rows, and what is computed from them.

    Args:
        flow: where values come from.
        script: the file.
        loop: the loop.
        bound: what the loop binds, by name.
    """
    known: set[str] = set()
    while True:
        more = {
            name
            for name, bindings in bound.items()
            if name not in known and all(_is_new(flow, script, loop, binding, known) for binding in bindings)
        }
        if not more:
            return known
        known |= more


def _is_new(flow: Flow, script: Script, loop: cst.For, binding: Binding, known: set[str]) -> bool:
    if binding.node is loop:
        return True
    if isinstance(binding.node, cst.For):
        return _of_round(flow, script, binding.node.iter, known)
    return binding.kind == "assign" and binding.value is not None and _of_round(flow, script, binding.value, known)


def _of_round(flow: Flow, script: Script, value: cst.BaseExpression, known: set[str]) -> bool:
    """Whether an expression gives something that no other round has."""
    if isinstance(value, _NEW):
        return True
    if isinstance(value, (cst.Name, cst.Attribute, cst.Subscript)):
        return root(value) in known
    if isinstance(value, (cst.List, cst.Tuple, cst.Set, cst.Dict)):
        return all(_of_round(flow, script, element.value, known) for element in value.elements)
    if not isinstance(value, cst.Call):
        return False
    if isinstance(value.func, cst.Attribute) and root(value.func) in known:
        return True
    name = flow.qualified(script, value)
    if name in _HANDS_ON:
        return all(_of_round(flow, script, arg.value, known) for arg in value.args)
    return bool(name) and "()." not in name and not flow.targets(script, value)


def root(node: cst.CSTNode) -> str:
    """Return the name at the head of ``a.b[0].c()``."""
    while not isinstance(node, cst.Name):
        if isinstance(node, (cst.Attribute, cst.Subscript)):
            node = node.value
        elif isinstance(node, cst.Call):
            node = node.func
        else:
            return ""
    return node.value


__all__ = ["fresh", "root"]
