"""Gradients taken by hand are averaged over the ranks, once, before anything looks at them.

``value_and_grad`` and its relatives reduce nothing: ranks drift apart and nothing says so (FACTS 3). A
``nn.DistributedGradReducer`` on the weights whose gradients are taken is built once, after init, and the gradients pass
through it where they come into being: before clipping, a finite check or a projection, once for each contribution that
is accumulated. On one card ``nn.Identity`` stands in its place, which changes nothing (FACTS 5). ``Model.train``,
``nn.TrainOneStepCell`` and ``nn.TrainOneStepWithLossScaleCell`` average by themselves and get no reducer.

Before::

    optimizer = nn.SGD(net.trainable_params(), 0.1)
    grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)
    for x, y in train.create_tuple_iterator():
        loss, grads = grad_fn(x, y)
        optimizer(grads)

After::

    optimizer = nn.SGD(net.trainable_params(), 0.1)
    grad_reducer = nn.DistributedGradReducer(optimizer.parameters) if rank_size is not None else nn.Identity()
    grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)
    for x, y in train.create_tuple_iterator():
        loss, grads = grad_fn(x, y)
        grads = grad_reducer(grads)
        optimizer(grads)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import Decision, Move
from ..plan.averaged import Averaged
from ..plan.reducer_places import owner_of
from ..plan.reducers import CannotReduce
from ..reading.gradients import Application, Root, Take
from ..reading.tree import walk
from . import CHANGED, KEPT, REFUSED, Context, decide, rule

CODE = "MSD301"


@rule(CODE, "gradients taken by hand are averaged")
def check(context: Context) -> Iterator[Decision]:
    """Put a reducer behind every take that an optimizer applies; name the steps that average by themselves."""
    program = context.program
    fed: set[cst.CSTNode] = set()
    averaged = Averaged(program, context.startup)
    ways = {application: averaged.roots(application) for application in program.gradients.applications}
    for take in _unevenly(ways):
        fed.add(take.call)
        message = (
            "these gradients are averaged for one optimizer and not for another; reduce them once, where they are taken"
        )
        yield decide("MSD302", REFUSED, take.script, take.call, message)
    for application, roots in ways.items():
        yield from _application(context, application, roots, averaged, fed)
    for take in program.gradients.takes.values():
        if take.call not in fed and _never_built(context, take):
            message = "these gradients are taken in a class that this program never builds"
            yield decide(CODE, KEPT, take.script, take.call, message)
        elif take.call not in fed and take.weights is not None and program.hand_updates:
            script, update = program.hand_updates[0]
            message = (
                f"gradients of weights that no optimizer applies, while line {script.line(update)} changes weights by hand: "
                "they would not be averaged; apply them with an optimizer"
            )
            yield decide("MSD302", REFUSED, take.script, take.call, message)
        elif take.call not in fed:
            message = "these gradients are only read, no optimizer applies them: no reducer"
            yield decide(CODE, KEPT, take.script, take.call, message)
    for script, call in program.steps:
        for origin in program.flow.called(script, call):
            if origin.kind == "call" and names.is_train_cell(origin.qualified):
                cell = origin.qualified.rpartition(".")[2]
                yield decide(CODE, KEPT, script, call, f"{cell} averages its gradients itself in data parallel")
    for sink in program.roles.sinks:
        if sink.role == "train" and sink.sure and isinstance(sink.node, cst.Call) and "." in sink.what:
            yield decide(
                CODE, KEPT, sink.script, sink.node, f"{sink.what} averages its gradients itself in data parallel"
            )


def _application(
    context: Context, application: Application, found: list[Root], averaged: Averaged, fed: set[cst.CSTNode]
) -> Iterator[Decision]:
    script, call = application.script, application.call
    by_take: dict[cst.CSTNode, list[Root]] = {}
    for root in found:
        by_take.setdefault(root.take.call, []).append(root)
    if not by_take:
        where = ""
        if application.lost:
            lost = application.lost[0]
            where = f" beyond {lost.script.where(lost.node)} ({lost.reason or lost.qualified or 'not a gradient call'})"
        message = f"the gradient given to this optimizer cannot be followed{where}; take it with value_and_grad in this program"
        yield decide("MSD302", REFUSED, script, call, message)
    for roots in by_take.values():
        take = roots[0].take
        if take.call in fed:
            continue
        fed.add(take.call)
        most = max(len(root.reducers) for root in roots)
        clipped = next((name for root in roots for name, _ in root.before if _looks(name)), "")
        trouble = "these gradients pass through two reducers; take one out" if most > 1 else ""
        if most == 1 and clipped:
            yield _reduce_first(take, roots, clipped)
            continue
        trouble = trouble or averaged.trouble(application, roots)
        if trouble:
            yield decide("MSD302", REFUSED, take.script, take.call, trouble)
        elif most == 1:
            yield decide("MSD304", KEPT, take.script, take.call, "these gradients pass through a reducer already")
        else:
            yield _reduce(context, take, application)


def _never_built(context: Context, take: Take) -> bool:
    """Whether a take stands in a class whose name occurs nowhere in the program but in the class itself."""
    owner = owner_of(take.script, take.call)
    if owner is None:
        return False
    name = re.compile(rf"\b{re.escape(owner.name.value)}\b")
    inside = name.findall(take.script.tree.text(owner))
    found = [match for script in context.program.scripts for match in name.findall(script.source.text)]
    return len(found) == len(inside)


def _reduce(context: Context, take: Take, application: Application) -> Decision:
    try:
        name, edits = context.reducers.reduce(take, application)
    except CannotReduce as reason:
        return decide("MSD302", REFUSED, take.script, take.call, f"gradients that nothing averages: {reason}")
    where = application.script.where(application.call)
    message = f"gradients applied at {where}: averaged by {name} before anything reads them"
    return decide(CODE, CHANGED, take.script, take.call, message, *edits)


def _reduce_first(take: Take, roots: list[Root], clipped: str) -> Decision:
    """Move the user's reducer in front of what looks at the gradients: a line ``grads = reducer(grads)`` of the same block."""
    script, tree = take.script, take.script.tree
    message = f"{clipped} looks at these gradients before they are averaged; reduce them first"
    reducers = {call for root in roots for _, call in root.reducers}
    taken = tree.statement(take.call)
    block = tree.parent.get(taken)
    line = tree.statement(next(iter(reducers)))
    name = _renamed(line, reducers)
    if len(reducers) > 1 or not name or not _binds(taken, name):
        return decide("MSD302", REFUSED, script, take.call, message)
    if not isinstance(block, (cst.Module, cst.IndentedBlock)) or tree.parent.get(line) is not block:
        return decide("MSD302", REFUSED, script, take.call, message)
    behind = block.body[block.body.index(taken) + 1]
    message = f"averaged by the reducer of line {script.line(line)}, which moves up in front of {clipped}"
    return decide(CODE, CHANGED, script, take.call, message, Move(script, line, behind))


def _renamed(line: cst.CSTNode, reducers: set[cst.Call]) -> str:
    """Return the name in a line ``name = reducer(name)``, or nothing."""
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1 or not isinstance(line.body[0], cst.Assign):
        return ""
    assign = line.body[0]
    if len(assign.targets) != 1 or assign.value not in reducers or not isinstance(assign.value, cst.Call):
        return ""
    target, args = assign.targets[0].target, assign.value.args
    if not isinstance(target, cst.Name) or len(args) != 1 or not isinstance(args[0].value, cst.Name):
        return ""
    return target.value if args[0].value.value == target.value else ""


def _binds(line: cst.CSTNode, name: str) -> bool:
    """Whether a line assigns a name, alone or in a tuple."""
    if not isinstance(line, cst.SimpleStatementLine) or not isinstance(line.body[-1], cst.Assign):
        return False
    targets = [part for target in line.body[-1].targets for part in walk(target.target)]
    return any(isinstance(part, cst.Name) and part.value == name for part in targets)


def _unevenly(ways: dict[Application, list[Root]]) -> Iterator[Take]:
    """Yield the takes that reach one optimizer through a reducer and another without."""
    levels: dict[Take, set[bool]] = {}
    for roots in ways.values():
        by_take: dict[Take, bool] = {}
        for root in roots:
            by_take[root.take] = by_take.get(root.take, False) or bool(root.reducers)
        for take, reduced in by_take.items():
            levels.setdefault(take, set()).add(reduced)
    yield from (take for take, seen in levels.items() if len(seen) > 1)


def _looks(name: str) -> bool:
    """Whether a call decides on or cuts values, judged by its name: clipping, norms, finite checks."""
    last = name.rpartition(".")[2].lower()
    return any(word in last for word in ("clip", "finite", "overflow", "centraliz"))
