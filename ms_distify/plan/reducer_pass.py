"""How gradients pass through a reducer where they are taken."""

from __future__ import annotations

import libcst as cst

from ..model import Edit, Insert, Replace, Wrap
from ..reading.bindings import literal
from ..reading.takes import PAIR, Take
from ..reading.tree import walk
from .spelling import Speller


class CannotReduce(Exception):
    """No place for a reducer, or no way through it; the message says why."""


def pass_through(take: Take, name: str, speller: Speller) -> list[Edit]:
    """Return the edits that pass a take's gradients through a reducer.

    Raises:
        CannotReduce: what the take gives is not taken apart in a way that is known here.
    """
    if take.mixed:
        return [_named(take, name, 2 if take.shape == PAIR else 1)]
    if take.shape != PAIR:
        return [Wrap(take.script, take.call, f"{name}(", ")")]
    tree, call = take.script.tree, take.call
    parent = tree.parent.get(call)
    if isinstance(parent, cst.Subscript):
        index = parent.slice[0].slice
        if isinstance(index, cst.Index) and literal(index.value) in (1, -1):
            return [Wrap(take.script, parent, f"{name}(", ")")]
    if isinstance(parent, cst.Return):
        return _returned(take, parent, name, speller)
    return [_named(take, name, 1)]


def _named(take: Take, name: str, depth: int) -> Edit:
    """Return the line ``grads = reducer(grads)`` behind ``loss, grads = ...``, ``loss, (of_inputs, grads) = ...``.

    Where the pair has a name of its own, its second part is replaced: ``both = (both[0], reducer(both[1]))``.
    """
    parent = take.script.tree.parent.get(take.call)
    if isinstance(parent, cst.Assign) and len(parent.targets) == 1 and _alone(take, parent) is not None:
        target: cst.BaseExpression | None = parent.targets[0].target
        whole = None
        for _ in range(depth):
            whole, target = target, _second(target)
        line = ""
        if isinstance(target, (cst.Name, cst.Attribute)):
            text = take.script.tree.text(target)
            line = f"{text} = {name}({text})"
        elif isinstance(whole, cst.Name):
            line = f"{whole.value} = ({whole.value}[0], {name}({whole.value}[1]))"
        if line:
            return Insert(take.script, _line(take, parent), "after", (line,), 60)
    shape = "loss, grads = ..." if not take.mixed else "loss, (of_inputs, grads) = ..."
    shape = "of_inputs, grads = ..." if take.mixed and take.shape != PAIR else shape
    raise CannotReduce(f"value and gradients are not taken apart here; write '{shape}' on a line of its own")


def _second(target: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """Return the second of two targets of an assignment."""
    if not isinstance(target, (cst.Tuple, cst.List)) or len(target.elements) != 2:
        return None
    if any(isinstance(element, cst.StarredElement) for element in target.elements):
        return None
    return target.elements[1].value


def _returned(take: Take, parent: cst.Return, name: str, speller: Speller) -> list[Edit]:
    """Take apart what a function returns as it is: its callers get the pair with reduced gradients."""
    text = take.script.tree.text(take.call)
    nested = any(isinstance(part, cst.Call) for arg in take.call.args for part in walk(arg.value))
    if _alone(take, parent) is None or "\n" in text or nested:
        raise CannotReduce(
            "value and gradients are not taken apart here; write 'loss, grads = ...' on a line of its own"
        )
    value, gradients = speller.fresh("value", "dp_value"), speller.fresh("gradients", "dp_gradients")
    return [
        Insert(take.script, _line(take, parent), "before", (f"{value}, {gradients} = {text}",), 60),
        Replace(take.script, take.call, f"{value}, {name}({gradients})"),
    ]


def _alone(take: Take, statement: cst.CSTNode) -> cst.SimpleStatementLine | None:
    """Return the line of a small statement if it stands alone on it, in a block."""
    line = take.script.tree.parent.get(statement)
    block = take.script.tree.parent.get(line) if line is not None else None
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return None
    return line if isinstance(block, (cst.Module, cst.IndentedBlock)) else None


def _line(take: Take, statement: cst.CSTNode) -> cst.SimpleStatementLine:
    line = _alone(take, statement)
    assert line is not None
    return line


__all__ = ["CannotReduce", "pass_through"]
