"""Whether a number is made of the number of ranks: divided by it, or multiplied by it."""

from __future__ import annotations

import libcst as cst

from ..mindspore import names
from .bindings import dotted, literal
from .flow import Flow
from .script import Script

_DEPTH = 12
# Functions whose value is one of their arguments, or its whole part.
_SAME = frozenset({"int", "float", "max", "min", "round"})


class RankNumbers:
    """Follows numbers back to the number of ranks, through arithmetic and not through datasets."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow

    def divided(self, script: Script, node: cst.CSTNode, depth: int = 0) -> bool:
        """Whether a number is divided by the number of ranks."""
        return self._made(script, node, (cst.FloorDivide, cst.Divide, cst.FloorDivideAssign, cst.DivideAssign), depth)

    def multiplied(self, script: Script, node: cst.CSTNode, depth: int = 0) -> bool:
        """Whether a number, or what a table of numbers is computed from, is multiplied by the number of ranks."""
        return self._made(script, node, (cst.Multiply, cst.MultiplyAssign), depth)

    def is_count(self, script: Script, node: cst.CSTNode, depth: int = 0) -> bool:
        """Whether a value is the number of ranks, or may be on many."""
        if depth > _DEPTH:
            return False
        if isinstance(node, cst.Call):
            name = self.flow.qualified(script, node)
            if name == names.GET_GROUP_SIZE:
                return True
            if name in ("os.getenv", "os.environ.get"):
                return bool(node.args) and literal(node.args[0].value) in names.SIZE_SOURCES
            if dotted(node.func) in _SAME:
                return any(self.is_count(script, arg.value, depth + 1) for arg in node.args)
        if isinstance(node, cst.Subscript) and dotted(node.value) in ("os.environ", "environ"):
            key = node.slice[0].slice
            return isinstance(key, cst.Index) and literal(key.value) in names.SIZE_SOURCES
        if isinstance(node, cst.BooleanOperation):
            return any(self.is_count(script, side, depth + 1) for side in (node.left, node.right))
        if isinstance(node, cst.IfExp):
            return any(self.is_count(script, side, depth + 1) for side in (node.body, node.orelse))
        return any(self.is_count(home, came, depth + 1) for home, came in self._from(script, node))

    def _made(self, script: Script, node: cst.CSTNode, by: tuple[type, ...], depth: int) -> bool:
        if depth > _DEPTH:
            return False
        if isinstance(node, cst.BinaryOperation):
            sides = [(node.right, node.left)]
            if isinstance(node.operator, cst.Multiply):
                sides.append((node.left, node.right))
            if isinstance(node.operator, by) and any(self.is_count(script, side) for side, _ in sides):
                return True
            # `rate / (batch * ranks)` is not multiplied by them.
            kept = (node.left,) if isinstance(node.operator, (cst.Divide, cst.FloorDivide)) else (node.left, node.right)
            return any(self._made(script, side, by, depth + 1) for side in kept)
        if isinstance(node, (cst.ListComp, cst.GeneratorExp)):
            return self._made(script, node.elt, by, depth + 1)
        if isinstance(node, cst.AugAssign):
            if isinstance(node.operator, by) and self.is_count(script, node.value):
                return True
            return self._made(script, node.value, by, depth + 1)
        if isinstance(node, (cst.List, cst.Tuple)):
            return any(self._made(script, element.value, by, depth + 1) for element in node.elements)
        if isinstance(node, cst.Call) and any(self._made(script, arg.value, by, depth + 1) for arg in node.args):
            return True
        return any(self._made(home, came, by, depth + 1) for home, came in self._from(script, node))

    def _from(self, script: Script, node: cst.CSTNode) -> list[tuple[Script, cst.CSTNode]]:
        """Return what a name, an attribute or a call of the program's own gives, one step back."""
        if not isinstance(node, (cst.Name, cst.Attribute, cst.Call)) or literal(node) is not ...:
            return []
        kinds = ("call", "unknown", "literal")
        return [(o.script, o.node) for o in self.flow.origins(script, node) if o.node is not node and o.kind in kinds]


__all__ = ["RankNumbers"]
