"""Small questions about expressions that need no names: dotted chains, literals, parameters."""

from __future__ import annotations

from typing import Union

import libcst as cst

FunctionNode = Union[cst.FunctionDef, cst.Lambda]


def parameters(function: FunctionNode) -> list[cst.Param]:
    """Return all parameters of a function in order, ``*args`` and ``**kwargs`` among them."""
    params = function.params
    found = [*params.posonly_params, *params.params]
    if isinstance(params.star_arg, cst.Param):
        found.append(params.star_arg)
    found.extend(params.kwonly_params)
    if params.star_kwarg is not None:
        found.append(params.star_kwarg)
    return found


def dotted(node: cst.CSTNode | None) -> str | None:
    """Return ``a.b.c`` for a chain of names, None for any other expression."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return None
    parts.append(node.value)
    return ".".join(reversed(parts))


def literal(node: cst.CSTNode | None) -> object:
    """Return the value of a literal number, string, bool or None; ``...`` for anything else."""
    if isinstance(node, cst.Name) and node.value in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[node.value]
    if isinstance(node, (cst.Integer, cst.Float)):
        return node.evaluated_value
    if isinstance(node, (cst.SimpleString, cst.ConcatenatedString)):
        try:
            return node.evaluated_value
        except (ValueError, SyntaxError):
            return ...
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        value = literal(node.expression)
        return -value if isinstance(value, (int, float)) else ...
    return ...


def is_main_guard(node: cst.CSTNode) -> bool:
    """Whether a statement is ``if __name__ == "__main__":``."""
    if not isinstance(node, cst.If) or not isinstance(node.test, cst.Comparison):
        return False
    test = node.test
    sides = [test.left, *(target.comparator for target in test.comparisons)]
    words = [dotted(side) or getattr(side, "raw_value", None) for side in sides]
    return sorted(str(word) for word in words) == ["__main__", "__name__"]
