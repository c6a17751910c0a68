"""Whether a number is made of the number of ranks: divided by it, or multiplied by it."""

from __future__ import annotations

import libcst as cst

from ..mindspore import names
from ..mindspore.rates import STEP_COUNTS
from .bindings import dotted, literal
from .flow import Flow
from .script import Script
from .sinks import argument

_DEPTH = 12
# Functions whose value is one of their arguments, or its whole part.
_SAME = frozenset({"int", "float", "max", "min", "round"})
# Those that give the numbers of a table in another form.
_CARRY = frozenset({names.TENSOR, "list", "tuple", "numpy.array", "numpy.asarray"})

_CARRY_METHODS = frozenset({"astype", "asnumpy", "copy", "flatten", "ravel", "reshape", "tolist"})
_TABLES = (cst.List, cst.Tuple, cst.ListComp)


class RankNumbers:
    """Follows numbers back to the number of ranks, through arithmetic and not through datasets."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow

    def divided(self, script: Script, node: cst.CSTNode, depth: int = 0) -> bool:
        """Whether a number is divided by the number of ranks."""
        return self._made(script, node, (cst.FloorDivide, cst.Divide, cst.FloorDivideAssign, cst.DivideAssign), depth)

    def multiplied(self, script: Script, node: cst.CSTNode) -> bool:
        """Whether a number, or what a table of numbers is computed from, is multiplied by the number of ranks."""
        return self._made(script, node, (cst.Multiply, cst.MultiplyAssign), 0)

    def surely_multiplied(self, script: Script, node: cst.CSTNode) -> bool:
        """Whether a number, or every number of a table, is so; not only something that a function computes it from."""
        return self._made(script, node, (cst.Multiply, cst.MultiplyAssign), 0, through=_CARRY)

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

    def _made(
        self,
        script: Script,
        node: cst.CSTNode,
        by: tuple[type, ...],
        depth: int,
        *,
        through: frozenset[str] | None = None,
    ) -> bool:
        """Whether a number is made by an operation with the number of ranks; ``through`` which calls (None: all)."""
        if depth > _DEPTH:
            return False
        if isinstance(node, cst.BinaryOperation):
            repeated = next((side for side in (node.left, node.right) if isinstance(side, _TABLES)), None)
            if repeated is not None and isinstance(node.operator, cst.Multiply):
                # `[rate] * steps` repeats a number and does not change it.
                return self._made(script, repeated, by, depth + 1, through=through)
            sides = [(node.right, node.left)]
            if isinstance(node.operator, cst.Multiply):
                sides.append((node.left, node.right))
            if isinstance(node.operator, by) and any(self.is_count(script, side) for side, _ in sides):
                return True
            # `rate / (batch * ranks)` is not multiplied by them.
            kept = (node.left,) if isinstance(node.operator, (cst.Divide, cst.FloorDivide)) else (node.left, node.right)
            return any(self._made(script, side, by, depth + 1, through=through) for side in kept)
        if isinstance(node, (cst.ListComp, cst.GeneratorExp)):
            return self._made(script, node.elt, by, depth + 1, through=through)
        if isinstance(node, cst.AugAssign):
            if isinstance(node.operator, by) and self.is_count(script, node.value):
                return True
            return self._made(script, node.value, by, depth + 1, through=through)
        if isinstance(node, (cst.List, cst.Tuple)):
            return any(self._made(script, element.value, by, depth + 1, through=through) for element in node.elements)
        if isinstance(node, cst.Subscript):
            return self._made(script, node.value, by, depth + 1, through=through)
        if isinstance(node, cst.Call):
            if isinstance(node.func, cst.Attribute) and node.func.attr.value in _CARRY_METHODS:
                return self._made(script, node.func.value, by, depth + 1, through=through)
            values = (arg.value for arg in node.args) if through is None else self._carried(script, node, through)
            if any(self._made(script, value, by, depth + 1, through=through) for value in values):
                return True
        return any(self._made(home, came, by, depth + 1, through=through) for home, came in self._from(script, node))

    def _carried(self, script: Script, call: cst.Call, through: frozenset[str]) -> list[cst.BaseExpression]:
        """Return the arguments of a call that its value is in proportion to, as far as that is known."""
        name = self.flow.qualified(script, call)
        if name in through or dotted(call.func) in _SAME:
            return [arg.value for arg in call.args]
        counts = STEP_COUNTS.get(name.rpartition(".")[2], ()) if names.is_lr_schedule(name) else ()
        steps = [argument(call, position, parameter) for parameter, position in counts]
        return [arg.value for arg in call.args if counts and arg.value not in steps]

    def _from(self, script: Script, node: cst.CSTNode) -> list[tuple[Script, cst.CSTNode]]:
        """Return what a name, an attribute or a call of the program's own gives, one step back."""
        if not isinstance(node, (cst.Name, cst.Attribute, cst.Call)) or literal(node) is not ...:
            return []
        kinds = ("call", "unknown", "literal")
        return [(o.script, o.node) for o in self.flow.origins(script, node) if o.node is not node and o.kind in kinds]


__all__ = ["RankNumbers"]
