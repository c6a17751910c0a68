"""Which decisions ranks take apart: from values of their own rows, and from what such values have counted or set."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from .bindings import dotted, literal
from .differs import Differs
from .flow import Flow, Selectors
from .roles import parts
from .script import Script
from .tree import children, values, walk

if TYPE_CHECKING:
    from .program import Program

_CHOOSING = frozenset({"argwhere", "nonzero", "flatnonzero", "where", "masked_select"})
_ENDS = frozenset({"sys.exit", "exit", "quit", "os._exit"})
_MAX_CALLERS = 8
Test = tuple[Script, cst.BaseExpression]
Call = tuple[Script, cst.Call]


class Decisions:
    """Finds conditions that come out differently on ranks."""

    def __init__(self, flow: Flow, differs: Differs) -> None:
        self._flow, self._differs = flow, differs
        self._found: dict[cst.CSTNode, str] = {}

    def what(self, script: Script, test: cst.BaseExpression) -> str:
        """Return what makes a condition differ between ranks, or nothing.

        That is a value of a rank's own in it; or something that was counted, kept or set under a condition on such a
        value, in this function, in an object of the program or in a function that is asked.
        """
        if test not in self._found:
            self._found[test] = self._what(script, test, set())
        return self._found[test]

    def _what(self, script: Script, test: cst.BaseExpression, seen: set[cst.CSTNode]) -> str:
        if test in self._found:
            return self._found[test]
        if test in seen:
            return ""  # a condition that depends on itself: the other ways tell
        seen.add(test)
        more = (self._what(*other, seen) for kind in (self.behind, self.given) for other in kind(script, test))
        return self._differs.value(script, test) or next(filter(None, more), "")

    def behind(self, script: Script, test: cst.BaseExpression) -> Iterator[Test]:
        """Yield the conditions under which what a condition reads was set, and those that decide what it calls return."""
        for part in values(test):
            if isinstance(part, cst.Call):
                yield from self._asked(script, part)
            if isinstance(part, cst.IfExp):
                yield script, part.test
            if isinstance(part, (cst.Name, cst.Attribute)):
                for home, place, value in self.settings(script, part):
                    yield from around(home, place)
                    for call in walk(value) if value is not None else ():
                        if isinstance(call, cst.Call):
                            yield from self._asked(home, call)

    def given(self, script: Script, test: cst.BaseExpression) -> Iterator[Test]:
        """Yield the conditions that names and attributes in a condition are set to, or given as: ``stop = waited > 5``."""
        for part in values(test):
            if isinstance(part, cst.Name):
                yield from self._passed(script, part)
            if isinstance(part, (cst.Name, cst.Attribute)):
                for home, _, value in self.settings(script, part):
                    if value is not None and (isinstance(value, cst.Name) or is_truth(value)):
                        yield home, value
            for home, value in self._returned(script, part):
                if isinstance(value, (cst.Name, cst.Attribute)) or is_truth(value):
                    yield home, value

    def _passed(self, script: Script, name: cst.Name) -> Iterator[Test]:
        """Yield what a parameter is given as where its function is called."""
        for binding in script.bindings.lookup(name):
            scope = binding.scope.node
            if binding.kind == "parameter" and isinstance(scope, (cst.FunctionDef, cst.Lambda)):
                for home, call in self._flow.call_sites(scope):
                    value = self._flow.argument(home, call, scope, binding.name)
                    if isinstance(value, tuple) and (
                        isinstance(value[1], (cst.Name, cst.Attribute)) or is_truth(value[1])
                    ):
                        yield value

    def _returned(self, script: Script, node: cst.CSTNode) -> Iterator[Test]:
        """Yield what a call of the program's functions, or a property, gives."""
        if isinstance(node, cst.Call):
            for home, function in self._flow.targets(script, node):
                if isinstance(function, cst.Lambda):
                    yield home, function.body
                elif function.name.value != "construct":
                    yield from ((home, value) for value in home.bindings.returns.get(function, ()))
        elif isinstance(node, cst.Attribute) and not isinstance(script.tree.parent.get(node), cst.Call):
            for origin in self._flow.origins(script, node.value):
                if origin.kind == "instance" and isinstance(origin.node, cst.ClassDef):
                    method = self._flow.method(origin.script, origin.node, node.attr.value)
                    if method is not None:
                        yield from ((method[0], value) for value in method[0].bindings.returns.get(method[1], ()))

    def tests_before(self, script: Script, node: cst.CSTNode) -> Iterator[Test]:
        """Yield the conditions of its function that decide whether a node is reached."""
        below = node
        for parent in script.tree.ancestors(node):
            if isinstance(parent, (cst.If, cst.IfExp, cst.While)) and below is not parent.test:
                yield script, parent.test
            elif isinstance(parent, cst.BooleanOperation) and below is parent.right:
                yield script, parent.left
            elif isinstance(parent, cst.For) and below is parent.body and (_sized_by(parent) or _counts(parent.iter)):
                yield script, parent.iter
            body = getattr(parent, "body", None)
            if isinstance(body, (list, tuple)):
                for statement in body:
                    if statement is below:
                        break
                    if isinstance(statement, cst.If) and jumps(statement):
                        yield script, statement.test
            if isinstance(parent, (cst.FunctionDef, cst.Lambda)):
                return
            below = parent

    def reached_by(self, script: Script, node: cst.CSTNode) -> Iterator[Test]:
        """Yield the conditions that decide whether a node is reached, in its function and on the way to its calls."""
        seen: set[cst.CSTNode] = set()
        stack: list[tuple[Script, cst.CSTNode, int]] = [(script, node, 0)]
        while stack:
            home, here, depth = stack.pop()
            yield from self.tests_before(home, here)
            scope = home.bindings.scope_of(here).function()
            if scope is not None and scope.node not in seen and depth < _MAX_CALLERS:
                seen.add(scope.node)
                callers = self._flow.call_sites(scope.node) or self._builders(home, scope.node)
                stack += [(where, call, depth + 1) for where, call in callers]

    def _builders(self, script: Script, method: cst.CSTNode) -> list[Call]:
        """Return where objects are built whose method only a library calls, as it does with callbacks."""
        scope = script.bindings.scopes[method].parent if isinstance(method, cst.FunctionDef) else None
        return self._built.get(scope.node, []) if scope is not None and scope.kind == "class" else []

    @cached_property
    def _built(self) -> dict[cst.CSTNode, list[Call]]:
        """For each class of the program, the calls that build an object of it or of a class below it."""
        found: dict[cst.CSTNode, list[Call]] = {}
        for script in self._flow.project.scripts():
            for call in script.bindings.calls:
                for origin in self._flow.origins(script, call):
                    if origin.kind == "instance" and isinstance(origin.node, cst.ClassDef):
                        for _, cls in self._flow.ancestry(origin.script, origin.node):
                            found.setdefault(cls, []).append((script, call))
        return found

    def apart(self, program: Program, script: Script, node: cst.CSTNode) -> tuple[str, str] | None:
        """Return where and by what ranks part on the way to a node, None if nothing is seen that parts them."""
        return next(((place, what) for place, what, _ in self.parting(program, script, node)), None)

    def parting(self, program: Program, script: Script, node: cst.CSTNode) -> Iterator[tuple[str, str, Test | None]]:
        """Yield where and by what ranks part on the way to a node, with the condition if it is on values of their own."""
        for home, test in self.reached_by(script, node):
            clock, ranks = program.clock(home, test), program.mentions_rank(home, test)
            if clock or (ranks and not program.counts_ranks(home, test)):
                yield home.where(test), clock or "the rank", None
                continue
            what = self.what(home, test)
            if what:
                yield home.where(test), what, (home, test)

    def _asked(self, script: Script, call: cst.Call) -> Iterator[Test]:
        """Yield the conditions that decide what a function of the program returns."""
        for home, function in self._flow.targets(script, call):
            body = function.body if isinstance(function, cst.FunctionDef) else None
            if body is None or getattr(function, "name", cst.Name("x")).value == "construct":
                continue
            for part in parts(body):
                if isinstance(part, cst.If) and jumps(part, returns=True):
                    yield home, part.test

    def settings(
        self, script: Script, node: cst.Name | cst.Attribute
    ) -> Iterator[tuple[Script, cst.CSTNode, cst.BaseExpression | None]]:
        """Yield where a name or attribute is set, or put into, with what it is set to (None where that is a part)."""
        name = dotted(node)
        if isinstance(node, cst.Name):
            for binding in script.bindings.lookup(node):
                if binding.kind == "assign":
                    yield script, binding.node, picked(binding.value, binding.path)
                elif binding.kind == "augment":
                    yield script, binding.node, getattr(binding.node, "value", None)
        else:
            owners = self._owners(script, node.value)
            for home, target, value, path in self._flow.project.attribute_assignments(node.attr.value):
                if (home is script and dotted(target) == name) or (owners & self._owners(home, target.value)):
                    yield home, target, picked(value, path)
        for call in script.bindings.calls:
            func = call.func
            if (
                isinstance(func, cst.Attribute)
                and func.attr.value in ("append", "extend")
                and name is not None
                and dotted(func.value) == name
            ):
                yield script, call, None

    def _owners(self, script: Script, node: cst.BaseExpression) -> set[cst.CSTNode]:
        """Return the classes of the program that an object may be of."""
        return {origin.node for origin in self._flow.origins(script, node) if origin.kind == "instance"}


def is_truth(value: cst.CSTNode) -> bool:
    """Whether an expression gives true or false, as far as it shows itself."""
    if isinstance(value, cst.UnaryOperation):
        return isinstance(value.operator, cst.Not)
    return isinstance(value, (cst.Comparison, cst.BooleanOperation)) or any(
        literal(value) is truth for truth in (True, False)
    )


def picked(value: cst.BaseExpression | None, path: Selectors) -> cst.BaseExpression | None:
    """Return the expression that a path of ``a, b = x, y`` leads to, None where it leads into what is no tuple here."""
    for _, key in path:
        if not isinstance(value, (cst.Tuple, cst.List)) or not isinstance(key, int) or key >= len(value.elements):
            return None
        value = value.elements[key].value
    return value


def around(script: Script, node: cst.CSTNode) -> Iterator[Test]:
    """Yield the conditions around a node, up to its function; of loops over chosen values, what they go over."""
    below = node
    for parent in script.tree.ancestors(node):
        if isinstance(parent, (cst.FunctionDef, cst.Lambda)):
            return
        if isinstance(parent, (cst.If, cst.IfExp)) and below is not parent.test:
            yield script, parent.test
        elif isinstance(parent, cst.For) and below is parent.body and _sized_by(parent):
            yield script, parent.iter
        below = parent


def _sized_by(loop: cst.For) -> bool:
    """Whether a loop goes over values chosen one by one, ``np.argwhere(losses > limit)``: how many depends on them."""
    for part in walk(loop.iter):
        if isinstance(part, (cst.Comparison, cst.BooleanOperation)):
            return True
        if isinstance(part, cst.Call) and isinstance(part.func, cst.Attribute) and part.func.attr.value in _CHOOSING:
            return True
    return False


def _counts(rows: cst.BaseExpression) -> bool:
    return isinstance(rows, cst.Call) and isinstance(rows.func, cst.Name) and rows.func.value == "range"


def exits(node: cst.CSTNode) -> bool:
    """Whether a call ends the program as if all were well; after a failure the launcher ends the other ranks."""
    if not isinstance(node, cst.Call) or dotted(node.func) not in _ENDS:
        return False
    status = node.args[0].value if node.args else None
    return status is None or literal(status) in (None, 0)


def jumps(statement: cst.If, *, returns: bool = False) -> bool:
    """Whether an ``if`` may leave the block it stands in, or end the program; with ``returns``, only by ``return``."""
    stack: list[cst.CSTNode] = [statement.body]
    if returns and statement.orelse is not None:
        stack.append(statement.orelse)
    while stack:
        node = stack.pop()
        if isinstance(node, cst.Return) or (not returns and isinstance(node, (cst.Continue, cst.Break))):
            return True
        if not returns and isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
            if dotted(node.value.func) in _ENDS:
                return True
        if not isinstance(node, (cst.FunctionDef, cst.For, cst.While, cst.BaseExpression)):
            stack.extend(children(node))
    return False


__all__ = ["Decisions", "around", "exits", "is_truth", "jumps", "picked"]
