"""Makes a decision the same on all ranks: the numbers that it is taken from are averaged where they come into being."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from ..mindspore import names
from ..model import Edit, Insert
from ..reading.bindings import Binding, dotted, literal
from ..reading.decisions import around, is_truth, picked
from ..reading.program import Program
from ..reading.script import Script
from ..reading.tree import walk
from .files_edits import line_of
from .helpers import Helpers

# Behind averaged gradients, which stand at 60.
_ORDER = 61
_IN_A_LINE = "it is set in the middle of a line; write it on a line of its own"
# What gives no number, or is asked of many.
_OF_MANY = frozenset(
    {"any", "all", "max", "min", "argmax", "argmin", "argwhere", "nonzero", "where", "tolist", "append"}
)
# Methods that give the same number in another form.
_SAME = frozenset({"asnumpy", "item", "copy"})
_TRUTHS = (cst.Comparison, cst.BooleanOperation)
_MAX_WORK = 200


class CannotAlike(Exception):
    """A decision that cannot be made alike; the message says why."""


@dataclass(frozen=True)
class Root:
    """Where a number comes into being that decisions are taken from.

    Attributes:
        script: the file.
        statement: the statement behind which it is averaged.
        text: the variable or attribute that holds it.
    """

    script: Script
    statement: cst.CSTNode
    text: str


class Alike:
    """Plans for one program; the same root serves several decisions."""

    def __init__(self, program: Program, helpers: Helpers) -> None:
        self._program, self._helpers = program, helpers
        self._flow, self._differs, self._decisions = program.flow, program.differs, program.decisions

    def edits(self, script: Script, test: cst.BaseExpression) -> tuple[list[Edit], list[Root]]:
        """Return the edits that make a condition alike on all ranks, and where they average.

        Raises:
            CannotAlike: the way from what differs to the condition is not plain.
        """
        walk_ = _Walk(self._program, script, test)
        edits: list[Edit] = []
        for root in walk_.roots:
            line, define = self._helpers.over_ranks(root.script, root.text, mean=True)
            edits += [*define, Insert(root.script, root.statement, "after", (line,), _ORDER)]
        return edits, walk_.roots


class _Walk:
    """One walk back from a condition to the numbers it is taken from."""

    def __init__(self, program: Program, script: Script, test: cst.BaseExpression) -> None:
        self.program, self.flow = program, program.flow
        self.differs, self.decisions = program.differs, program.decisions
        self.roots: list[Root] = []
        self._done: set[cst.CSTNode] = set()
        self._work: list[tuple[Script, cst.BaseExpression]] = [(script, test)]
        while self._work:
            home, node = self._work.pop()
            if node not in self._done:
                self._done.add(node)
                if len(self._done) > _MAX_WORK:
                    raise CannotAlike("too much leads to it")
                self._expression(home, node)
        if not self.roots:
            raise CannotAlike("no number is found that it is taken from")

    def _ask(self, script: Script, *tests: cst.BaseExpression) -> None:
        for test in tests:
            if self.decisions.what(script, test):
                self._work.append((script, test))

    def _expression(self, script: Script, node: cst.BaseExpression) -> None:
        """Go on at everything in an expression that differs."""
        for home, test in self.decisions.behind(script, node):
            self._ask(home, test)
        for home, value in self.decisions.given(script, node):
            if not self.differs.value(home, value):  # those that differ by themselves are met on the way of values
                self._ask(home, value)
        self._values(script, node)

    def _values(self, script: Script, node: cst.CSTNode) -> None:
        if not isinstance(node, cst.BaseExpression) or not self.differs.value(script, node):
            return
        if isinstance(node, cst.Name):
            self._name(script, node)
        elif isinstance(node, cst.Attribute):
            self._attribute(script, node)
        elif isinstance(node, cst.Subscript):
            raise CannotAlike(f"{script.tree.text(node)} is taken out of something; give the number a name of its own")
        elif isinstance(node, cst.Call):
            self._call(script, node)
        elif isinstance(node, (cst.BinaryOperation, cst.UnaryOperation, *_TRUTHS, cst.IfExp)):
            for child in _operands(node):
                self._values(script, child)
        elif isinstance(node, cst.FormattedString):
            for part in node.parts:
                if isinstance(part, cst.FormattedStringExpression):
                    self._values(script, part.expression)
        elif isinstance(node, cst.NamedExpr):
            raise CannotAlike(f"{script.tree.text(node.target)}: {_IN_A_LINE}")
        else:
            raise CannotAlike(f"{script.tree.text(node)} is no plain number")

    def _call(self, script: Script, node: cst.Call) -> None:
        func = node.func
        last = func.attr.value if isinstance(func, cst.Attribute) else getattr(func, "value", "")
        own = self.flow.targets(script, node)
        inside = [arg.value for arg in node.args]
        if isinstance(func, cst.Attribute) and not own:
            inside.append(func.value)
        different = [part for part in inside if self.differs.value(script, part)]
        if own or not different:
            for home, function in own:
                values = home.bindings.returns.get(function, [])
                if not values or not all(map(is_truth, values)):
                    raise CannotAlike(f"{script.tree.text(func)}() gives it; give the number a name of its own")
                for value in values:
                    self._ask(home, value)
            if not own:
                raise CannotAlike(f"{script.tree.text(func)}() gives it; give the number a name of its own")
            return
        if last in _OF_MANY and isinstance(func, cst.Attribute):
            raise CannotAlike(f"{script.tree.text(func)}() is asked of more than one number")
        for part in different:
            self._values(script, part)

    # -- names and attributes ----------------------------------------------------------------------------------------

    def _name(self, script: Script, name: cst.Name) -> None:
        for binding in script.bindings.lookup(name):
            if binding.kind == "parameter":
                self._parameter(script, binding)
            elif binding.kind == "augment":
                self._added(script, name, binding)
            elif binding.kind == "assign" and binding.value is not None:
                self._assigned(script, binding)
            elif binding.kind in ("for", "with", "match", "except"):
                raise CannotAlike(f"{name.value} is of its own rows")

    def _parameter(self, script: Script, binding: Binding) -> None:
        scope = binding.scope.node
        assert isinstance(scope, (cst.FunctionDef, cst.Lambda))
        for home, call in self.flow.call_sites(scope):
            value = self.flow.argument(home, call, scope, binding.name)
            if value is ...:
                raise CannotAlike(f"{binding.name} comes from * or ** arguments")
            if isinstance(value, tuple):
                self._ask(*value)

    def _added(self, script: Script, name: cst.Name, binding: Binding) -> None:
        """``total += loss`` in a loop: the sum is averaged behind the loop."""
        node = binding.node
        assert isinstance(node, cst.AugAssign)
        if not self.differs.value(script, node.value):
            return
        inside = set(script.tree.ancestors(name))
        loops = [p for p in script.tree.ancestors(node) if isinstance(p, (cst.For, cst.While)) and p not in inside]
        if not loops:
            raise CannotAlike(
                f"{binding.name} is added to where it decides; keep the mean of a round in a name of its own"
            )
        self._root(script, loops[-1], binding.name)

    def _assigned(self, script: Script, binding: Binding) -> None:
        value = picked(binding.value, binding.path) or binding.value
        if value is None or not self.differs.value(script, value):
            return
        copied = _copied(value)
        if self._closed(script, binding, copied) if copied is not None else self._is_number(script, value):
            self._root(script, self._line(script, binding.node), binding.name)
        else:
            self._ask(script, value)

    def _closed(self, script: Script, binding: Binding, value: cst.Name) -> bool:
        """Whether ``metric = loss`` stands behind the loop that sets ``loss``, so that averaging it once an epoch will do."""
        here = set(script.tree.ancestors(binding.node))
        sets = [b for b in script.bindings.lookup(value) if b.value is not None and self.differs.value(script, b.value)]
        return bool(sets) and all(
            any(isinstance(p, (cst.For, cst.While)) and p not in here for p in script.tree.ancestors(b.node))
            for b in sets
        )

    def _attribute(self, script: Script, node: cst.Attribute) -> None:
        """``self.best``, set somewhere in the class; or an attribute of a library's object."""
        if node.attr.value == "net_outputs":
            raise CannotAlike("net_outputs may hold more than a number; give the loss a name of its own")
        found = False
        for home, target, _ in self.decisions.settings(script, node):
            assign = home.tree.parent.get(home.tree.parent.get(target, target))
            if not isinstance(target, cst.Attribute) or not isinstance(assign, cst.Assign):
                continue
            found = True
            if not self.differs.value(home, assign.value):
                continue
            if self._is_number(home, assign.value):
                self._root(home, self._line(home, assign), home.tree.text(target))
            else:
                self._ask(home, assign.value)
        if not found:
            self._values(script, node.value)

    # -- roots -------------------------------------------------------------------------------------------------------

    def _is_number(self, script: Script, value: cst.BaseExpression) -> bool:
        """Whether an expression gives a number as far as can be told, and is more than a copy of another."""
        if isinstance(value, (cst.Name, *_TRUTHS)) or literal(value) is not ...:
            return False
        if isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.Not):
            return False
        if isinstance(value, cst.Attribute):
            return value.attr.value == "net_outputs"
        if isinstance(value, cst.Call):
            short = (dotted(value.func) or "").rpartition(".")[2]
            if short in ("min", "max", "isnan", "isinf", "isfinite", "any", "all", "bool"):
                return False
            for home, function in self.flow.targets(script, value):
                returned = home.bindings.returns.get(function, [])
                if any(is_truth(item) for item in returned):
                    return False
        return not any(isinstance(part, _TRUTHS) for part in walk(value) if not isinstance(value, cst.Call))

    def _line(self, script: Script, node: cst.CSTNode) -> cst.CSTNode:
        line = line_of(script, node)
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            raise CannotAlike(_IN_A_LINE)
        return line

    def _root(self, script: Script, statement: cst.CSTNode, text: str) -> None:
        root = Root(script, statement, text)
        if root in self.roots:
            return
        for parent in script.tree.ancestors(statement):
            if isinstance(parent, cst.FunctionDef) and (parent.name.value == "construct" or _compiled(parent)):
                raise CannotAlike(f"{text} is set in {parent.name.value}, which is compiled")
            if isinstance(parent, (cst.Lambda, cst.BaseComp)):
                raise CannotAlike(f"{text} is set in an expression")
        self.roots.append(root)
        evaluated = self.program.evaluations.within(script, statement) if self.program.sums_evaluations else None
        if evaluated is not None:
            where = evaluated[0].where(evaluated[1])
            raise CannotAlike(
                f"{text} is set for each batch of an evaluation ({where}), of which ranks have other numbers"
            )
        for home, test in self.decisions.reached_by(script, statement):
            if self.program.mentions_rank(home, test) and not self.program.counts_ranks(home, test):
                raise CannotAlike(f"{text} is set on some ranks only ({home.where(test)})")
            if self.program.clock(home, test):
                raise CannotAlike(f"{text} is set at a time of each rank's own ({home.where(test)})")
            self._ask(home, test)
        for home, test in around(script, statement):
            self._ask(home, test)


def _copied(value: cst.BaseExpression) -> cst.Name | None:
    """Return the variable that an expression gives the number of: ``loss``, ``float(loss)``, ``loss.asnumpy()``."""
    while isinstance(value, cst.Call):
        if isinstance(value.func, cst.Attribute) and value.func.attr.value in _SAME and not value.args:
            value = value.func.value
        elif isinstance(value.func, cst.Name) and value.func.value == "float" and len(value.args) == 1:
            value = value.args[0].value
        else:
            return None
    return value if isinstance(value, cst.Name) else None


def _operands(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(node, cst.Comparison):
        return [node.left, *(target.comparator for target in node.comparisons)]
    if isinstance(node, (cst.BinaryOperation, cst.BooleanOperation)):
        return [node.left, node.right]
    if isinstance(node, cst.UnaryOperation):
        return [node.expression]
    assert isinstance(node, cst.IfExp)
    return [node.test, node.body, node.orelse]


def _compiled(function: cst.FunctionDef) -> bool:
    """Whether a decorator compiles a function."""
    short = {name.rpartition(".")[2] for name in names.COMPILED}
    for decorator in function.decorators:
        node = decorator.decorator
        name = dotted(node.func if isinstance(node, cst.Call) else node) or ""
        if name.rpartition(".")[2] in short:
            return True
    return False


__all__ = ["Alike", "CannotAlike", "Root"]
