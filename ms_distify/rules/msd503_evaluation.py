"""Evaluations are whole on every rank; with --shard-eval they are dealt over the ranks, and their sums are added up.

Whole data gives the same number on every rank, and is the default. A dataset that is trained on and evaluated too is
sharded for training, so each rank measures its own rows and prints its own number; that is noted.

With ``--shard-eval`` (``shard_eval = true``) each of N ranks takes its share of the batches. The batches themselves are
those of one card, none twice and none padded, so what is added up over them adds up to one card's sums: counts exactly,
losses but for rounding. The ranks exchange their sums once, behind the evaluation; in between nobody waits. A loop by
hand may count (``correct += ...``) in names that start at 0 and are read behind it; metrics of a ``Model`` may be
accuracy, loss, MAE, MSE and top-k accuracy, as names or objects. What else leaves an evaluation (lists, maxima, F1, AUC,
a ``break``) is refused by name, and so are evaluations that some ranks may not come to, that carry something from batch
to batch, or that draw from Python's or NumPy's generators. In a loop by hand each rank still reads the batches of
others, and computes with its own only. What is printed between batches is of a rank's own.

Before::

    correct, total = 0, 0
    for x, y in test.create_tuple_iterator():
        correct += int((net(x).argmax(1) == y).sum())
        total += len(y)
    print(correct / total)

After (with --shard-eval)::

    correct, total = 0, 0
    for x, y in rank_batches(test.create_tuple_iterator()):
        correct += int((net(x).argmax(1) == y).sum())
        total += len(y)
    correct, total = sum_over_ranks(correct, total)
    print(correct / total)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..model import Decision, Edit, Insert
from ..plan.alike import Alike, CannotAlike
from ..plan.draws import Draws
from ..plan.metrics import Metrics
from ..reading.leaving import Leaving, peeks
from ..reading.roles import Use
from ..reading.script import Script
from ..reading.sinks import Sink
from . import CHANGED, KEPT, NOTED, REFUSED, Context, decide, rule

CODE = "MSD503"
WAY_OUT = "without --shard-eval every rank evaluates whole data"
_SHARED = "{}: each rank evaluates its share of the batches, and the metrics sum over the ranks"
_ALIKE = "; what decides whether it runs is averaged over the ranks"


@rule(CODE, "evaluations: whole, or dealt and summed exactly")
def check(context: Context) -> Iterator[Decision]:
    """Note evaluations of the very dataset that trains; deal others where that is asked for."""
    noted: set[cst.CSTNode] = set()
    for site in context.program.roles.sites:
        ways = {use.way for use in site.uses_as("train")}
        for use in site.uses_as("eval"):
            if use.way in ways:
                noted.add(use.node)
                line = site.script.line(site.call)
                if context.settings.shard_eval:
                    message = f"evaluates the training data of line {line}, whose shards are padded; {WAY_OUT}"
                    yield decide(CODE, REFUSED, use.script, use.node, message)
                    continue
                message = f"evaluates the training data of line {line}: each rank sees its shard only"
                yield decide(CODE, NOTED, use.script, use.node, message)
    if context.settings.shard_eval:
        yield from _dealt(context, noted)
        return
    for sink in context.program.roles.sinks:
        if sink.role == "eval" and sink.node not in noted:
            dealt = context.helpers.is_around("part", sink.script, sink.dataset)
            message = f"{sink.what} evaluates whole data: the same number on every rank"
            yield decide(CODE, KEPT, sink.script, sink.node, _SHARED.format(sink.what) if dealt else message)


def _dealt(context: Context, noted: set[cst.CSTNode]) -> Iterator[Decision]:
    """Deal every evaluation over the ranks."""
    uses: dict[cst.CSTNode, list[Use]] = {}
    trains: set[cst.CSTNode] = set()
    for site in context.program.roles.sites:
        training = context.role(site)[0] == "train"
        ways = {use.way for use in site.uses_as("train")}
        for use in site.uses:
            uses.setdefault(use.node, []).append(use)
            if training and (use.way in ways or not ways):
                trains.add(use.node)
    metrics = Metrics(context.program)
    for sink in context.program.roles.sinks:
        if sink.node in noted:
            continue
        if sink.role == "eval" and (sink.sure or sink.node in uses) and not sink.what.endswith(".build"):
            yield from _model(context, metrics, sink, uses.get(sink.node, []))
        elif sink.node in context.program.evaluations.loops:
            if sink.node in trains and not _others(uses[sink.node], context):
                continue  # rows of a shard: noted where it is built
            yield _loop(context, sink, trains)


def _others(uses: list[Use], context: Context) -> bool:
    """Whether a loop reads a dataset that does not train, too."""
    return any(
        use in site.uses and context.role(site)[0] != "train" for use in uses for site in context.program.roles.sites
    )


def _model(context: Context, metrics: Metrics, sink: Sink, uses: list[Use]) -> Iterator[Decision]:
    """Deal the dataset of ``model.eval``, and let the model's metrics count over all ranks."""
    script, node = sink.script, sink.node
    if sink.dataset is None:
        yield decide(CODE, REFUSED, script, node, f"* or ** arguments hide what {sink.what} evaluates; {WAY_OUT}")
        return
    assert isinstance(node, cst.Call)
    hangs, edits = _together(context, script, node)
    trouble = hangs or _draws(context, uses)
    found, why = metrics.of(script, node)
    if trouble or why:
        yield decide(
            CODE, REFUSED, script, node, f"{sink.what} cannot be dealt over the ranks: {trouble or why}; {WAY_OUT}"
        )
        return
    message = _SHARED.format(sink.what) + (_ALIKE if edits else "")
    for home, told in found:
        if not context.helpers.is_around("metrics", home, told):
            edits += context.helpers.around("metrics", home, told)
    if not context.helpers.is_around("part", script, sink.dataset):
        edits += context.helpers.around("part", script, sink.dataset)
    yield decide(CODE, CHANGED if edits else KEPT, script, node, message, *edits)


def _loop(context: Context, sink: Sink, trains: set[cst.CSTNode]) -> Decision:
    """Deal the batches of a loop, and sum what it counts behind it."""
    script, loop = sink.script, sink.node
    around = context.program.evaluations.within(script, loop)
    if around is not None and around[2]:
        message = f"runs for each batch of the loop at {script.where(around[1])}, on whole data"
        return decide(CODE, KEPT, script, loop, message)
    if not isinstance(loop, cst.For):
        message = f"a comprehension over a dataset gives a list, which is no sum; {WAY_OUT}"
        return decide(CODE, REFUSED, script, loop, message)
    if peeks(loop):
        return decide(CODE, KEPT, script, loop, "looks at one batch: left as it is")
    if context.helpers.is_around("batches", script, loop.iter):
        return decide(CODE, KEPT, script, loop, "each rank takes its share of the batches already")
    leaving = Leaving(context.program.flow, script, loop)
    if not leaving.sums and not leaving.trouble:
        return decide(CODE, KEPT, script, loop, "nothing that this loop computes is read behind it: left as it is")
    trouble, alike = _together(context, script, loop)
    if loop in trains:
        trouble = "it goes over training data as well, which is sharded already"
    if leaving.trouble or trouble:
        first = leaving.trouble[0] if leaving.trouble and not trouble else None
        where = first.node if first is not None else loop
        why = first.why if first is not None else trouble
        message = f"this evaluation cannot be dealt over the ranks: {why}; {WAY_OUT}"
        return decide(CODE, REFUSED, script, where, message)
    line, define = context.helpers.over_ranks(script, *leaving.sums)
    dealt = context.helpers.around("batches", script, loop.iter)
    edits = [*alike, *dealt, *define, Insert(script, loop, "after", (line,), 4)]
    message = (
        f"each rank takes its share of the batches; {', '.join(leaving.sums)} summed over the ranks behind the loop"
        f"{_ALIKE if alike else ''}"
    )
    return decide(CODE, CHANGED, script, loop, message, *edits)


def _together(context: Context, script: Script, node: cst.CSTNode) -> tuple[str, list[Edit]]:
    """Return why not all ranks may come to a place, or not equally often, or nothing; and what lets them decide alike."""
    program, edits = context.program, list[Edit]()
    for place, what, told in program.decisions.parting(program, script, node):
        try:
            if told is None:
                raise CannotAlike("it is no number")
            edits += Alike(program, context.helpers).edits(*told)[0]
        except CannotAlike:
            return f"ranks may not all come here ({what} decides, {place})", []
    around = program.evaluations.within(script, node)
    return f"it runs for each batch of the loop at {around[0].where(around[1])}" if around is not None else "", edits


def _draws(context: Context, uses: list[Use]) -> str:
    """Return why a rank that leaves batches out would go on with other random numbers, or nothing.

    A loop by hand reads the batches of others as well; ``Model.eval`` on a part of a dataset does not.
    """
    draws = Draws(context.program)
    for site in context.program.roles.sites:
        for use in site.uses:
            found = draws.of_evaluation(site, use) if use in uses else None
            if found is not None:
                script, call, name = found
                return f"its rows are drawn ({name}, {script.where(call)}), and ranks would go on with other numbers"
    return ""
