"""What a value is computed from."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from .bindings import dotted
from .origin import Selectors
from .tree import children

# Of these calls only some arguments are in the value, by position: the others are waited for, or give a type or shape.
_ORDERED = {"depend": slice(0, 1), "Depend": slice(0, 1), "start_overflow_check": slice(1, None)}
_SHAPED = {
    "cast": slice(0, 1), "Cast": slice(0, 1), "fill": slice(2, None), "Fill": slice(2, None),
    "full": slice(1, None), "full_like": slice(1, None),
    **dict.fromkeys(("shape", "Shape", "dtype", "DType", "get_dtype", "rank", "Rank", "len", "isinstance", "zeros_like",
                     "ZerosLike", "ones_like", "OnesLike"), slice(0, 0)),
}  # fmt: skip
_ABOUT = frozenset({"shape", "dtype", "ndim", "size", "itemsize", "nbytes"})


def operands(node: cst.CSTNode, selectors: Selectors = (), *, shapes: bool = False) -> Iterator[cst.CSTNode]:
    """Yield the expressions that are in a value, leaving out what only orders or shapes it.

    ``ops.depend(grads, loss)`` is the gradients, ``ops.fill(loss.dtype, loss.shape, 1024.0)`` a constant, and a train
    cell's ``start_overflow_check(loss, scale)`` gives a status and the scale.

    Args:
        node: the expression in which a walk back ended.
        selectors: what is taken out of it.
        shapes: whether a shape is of what it is the shape of.
    """
    if isinstance(node, cst.Attribute) and node.attr.value in _ABOUT and not shapes:
        return
    if isinstance(node, cst.Call):
        func = node.func.func if isinstance(node.func, cst.Call) else node.func  # ops.Depend()(x, y)
        name = (dotted(func) or "").rpartition(".")[2]
        if name == "start_overflow_check" and selectors[:1] == (("item", 0),):
            return
        chosen = _ORDERED.get(name) or (None if shapes else _SHAPED.get(name))
        if chosen is not None:
            yield from (arg.value for arg in node.args[chosen])
            return
    yield from parts_of(node)


def parts_of(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the expressions that a value is computed from: arguments, operands, elements."""
    if isinstance(node, cst.Call):
        if isinstance(node.func, cst.Attribute):
            yield node.func.value
        for arg in node.args:
            yield arg.value
        return
    for child in children(node):
        if isinstance(child, cst.BaseExpression):
            yield child
        elif not isinstance(child, (cst.BaseStatement, cst.BaseSmallStatement)):
            yield from parts_of(child)


__all__ = ["operands", "parts_of"]
