"""What conditions say on many ranks: a flag that follows the parallel mode is on there, one that is False stays off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ..mindspore import names
from .bindings import literal
from .origin import Edge, Origin
from .script import Script

if TYPE_CHECKING:
    from .program import Program

_MAX_DEPTH = 20
_Calls = tuple[Edge, ...]
# Attributes of MindSpore's own train cells that follow the parallel mode.
_INHERITED_FLAGS = frozenset({"reducer_flag", "is_distributed"})
_MODE = "data_parallel"  # what a converted program runs in, by the name MindSpore gives it


class ManyRanks:
    """Reads conditions as they are on the ranks of a launched program: data parallel, at least two ranks."""

    def __init__(self, program: Program) -> None:
        self.program, self.flow = program, program.flow

    def reached(self, script: Script, node: cst.CSTNode, calls: _Calls = (), depth: int = 0) -> bool | None:
        """Return whether the conditions around a node, up to its function, let it run; None where that is not known."""
        result: bool | None = True
        below = node
        for parent in script.tree.ancestors(node):
            if isinstance(parent, (cst.FunctionDef, cst.Lambda)):
                break
            if isinstance(parent, (cst.If, cst.IfExp)) and below is not parent.test:
                value = self.truth(script, parent.test, calls, depth + 1)
                if value is not None and below is parent.orelse:
                    value = not value
                result = _both(result, value)
            below = parent
        return result

    def unknown(self, script: Script, node: cst.CSTNode) -> cst.BaseExpression | None:
        """Return the innermost condition around a node of which it is not known whether it lets the node run."""
        below = node
        for parent in script.tree.ancestors(node):
            if isinstance(parent, (cst.FunctionDef, cst.Lambda)):
                return None
            if isinstance(parent, (cst.If, cst.IfExp)) and below is not parent.test:
                if self.truth(script, parent.test) is None:
                    return parent.test
            below = parent
        return None

    def truth(self, script: Script, test: cst.CSTNode, calls: _Calls = (), depth: int = 0) -> bool | None:
        """Return whether a condition holds on many ranks; None where that is not known."""
        if depth > _MAX_DEPTH or not isinstance(test, cst.BaseExpression):
            return None
        value = literal(test)
        if value is not ...:
            return bool(value)
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            inner = self.truth(script, test.expression, calls, depth + 1)
            return None if inner is None else not inner
        if isinstance(test, cst.BooleanOperation):
            left = self.truth(script, test.left, calls, depth + 1)
            right = self.truth(script, test.right, calls, depth + 1)
            return _both(left, right) if isinstance(test.operator, cst.And) else _either(left, right)
        if isinstance(test, cst.Comparison):
            return self._compared(script, test, calls) if len(test.comparisons) == 1 else None
        if isinstance(test, cst.IfExp):
            chosen = self.truth(script, test.test, calls, depth + 1)
            if chosen is None:
                return None
            return self.truth(script, test.body if chosen else test.orelse, calls, depth + 1)
        if isinstance(test, cst.Call) and self.flow.qualified(script, test) == "bool" and len(test.args) == 1:
            return self.truth(script, test.args[0].value, calls, depth + 1)
        if isinstance(test, (cst.Name, cst.Attribute, cst.Call)):
            return self._followed(script, test, calls, depth)
        return None

    def _followed(self, script: Script, test: cst.BaseExpression, calls: _Calls, depth: int) -> bool | None:
        """Return the truth of what a name, attribute or call can be, if all of it agrees."""
        if self._is_inherited(script, test):
            return True
        values: list[tuple[Origin, bool | None, bool | None]] = []
        for origin in self.flow.origins(script, test, calls):
            value = None
            if not origin.selectors and origin.node is not test:
                value = self.truth(origin.script, origin.node, origin.calls, depth + 1)
            reached = self.reached(origin.script, origin.node, origin.calls, depth + 1)
            if reached is not False:
                values.append((origin, value, reached))
        last = [one for one in values if not any(_replaces(other, one) for other in values)]
        found = {value for _, value, _ in last}
        return found.pop() if len(found) == 1 else None

    def _is_inherited(self, script: Script, test: cst.BaseExpression) -> bool:
        """Whether this is a flag that a MindSpore train cell sets in its own ``__init__``, and no class here does."""
        if not isinstance(test, cst.Attribute) or test.attr.value not in _INHERITED_FLAGS:
            return False
        if not all(origin.kind == "unknown" and origin.node is test for origin in self.flow.origins(script, test)):
            return False
        return any(
            origin.kind == "instance"
            and isinstance(origin.node, cst.ClassDef)
            and any(map(names.is_train_cell, self.flow.library_bases(origin.script, origin.node)))
            for origin in self.flow.origins(script, test.value)
        )

    # -- comparisons -------------------------------------------------------------------------------------------------

    def _compared(self, script: Script, test: cst.Comparison, calls: _Calls) -> bool | None:
        operator, right = test.comparisons[0].operator, test.comparisons[0].comparator
        if isinstance(operator, (cst.In, cst.NotIn)):
            mode = self._mode(script, test.left, calls)
            choices = self._choices(script, right, calls)
            if not mode or choices is None:
                return None
            return (mode in choices) is isinstance(operator, cst.In)
        modes = self._mode(script, test.left, calls), self._mode(script, right, calls)
        if all(modes):
            if isinstance(operator, (cst.Equal, cst.Is)):
                return modes[0] == modes[1]
            return modes[0] != modes[1] if isinstance(operator, (cst.NotEqual, cst.IsNot)) else None
        limit = self.flow.constant(script, right, calls)
        if limit is not ... and self.program.counts_ranks(script, test.left):
            return _size_compared(operator, limit)
        value = self.flow.constant(script, test, calls)
        return None if value is ... else bool(value)

    def _choices(self, script: Script, node: cst.BaseExpression, calls: _Calls) -> set[str] | None:
        """Return the parallel modes in a tuple or list; None if some of it is none."""
        if isinstance(node, cst.Name):
            found = {origin.node for origin in self.flow.origins(script, node, calls)}
            only = found.pop() if len(found) == 1 else node
            node = only if isinstance(only, cst.BaseExpression) else node
        if not isinstance(node, (cst.Tuple, cst.List, cst.Set)):
            return None
        modes = {self._mode(script, element.value, calls) for element in node.elements}
        return None if "" in modes else modes

    def _mode(self, script: Script, node: cst.BaseExpression, calls: _Calls) -> str:
        """Return the parallel mode that an expression gives, or nothing."""
        found = set()
        for origin in self.flow.origins(script, node, calls):
            call, value = origin.node, literal(origin.node)
            if origin.kind == "external" and origin.qualified.startswith(names.PARALLEL_MODE + "."):
                found.add(origin.qualified.rpartition(".")[2].lower())
            elif origin.kind == "literal" and isinstance(value, str):
                found.add(value)
            elif origin.qualified == names.GET_PARALLEL and isinstance(call, cst.Call) and call.args:
                found.add(_MODE if literal(call.args[0].value) == "parallel_mode" else "")
            elif origin.qualified.endswith("._get_parallel_mode"):
                found.add(_MODE)
            else:
                return ""
        return found.pop() if len(found) == 1 else ""


def _replaces(later: tuple[Origin, bool | None, bool | None], earlier: tuple[Origin, bool | None, bool | None]) -> bool:
    """Whether one assigned value surely takes the place of another: same target, same function, below it."""
    (new, _, reached), (old, _, _) = later, earlier
    if reached is not True or new.script is not old.script:
        return False
    tree, bindings = new.script.tree, new.script.bindings
    ways = tree.parent.get(new.node), tree.parent.get(old.node)
    if not isinstance(ways[0], cst.Assign) or not isinstance(ways[1], cst.Assign):
        return False
    if bindings.scope_of(new.node) is not bindings.scope_of(old.node) or tree.start(new.node) <= tree.start(old.node):
        return False
    targets = [{tree.text(target.target) for target in way.targets} for way in ways if isinstance(way, cst.Assign)]
    return targets[0] == targets[1]


def _size_compared(operator: cst.BaseCompOp, limit: object) -> bool | None:
    """Return what comparing the number of ranks, two or more, with a constant gives."""
    if limit is None:
        return isinstance(operator, (cst.IsNot, cst.NotEqual))
    if not isinstance(limit, int):
        return None
    if isinstance(operator, cst.GreaterThan):
        return True if limit <= 1 else None
    if isinstance(operator, cst.GreaterThanEqual):
        return True if limit <= 2 else None
    if isinstance(operator, cst.LessThan):
        return False if limit <= 2 else None
    if isinstance(operator, cst.LessThanEqual):
        return False if limit <= 1 else None
    if limit <= 1 and isinstance(operator, (cst.Equal, cst.Is)):
        return False
    return True if limit <= 1 and isinstance(operator, (cst.NotEqual, cst.IsNot)) else None


def _both(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _either(left: bool | None, right: bool | None) -> bool | None:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False
