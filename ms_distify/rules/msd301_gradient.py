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
    for take in _unevenly(program.gradients.applications):
        fed.add(take.call)
        message = (
            "these gradients are averaged for one optimizer and not for another; reduce them once, where they are taken"
        )
        yield decide("MSD302", REFUSED, take.script, take.call, message)
    for application in program.gradients.applications:
        yield from _application(context, application, fed)
    for take in program.gradients.takes.values():
        if take.call not in fed and take.weights is not None and program.hand_updates:
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


def _application(context: Context, application: Application, fed: set[cst.CSTNode]) -> Iterator[Decision]:
    script, call = application.script, application.call
    by_take: dict[cst.CSTNode, list[Root]] = {}
    for root in application.roots:
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
        counts = {len(root.reducers) for root in roots}
        most = max(counts)
        flag = _own_condition(context, roots)
        clipped = next((name for root in roots for name in root.before if _looks(name)), "")
        if take.call in fed:
            continue
        fed.add(take.call)
        if most > 1:
            message = "these gradients pass through two reducers; take one out"
            yield decide("MSD302", REFUSED, take.script, take.call, message)
        elif most == 1 and clipped:
            yield _reduce_first(take, roots, clipped)
        elif most == 1 and flag and not context.startup.inits:
            message = (
                f"these gradients are averaged only under '{flag}', which nothing here ties to the ranks; "
                "reduce them whenever RANK_SIZE is above 1"
            )
            yield decide("MSD302", REFUSED, take.script, take.call, message)
        elif any(_by_hand(context, root) for root in roots):
            message = "these gradients pass through an AllReduce of the program's own; use nn.DistributedGradReducer"
            yield decide("MSD302", REFUSED, take.script, take.call, message)
        elif most == 1:
            yield decide("MSD304", KEPT, take.script, take.call, "these gradients pass through a reducer already")
        else:
            yield _reduce(context, take, application)


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
    if len(reducers) > 1 or tree.parent.get(line) is not block or not name or not _binds(taken, name):
        return decide("MSD302", REFUSED, script, take.call, message)
    body = block.body  # type: ignore[union-attr]
    behind = body[body.index(taken) + 1]
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


def _unevenly(applications: list[Application]) -> Iterator[Take]:
    """Yield the takes that reach one optimizer through a reducer and another without."""
    levels: dict[Take, set[bool]] = {}
    for application in applications:
        by_take: dict[Take, bool] = {}
        for root in application.roots:
            by_take[root.take] = by_take.get(root.take, False) or bool(root.reducers)
        for take, reduced in by_take.items():
            levels.setdefault(take, set()).add(reduced)
    yield from (take for take, seen in levels.items() if len(seen) > 1)


def _looks(name: str) -> bool:
    """Whether a call decides on or cuts values, judged by its name: clipping, norms, finite checks."""
    last = name.rpartition(".")[2].lower()
    return any(word in last for word in ("clip", "finite", "overflow", "centraliz"))


def _by_hand(context: Context, root: Root) -> bool:
    return names.ALL_REDUCE + "()" in root.through


def _own_condition(context: Context, roots: list[Root]) -> str:
    """Return a condition of the program's own under which alone a reducer is built or used, or nothing.

    Conditions on the parallel mode, the rank or the group size hold on many ranks.
    """
    flow, program = context.program.flow, context.program
    for root in roots:
        for script, call in root.reducers:
            places = [(script, call)]
            built = [o for o in flow.called(script, call) if o.qualified == names.GRAD_REDUCER]
            places += [(o.script, o.node) for o in built if isinstance(o.node, cst.Call)]
            for home, node in places:
                below: cst.CSTNode = node
                for parent in home.tree.ancestors(node):
                    if isinstance(parent, (cst.FunctionDef, cst.Lambda)):
                        break
                    if isinstance(parent, (cst.If, cst.IfExp)) and below is not parent.test:
                        text = home.tree.text(parent.test)
                        if not _PARALLEL.search(text) and not program.mentions_rank(home, parent.test):
                            return text
                    below = parent
    return ""


# Not just "parallel": `if args.parallel` is a flag that the launcher knows nothing of.
_PARALLEL = re.compile(r"parallel_mode|reducer_flag|ParallelMode")
