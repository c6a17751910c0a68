"""What is constant in a context: the values that a call fixes, and the branches it thereby rules out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from .expressions import literal
from .origin import Edge
from .reaching import suite_leaves
from .script import Script

if TYPE_CHECKING:
    from .flow import Flow


def constant(flow: Flow, script: Script, node: cst.CSTNode | None, calls: tuple[Edge, ...] = ()) -> object:
    """Return the value of an expression where it is a literal in this context, ``...`` where it is not."""
    value = literal(node)
    if value is not ... or not isinstance(node, cst.BaseExpression):
        return value
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        inner = constant(flow, script, node.expression, calls)
        return ... if inner is ... else not inner
    if isinstance(node, cst.BooleanOperation):
        return _boolean(flow, script, node, calls)
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        return _compare(flow, script, node, calls)
    if isinstance(node, (cst.Name, cst.Attribute)):
        found = flow.origins(script, node, calls)
        if found and all(o.kind == "literal" and not o.selectors for o in found):
            values = [literal(o.node) for o in found]
            if all(type(v) is type(values[0]) and v == values[0] for v in values):
                return values[0]
    return ...


def _boolean(flow: Flow, script: Script, node: cst.BooleanOperation, calls: tuple[Edge, ...]) -> object:
    left = constant(flow, script, node.left, calls)
    right = constant(flow, script, node.right, calls)
    decides = isinstance(node.operator, cst.Or)
    for value in (left, right):
        if value is not ... and bool(value) is decides:
            return decides
    return ... if left is ... or right is ... else right


def _compare(flow: Flow, script: Script, node: cst.Comparison, calls: tuple[Edge, ...]) -> object:
    target = node.comparisons[0]
    left = constant(flow, script, node.left, calls)
    operator = target.operator
    if isinstance(operator, (cst.In, cst.NotIn)):
        if left is ... or not isinstance(target.comparator, (cst.Tuple, cst.List, cst.Set)):
            return ...
        options = [literal(element.value) for element in target.comparator.elements]
        if ... in options:
            return ...
        return (left in options) is isinstance(operator, cst.In)
    right = constant(flow, script, target.comparator, calls)
    if left is ... or right is ...:
        return ...
    if isinstance(operator, (cst.Equal, cst.Is)):
        return left == right
    if isinstance(operator, (cst.NotEqual, cst.IsNot)):
        return left != right
    return ...


def possible(flow: Flow, script: Script, node: cst.CSTNode, calls: tuple[Edge, ...]) -> bool:
    """Whether ``node`` can be reached in a context, as far as constants given by its calls tell.

    Neither an ``if`` around it says no, nor one before it that says yes and leaves the function. Without a
    context
    everything is possible: a flag at the head of a script is there to be switched.
    """
    if not calls:
        return True
    below = node
    for parent in script.tree.ancestors(node):
        if isinstance(parent, (cst.If, cst.IfExp)) and below is not parent.test:
            value = constant(flow, script, parent.test, calls)
            if value is not ... and bool(value) is not (below is parent.body):
                return False
        body = getattr(parent, "body", None)
        if isinstance(body, (list, tuple)) and any(_left(flow, script, s, calls) for s in _before(body, below)):
            return False
        if isinstance(parent, (cst.FunctionDef, cst.Lambda)):
            break
        below = parent
    return True


def _before(body: list[cst.CSTNode] | tuple[cst.CSTNode, ...], statement: cst.CSTNode) -> list[cst.CSTNode]:
    index = next((i for i, item in enumerate(body) if item is statement), 0)
    return list(body[:index])


def _left(flow: Flow, script: Script, statement: cst.CSTNode, calls: tuple[Edge, ...]) -> bool:
    """Whether a statement is an ``if`` that surely leaves its block in this context."""
    if not isinstance(statement, cst.If) or not (suite_leaves(statement.body) or statement.orelse is not None):
        return False
    value = constant(flow, script, statement.test, calls)
    if value is ...:
        return False
    if value:
        return suite_leaves(statement.body)
    other = statement.orelse
    if isinstance(other, cst.If):
        return _left(flow, script, other, calls)
    return other is not None and suite_leaves(other.body)
