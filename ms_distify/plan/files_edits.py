"""Edits by which rank 0 alone does something, and by which the others wait for it."""

from __future__ import annotations

import re
from collections.abc import Callable

import libcst as cst

from ..mindspore import names
from ..model import Edit, Guard, Insert, Need, Wrap
from ..reading.program import Program
from ..reading.script import Script
from ..reading.source import LINE_END
from ..reading.timeline import TRAIN
from ..reading.tree import values, walk
from .files import Files
from .files_alone import misses
from .helpers import Helpers

Site = tuple[Script, cst.Call]
Condition = tuple[str, tuple[Need, ...]]
OnlyRank0 = Callable[[Script, cst.CSTNode], Condition]


def rank_0_alone(script: Script, call: cst.Call, zero: str, needs: tuple[Need, ...]) -> Edit | None:
    """Return the edit that runs a call on rank 0 alone, None where its statement does more than that.

    Args:
        script: the file.
        call: a call whose value nobody needs.
        zero: a condition that is true on rank 0 and on one card.
        needs: the imports of the condition.
    """
    statement = script.tree.parent.get(call)
    if not isinstance(statement, cst.Expr) or any(isinstance(part, cst.NamedExpr) for part in walk(call)):
        return None
    line = script.tree.parent[statement]
    if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
        return Guard(script, line, zero, needs)
    # `if best: save()` on one line, or several statements on one
    return Wrap(script, call, "", f" if {zero} else None", needs)


def can_be_guarded(script: Script, statement: cst.CSTNode) -> bool:
    """Whether a statement can be put under a condition by indenting its lines."""
    start, end = script.tree.span(statement)
    text = script.source.text[start:end]
    parent = script.tree.parent.get(statement)
    if not isinstance(parent, (cst.Module, cst.IndentedBlock)):
        return False
    if isinstance(statement, cst.SimpleStatementLine):
        return True
    return not (LINE_END.search(text) and re.search(r"'''|\"\"\"|\\\r?\n", text))


def guard_and_wait(
    helpers: Helpers, files: Files, script: Script, node: cst.CSTNode, only: Condition, what: str
) -> tuple[list[Edit], str]:
    """Return the edits by which rank 0 alone runs the statement around a node and all ranks wait for it.

    Args:
        helpers: gives the function that waits.
        files: what is known about files.
        script: the file.
        node: the node; its statement, or the ``if`` around it that asks whether files are there, is guarded.
        only: a condition that is true on rank 0 and on one card, and its imports.
        what: what rank 0 does meanwhile, for the message of the time-out.

    Returns:
        The edits, and why there are none.
    """
    statement = line_of(script, node)
    condition, needs = only
    question = _asks_for_files(files, script, node)
    outer = question or statement
    if outer is None:
        return [], "it does not stand on a line of its own"
    if not files.alike(script, outer):
        return [], "ranks may not all come there"
    reason = misses(files, script, outer)
    if reason:
        return [], reason
    if files.waits & files.inside(script, outer):
        return [], "ranks wait for each other within it"
    if question is not None:
        edit: Edit = _and(script, question.test, condition, needs)
    elif isinstance(statement, (cst.SimpleStatementLine, cst.With)) and can_be_guarded(script, statement):
        edit = Guard(script, statement, condition, needs)
    else:
        return [], "its lines cannot be put under a condition"
    line, define = helpers.wait(script, what)
    return [edit, *define, Insert(script, outer, "after", (line,), 5)], ""


def settle(files: Files, edits: list[Edit]) -> None:
    """Remember that some edits of :func:`guard_and_wait` are taken: nobody else may wait in what they let rank 0 do."""
    for edit in edits:
        if isinstance(edit, (Guard, Insert)):
            files.alone.add(edit.statement)
            files.waits.add(edit.statement)
            files.apart |= files.inside(edit.script, edit.statement)


def prepare(
    program: Program, helpers: Helpers, files: Files, only: OnlyRank0
) -> dict[cst.Call, tuple[list[Edit], str]]:
    """Return, for each call that prepares data, the edits by which rank 0 does it, or why there are none.

    It is decided before all else about files: whatever such a preparation does, rank 0 does alone.
    """
    found: dict[cst.Call, tuple[list[Edit], str]] = {}
    visited = program.timeline.visited
    trained = min((visited[event.node] for event in program.timeline.of(TRAIN) if event.node in visited), default=0)
    sites = [(script, call) for script, call, _ in program.calls(*names.PREPARES) if call in visited]
    sites += [(script, call) for script, call, _ in program.calls(*names.FETCHES)]
    sites += [
        (script, call) for script, call, _ in program.calls(*names.COPIES) if visited.get(call, trained) < trained
    ]
    sites += [(script, call) for script, call in files.rows_saved() if call in visited]
    for script, call in sites:
        if not files.guarded(script, call):
            found[call] = prepared(program, helpers, files, script, call, only)
    for call, (edits, _) in found.items():
        taken = {edit.statement: edit.script for edit in edits if isinstance(edit, (Guard, Insert))}
        nested = {statement for statement in taken if statement in files.apart} - files.alone
        within = {
            part for statement, script in taken.items() for part in files.inside(script, statement)
        } - taken.keys()
        if nested or files.waits & within:
            found[call] = [], "ranks wait for each other around it or in it"
        else:
            settle(files, edits)
    return found


def prepared(
    program: Program, helpers: Helpers, files: Files, script: Script, call: cst.Call, only: OnlyRank0, depth: int = 0
) -> tuple[list[Edit], str]:
    """Return the edits by which rank 0 alone prepares what all ranks read, and all wait for it.

    The outermost statement that does nothing else is guarded: the call of the function that prepares, if there is one.

    Args:
        program: the program.
        helpers: gives the function that waits.
        files: what is known about files.
        script: the file.
        call: what writes; or a call of the function it stands in.
        only: gives, for a place, a condition that is true on rank 0 and on one card, and its imports.
        depth: how many functions around the writing call were left.
    """
    scope = script.bindings.scope_of(call).function()
    if scope is not None and depth < _MAX_CALLS:
        sites = program.flow.call_sites(scope.node)
        ways = [prepared(program, helpers, files, home, site, only, depth + 1) for home, site in sites]
        if ways and all(edits for edits, _ in ways):
            return [edit for edits, _ in ways for edit in edits], ""
    what = f"to finish {short(script, call)}"
    edits, reason = guard_and_wait(helpers, files, script, call, only(script, call), what)
    if not edits and depth == 0:
        edits = _group(helpers, files, script, call, only(script, call), what)
    return edits, reason


def _group(helpers: Helpers, files: Files, script: Script, call: cst.Call, only: Condition, what: str) -> list[Edit]:
    """``w = FileWriter(...)`` and the statements of the same block that use ``w``, one by one."""
    assign = script.tree.parent.get(call)
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return []
    target = assign.targets[0].target
    first = line_of(script, call)
    if not isinstance(target, cst.Name) or first is None or not files.alike(script, first):
        return []
    body = list(getattr(script.tree.parent[first], "body", ()))
    group = [
        statement
        for statement in body[next(i for i, item in enumerate(body) if item is first) :]
        if statement is first or any(isinstance(p, cst.Name) and p.value == target.value for p in values(statement))
    ]
    if not all(can_be_guarded(script, s) for s in group) or misses(files, script, *group):
        return []
    if files.waits & files.inside(script, *group):
        return []
    line, define = helpers.wait(script, what)
    guards = [Guard(script, statement, *only) for statement in group]
    return [*guards, *define, Insert(script, group[-1], "after", (line,), 5)]


_MAX_CALLS = 8
_TIGHT = (cst.UnaryOperation, cst.Call, cst.Name, cst.Attribute)


def _and(script: Script, test: cst.BaseExpression, condition: str, needs: tuple[Need, ...]) -> Wrap:
    """Return the edit that puts a condition in front of another."""
    first = f"({condition})" if " or " in condition else condition
    # The span of a test leaves out brackets around it, so these close around both conditions.
    left, right = ("", "") if isinstance(test, _TIGHT) and not test.lpar else ("(", ")")
    return Wrap(script, test, f"{first} and {left}", right, needs)


def _asks_for_files(files: Files, script: Script, node: cst.CSTNode) -> cst.If | None:
    """Return the nearest ``if`` around a node that asks which files are there, if it can be guarded itself."""
    for parent in script.tree.ancestors(node):
        if isinstance(parent, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            return None
        if isinstance(parent, cst.If) and files.looks_at_files(script, parent.test):
            alone = parent.orelse is None and line_of(script, parent.test) is parent
            inside = any(part is node for part in walk(parent.body))
            return parent if alone and inside else None
    return None


def waits_before(
    program: Program, helpers: Helpers, files: Files, reads: list[Site], written: Site
) -> tuple[list[Edit], str]:
    """Return the edits that make all ranks wait in front of what reads a file that rank 0 wrote.

    Args:
        program: the program.
        helpers: gives the function that waits.
        files: what is known about files.
        reads: the reading calls.
        written: the call that writes; reads that come before it in the course of the program need no wait.

    Returns:
        The edits, and why there are none where a read cannot be waited for.
    """
    edits: list[Edit] = []
    visited = program.timeline.visited
    trained = min((visited[e.node] for e in program.timeline.of(TRAIN) if e.node in visited), default=0)
    begun = visited.get(written[1], trained)
    for script, call in reads:
        if not _run(program, script, call):
            continue
        read = visited.get(call, trained)
        if read < trained <= begun:
            continue  # what it reads is from an earlier start; no rank writes before all have come to the training
        if read < begun:
            return [], f"the program reads it before, at {script.where(call)}; make it before the start"
        statement = line_of(script, call)
        if statement is None or not files.alike(script, call):
            return [], f"it is read at {script.where(call)}, where ranks cannot be made to wait for it"
        line, define = helpers.wait(script, f"to write what {short(script, call)} reads")
        edits += [*define, Insert(script, statement, "before", (line,), 60)]
    return edits, ""


def _run(program: Program, script: Script, call: cst.Call) -> bool:
    """Whether a call may be made at all: not in a function that this program has and does not use."""
    scope = script.bindings.scope_of(call).function()
    return (
        call in program.timeline.visited
        or scope is None
        or bool(program.flow.call_sites(scope.node))
        or not isinstance(script.tree.parent.get(script.tree.parent.get(scope.node, call)), (cst.Module, type(None)))
    )


def short(script: Script, node: cst.CSTNode) -> str:
    """Return the text of an expression on one line, cut where it is long."""
    text = " ".join(script.tree.text(node).split())
    return text if len(text) <= 60 else text[:57] + "..."


def line_of(script: Script, node: cst.CSTNode) -> cst.CSTNode | None:
    """Return the statement around a node in front of which a line can be put, None where its block is on one line."""
    statement = script.tree.statement(node)
    parent = script.tree.parent.get(statement)
    return statement if isinstance(parent, (cst.Module, cst.IndentedBlock)) else None


def waited_for(script: Script, helpers: Helpers, statement: cst.CSTNode, *, before: bool) -> bool:
    """Whether the statement right before (or behind) another one waits for rank 0 already."""
    block = script.tree.parent.get(statement)
    body = list(getattr(block, "body", ()))
    index = next((i for i, item in enumerate(body) if item is statement), -1)
    index += -1 if before else 1
    return 0 <= index < len(body) and helpers.waits(script, body[index])


__all__ = [
    "Condition",
    "can_be_guarded",
    "guard_and_wait",
    "line_of",
    "prepare",
    "prepared",
    "rank_0_alone",
    "settle",
    "short",
    "waited_for",
    "waits_before",
]
