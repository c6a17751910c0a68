"""Numbers of steps that are those of one card: literals, and what is computed from all rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ..mindspore import names
from ..reading.bindings import dotted, literal
from ..reading.program import Program
from ..reading.roles import body_of
from ..reading.script import Script
from ..reading.tree import children, walk

_DEPTH = 20


@dataclass(frozen=True)
class Count:
    """A number of steps that does not depend on the ranks.

    Attributes:
        text: how it is written, where it is written out.
        where: that place, if it is another than the one that was asked for.
        number: its value, if it is known.
        numbers: its values, if it is a list of known numbers.
    """

    text: str
    where: str = ""
    number: float | None = None
    numbers: tuple[float, ...] = ()


def counted(program: Program, script: Script, node: cst.BaseExpression) -> Count | None:
    """Return the count that an expression is, if it is made of literals and of numbers of all rows only."""
    reader = _Reader(program)
    if not reader.fixed(script, node):
        return None
    home, written = reader.written(script, node)
    value = reader.value(home, written)
    number = value if isinstance(value, (int, float)) else None
    numbers = value if isinstance(value, tuple) else ()
    where = "" if home is script and home.line(written) == script.line(node) else home.where(written)
    return Count(home.tree.text(written), where, number, numbers)


class _Reader:
    def __init__(self, program: Program) -> None:
        self.program = program

    def fixed(self, script: Script, node: cst.CSTNode, depth: int = 0) -> bool:
        """Whether a value is made of literals and numbers of rows."""
        if depth > _DEPTH:
            return False
        if isinstance(node, cst.BinaryOperation):
            if isinstance(node.operator, (cst.FloorDivide, cst.Divide)) and self._rows(script, node.left, depth):
                return not self.program.counts_ranks(script, node.right)  # by whatever batch size
            return all(self.fixed(script, side, depth + 1) for side in (node.left, node.right))
        if isinstance(node, (cst.List, cst.Tuple)):
            return all(self.fixed(script, element.value, depth + 1) for element in node.elements)
        if literal(node) is not ...:
            return isinstance(literal(node), (int, float)) and not isinstance(literal(node), bool)
        if isinstance(node, cst.Call) and dotted(node.func) == "len":
            return self._rows(script, node, depth)
        if isinstance(node, cst.Call) and dotted(node.func) in (
            "int",
            "math.ceil",
            "math.floor",
            "round",
            "max",
            "min",
        ):
            return all(self.fixed(script, arg.value, depth + 1) for arg in node.args)
        if isinstance(node, cst.Name):
            found = self.program.flow.origins(script, node)
            return bool(found) and all(
                o.node is not node
                and not o.selectors
                and (o.kind == "literal" or isinstance(o.node, (cst.BinaryOperation, cst.Call)))
                and self.fixed(o.script, o.node, depth + 1)
                for o in found
            )
        return False

    def _rows(self, script: Script, node: cst.CSTNode, depth: int) -> bool:
        """Whether a value is the number of all rows, whatever the shards: ``len`` of anything but a dataset."""
        if depth > _DEPTH:
            return False
        if isinstance(node, cst.Name):
            found = self.program.flow.origins(script, node)
            return bool(found) and all(o.node is not node and self._rows(o.script, o.node, depth + 1) for o in found)
        if not isinstance(node, cst.Call) or dotted(node.func) != "len" or len(node.args) != 1:
            return False
        held = self.program.flow.origins(script, node.args[0].value)
        return not any(names.dataset_class(origin.qualified) for origin in held)

    def written(self, script: Script, node: cst.BaseExpression) -> tuple[Script, cst.BaseExpression]:
        """Return where a value is written out, behind names."""
        for _ in range(_DEPTH):
            found = self.program.flow.origins(script, node) if isinstance(node, cst.Name) else []
            if len(found) != 1 or found[0].node is node or not isinstance(found[0].node, cst.BaseExpression):
                break
            script, node = found[0].script, found[0].node
        return script, node

    def value(self, script: Script, node: cst.CSTNode, depth: int = 0) -> float | tuple[float, ...] | None:
        """Return the value of arithmetic on literals, None where it is not known."""
        if depth > _DEPTH:
            return None
        if isinstance(node, (cst.List, cst.Tuple)):
            values = [self.value(script, element.value, depth + 1) for element in node.elements]
            numbers = tuple(value for value in values if isinstance(value, (int, float)))
            return numbers if len(numbers) == len(values) else None
        if isinstance(node, cst.BinaryOperation):
            left, right = self.value(script, node.left, depth + 1), self.value(script, node.right, depth + 1)
            if isinstance(left, (int, float)) and isinstance(right, (int, float)):
                return _computed(node.operator, left, right)
            return None
        if isinstance(node, cst.Name) and literal(node) is ...:
            home, written = self.written(script, node)
            return None if written is node else self.value(home, written, depth + 1)
        found = literal(node)
        return found if isinstance(found, (int, float)) and not isinstance(found, bool) else None


def _computed(operator: cst.BaseBinaryOp, left: float, right: float) -> float | None:
    if isinstance(operator, cst.Add):
        return left + right
    if isinstance(operator, cst.Subtract):
        return left - right
    if isinstance(operator, cst.Multiply):
        return left * right
    if isinstance(operator, (cst.Divide, cst.FloorDivide)) and right:
        return left // right if isinstance(operator, cst.FloorDivide) else left / right
    return None


@dataclass(frozen=True)
class Limit:
    """What ends a training after a number of steps.

    Attributes:
        script: its file.
        node: the expression that says it.
        what: what it is, for messages.
        count: the number.
    """

    script: Script
    node: cst.CSTNode
    what: str
    count: Count


class Limits:
    """Finds the loops of a program that take a number of steps."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def all(self) -> Iterator[Limit]:
        """Yield what limits trainings, in the order of files."""
        consumed = {
            sink.node for sink in self.program.roles.sinks if sink.role == "train" and isinstance(sink.node, cst.For)
        }
        for script in self.program.scripts:
            for loop in script.tree.nodes(cst.For, cst.While):
                if isinstance(loop, cst.For):
                    yield from self._range(script, loop)
                    if loop in consumed and self._steps(script, loop.body):  # over rows, not over epochs
                        yield from self._breaks(script, loop)
                elif isinstance(loop, cst.While) and self._steps(script, loop.body):
                    yield from self._test(script, loop.test, loop.body, "this loop")
                    yield from self._breaks(script, loop)

    def _range(self, script: Script, loop: cst.For) -> Iterator[Limit]:
        """``for step in range(1000)`` around a step that takes its rows with ``next()``."""
        call = loop.iter
        if not isinstance(call, cst.Call) or dotted(call.func) != "range" or not call.args:
            return
        if not self._steps(script, loop.body) or not any(map(_takes_next, _here(loop.body))):
            return
        last = call.args[min(len(call.args), 2) - 1].value
        count = counted(self.program, script, last)
        if count is not None:
            yield Limit(script, last, script.tree.text(call), count)

    def _breaks(self, script: Script, loop: cst.For | cst.While) -> Iterator[Limit]:
        """``if step >= 1000: break`` in a loop over rows."""
        for part in _here(loop.body):
            if isinstance(part, cst.If) and any(isinstance(inner, cst.Break) for inner in _here(part.body)):
                yield from self._test(script, part.test, loop, "the end of this loop")

    def _test(self, script: Script, test: cst.BaseExpression, loop: cst.CSTNode, what: str) -> Iterator[Limit]:
        """A comparison of a counter with a number."""
        if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
            return
        target = test.comparisons[0]
        for counter, limit in ((test.left, target.comparator), (target.comparator, test.left)):
            if self._counts(script, counter, loop):
                count = counted(self.program, script, limit)
                if count is not None:
                    yield Limit(script, test, f"{what} ('{script.tree.text(test)}')", count)
                return

    def _counts(self, script: Script, node: cst.BaseExpression, loop: cst.CSTNode) -> bool:
        """Whether a value counts the rounds of a loop: ``step`` of ``enumerate``, or ``step += 1`` in it."""
        if isinstance(node, cst.BinaryOperation) and literal(node.right) is not ...:
            node = node.left
        name = dotted(node)
        if name is None or literal(node) is not ...:
            return False
        if isinstance(loop, cst.For) and isinstance(loop.iter, cst.Call) and dotted(loop.iter.func) == "enumerate":
            target = loop.target
            first = target.elements[0].value if isinstance(target, cst.Tuple) and target.elements else None
            if first is not None and dotted(first) == name:
                return True
        inside = _here(body_of(loop))
        return any(
            isinstance(part, cst.AugAssign)
            and isinstance(part.operator, cst.AddAssign)
            and dotted(part.target) == name
            and literal(part.value) == 1
            for part in inside
        )

    def _steps(self, script: Script, body: cst.CSTNode, depth: int = 0) -> bool:
        """Whether a block takes a step itself: not in a loop within it, nor in one that a function in it runs."""
        for part in _here(body):
            if isinstance(part, cst.Call):
                if self.program.roles.is_step(script, part):
                    return True
                for home, function in self.program.flow.targets(script, part):
                    if depth < 5 and self._steps(home, body_of(function), depth + 1):
                        return True
        return False


def tables(program: Program, script: Script, rate: cst.BaseExpression) -> Iterator[Limit]:
    """Yield the loops over numbers of steps in the program's own functions that make a table of learning rates.

    Args:
        program: the program.
        script: the file of ``rate``.
        rate: the learning rate that is handed to an optimizer.
    """
    entered: dict[cst.CSTNode, Script] = {}
    todo: list[tuple[Script, cst.BaseExpression, int]] = [(script, rate, 0)]
    while todo:
        home, node, depth = todo.pop()
        for origin in program.flow.origins(home, node):
            entered.update((edge.function, edge.home) for edge in origin.calls)
            if depth < 5 and origin.kind == "call" and isinstance(origin.node, cst.Call):  # Tensor(...), np.array(...)
                todo += [(origin.script, arg.value, depth + 1) for arg in origin.node.args]
    for function, home in entered.items():
        for loop in _nodes(body_of(function)):
            if not isinstance(loop, cst.For) or any(isinstance(part, cst.For) for part in _nodes(loop.body)):
                continue
            call = loop.iter
            if isinstance(call, cst.Call) and dotted(call.func) == "range" and call.args:
                last = call.args[min(len(call.args), 2) - 1].value
                count = counted(program, home, last)
                if count is not None:
                    yield Limit(
                        home, last, f"{home.tree.text(call)} makes a table of learning rates for {count.text}", count
                    )


def _nodes(body: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for child in children(body):
        yield from walk(child)


def _here(body: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield what runs in a block, leaving out the loops in it and the functions defined in it."""
    stack = list(children(body))
    while stack:
        node = stack.pop()
        if isinstance(node, (cst.For, cst.While, cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            continue
        yield node
        stack.extend(children(node))


def _takes_next(node: cst.CSTNode) -> bool:
    if not isinstance(node, cst.Call):
        return False
    return dotted(node.func) == "next" or (isinstance(node.func, cst.Attribute) and node.func.attr.value == "__next__")


__all__ = ["Count", "Limit", "Limits", "counted"]
