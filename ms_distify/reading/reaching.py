"""Which bindings of a name are in force at a place: found by walking backwards over statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from .expressions import dotted
from .tree import Tree, children

if TYPE_CHECKING:
    from .bindings import Binding, Scope

_LOOPS = (cst.For, cst.While)
# What may end a round of a loop in its middle.
_UNEVEN = (cst.Break, cst.Continue, cst.Try, cst.TryStar)


class Reaching:
    """Finds reaching definitions by walking backwards over statements."""

    def __init__(self, tree: Tree, scope: Scope, every: list[Binding]) -> None:
        self.tree = tree
        self.scope = scope
        self.every = every

    def inside(self, node: cst.CSTNode) -> list[Binding]:
        """Return the bindings that stand in a node."""
        start, end = self.tree.span(node)
        return [binding for binding in self.every if start <= binding.at < end]

    def before(self, node: cst.CSTNode) -> list[Binding]:
        """Return the bindings in force when ``node`` is evaluated."""
        found: list[Binding] = []
        # A walrus or an earlier part of the same statement is rare enough to count as possible.
        current = node
        for parent in self.tree.ancestors(node):
            body = getattr(parent, "body", None)
            if isinstance(body, (list, tuple)):
                index = next(i for i, item in enumerate(body) if item is current)
                for statement in reversed(body[:index]):
                    some, complete = self.effect(statement)
                    found.extend(some)
                    if complete:
                        # Nothing: the code is never reached. What it would read is then anybody's guess.
                        return _unique(found) or list(self.every)
            elif isinstance(parent, _LOOPS) and current is not getattr(parent, "iter", None):
                if isinstance(parent, cst.For) and current is parent.body:
                    target = [b for b in self.every if b.node is parent]
                    if target:
                        return _unique([*found, *target])
                found.extend(self._round(parent.body, next_one=True))
            elif isinstance(parent, cst.With) and current is parent.body:
                bound = [b for b in self.every if any(b.node is item for item in parent.items)]
                if bound:
                    return _unique([*found, *bound])
            elif isinstance(parent, (cst.ExceptHandler, cst.ExceptStarHandler)):
                bound = [b for b in self.every if b.node is parent]
                if bound:
                    return _unique([*found, *bound])
            elif isinstance(parent, (cst.Try, cst.TryStar)) and current is not parent.body:
                found.extend(self.inside(parent.body))
            if parent is self.scope.node:
                break
            current = parent
        found.extend(b for b in self.every if b.kind == "parameter")
        return _unique(found) or list(self.every)

    def effect(self, statement: cst.CSTNode) -> tuple[list[Binding], bool]:
        """Return the bindings a statement may leave behind, and whether it surely binds (or leaves)."""
        inside = self.inside(statement)
        if not inside:
            return [], _leaves(statement)
        if isinstance(statement, cst.SimpleStatementLine):
            last = max(inside, key=lambda binding: binding.at)
            return [last], True
        if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
            own = [b for b in inside if b.node is statement]
            return own or inside, bool(own)
        if isinstance(statement, cst.If):
            return self._if(statement)
        if isinstance(statement, cst.With):
            some, complete = self.suite(statement.body)
            items = [b for b in inside if any(b.node is item for item in statement.items)]
            return ([*some] if complete else [*some, *items]), complete or bool(items)
        if isinstance(statement, (cst.Try, cst.TryStar)):
            return self._try(statement)
        if isinstance(statement, _LOOPS):
            again = self._round(statement.body)
            rest = [b for b in inside if b.node is statement]
            return [*again, *rest, *(self.inside(statement.orelse) if statement.orelse is not None else ())], False
        return inside, False

    def _round(self, body: cst.BaseSuite, *, next_one: bool = False) -> list[Binding]:
        """Return the bindings that a round of a loop may leave behind, or to the next one (where a break never leads)."""
        inside, statements = self.inside(body), list(body.body)
        if statements and _ends_round(statements[-1]):
            statements.pop()  # what stands before it has all been run
        uneven = _UNEVEN[1:] if next_one else _UNEVEN
        if len(inside) > 1 and not any(isinstance(part, uneven) for item in statements for part in _of_round(item)):
            return self._statements(statements)[0]
        return inside

    def suite(self, block: cst.CSTNode) -> tuple[list[Binding], bool]:
        """Return what a block may leave behind, and whether it surely binds (or leaves)."""
        return self._statements(getattr(block, "body", ()))

    def _statements(self, statements: Sequence[cst.CSTNode]) -> tuple[list[Binding], bool]:
        found: list[Binding] = []
        for statement in reversed(statements):
            some, complete = self.effect(statement)
            found.extend(some)
            if complete:
                return found, True
        return found, False

    def _if(self, statement: cst.If) -> tuple[list[Binding], bool]:
        some, complete = self.suite(statement.body)
        orelse = statement.orelse
        if orelse is None:
            return some, False
        other, other_complete = self.effect(orelse) if isinstance(orelse, cst.If) else self.suite(orelse.body)
        return [*some, *other], complete and other_complete

    def _try(self, statement: cst.Try | cst.TryStar) -> tuple[list[Binding], bool]:
        some, complete = self.suite(statement.body)
        if statement.orelse is not None:
            more, more_complete = self.suite(statement.orelse.body)
            some, complete = [*some, *more], complete or more_complete
        for handler in statement.handlers:
            more, handled = self.suite(handler.body)
            some, complete = [*some, *more], complete and handled
        if statement.finalbody is not None:
            more, final = self.suite(statement.finalbody.body)
            if final:
                return more, True
            some = [*some, *more]
        return some, complete


def _leaves(statement: cst.CSTNode) -> bool:
    """Whether control never falls through a statement: return, raise, break, continue, sys.exit()."""
    if isinstance(statement, (cst.Return, cst.Raise, cst.Break, cst.Continue)):
        return True
    if isinstance(statement, cst.SimpleStatementLine):
        return any(_leaves(part) for part in statement.body)
    if isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call):
        return dotted(statement.value.func) in ("sys.exit", "exit", "quit", "os._exit")
    if isinstance(statement, cst.If) and statement.orelse is not None:
        other = statement.orelse
        rest = _leaves(other) if isinstance(other, cst.If) else suite_leaves(other.body)
        return suite_leaves(statement.body) and rest
    return False


def _ends_round(statement: cst.CSTNode) -> bool:
    """Whether a statement is a ``break`` or ``continue`` by itself."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    return isinstance(statement.body[0], (cst.Break, cst.Continue))


def _of_round(statement: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the parts of a statement, without those of loops in it, whose rounds are looked at by themselves."""
    stack = [statement]
    while stack:
        part = stack.pop()
        yield part
        if isinstance(part, _LOOPS):
            stack += [part.orelse] if part.orelse is not None else []
        else:
            stack += children(part)


def suite_leaves(block: cst.CSTNode) -> bool:
    """Whether control never falls out of the end of a block."""
    return any(_leaves(statement) for statement in getattr(block, "body", ()))


def _unique(bindings: list[Binding]) -> list[Binding]:
    return list(dict.fromkeys(bindings))
