"""What Python and NumPy draw for rows and weights is drawn alike on all ranks.

A file list that is shuffled, a split that is drawn, a generator function that chooses its rows: each rank would have
its own, and shards of different wholes overlap. ``mindspore.set_seed`` seeds NumPy, but not Python's ``random``, and
neither in time for what is drawn before it. So a seed goes in front of the first such draw; a fixed seed of the user's
is kept, and one that differs per rank is refused. Draws that change one row, as in ``__getitem__``, are left alone;
but where rows are drawn in a new order from epoch to epoch by the generator that also changes single rows, or that the
iterator of the epoch before still draws from, ranks would part after the first epoch: the one is refused, the other is
ended with ``num_epochs=1``. What is drawn between training steps (noise for a GAN) is the same on
every rank, which is noted.

Before::

    files = sorted(os.listdir(path))
    random.shuffle(files)

After::

    files = sorted(os.listdir(path))
    random.seed(0)
    random.shuffle(files)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import AddKeywords, Decision, Insert
from ..plan.draws import NUMPY, PYTHON, Draws
from ..plan.place import Place, anchor
from ..reading.script import Script
from ..reading.timeline import PART_SEED, PYTHON_SEED, SEED, Event, common, may_be_left_out
from . import CHANGED, KEPT, NOTED, REFUSED, Context, decide, rule

CODE = "MSD108"


@rule(CODE, "what Python and NumPy draw, alike on all ranks")
def check(context: Context) -> Iterator[Decision]:
    """Seed the generators whose draws decide about rows and weights."""
    if not context.startup.trains:
        return
    draws = Draws(context.program)
    yield from _python(context, draws)
    yield from _numpy(context, draws)
    for module in (PYTHON, NUMPY):
        yield from _parting(draws, module)
        for event in draws.made(module):
            if draws.between_steps(event):
                short = event.what.rpartition(".")[2]
                message = f"{short}() between training steps draws the same numbers on every rank"
                yield decide(CODE, NOTED, event.script, event.node, message)


def _python(context: Context, draws: Draws) -> Iterator[Decision]:
    """Seed Python's generator, which ``mindspore.set_seed`` does not."""
    made, in_order = draws.made(PYTHON), draws.in_order(PYTHON)
    seeds = context.program.timeline.of(PYTHON_SEED)
    trains = context.startup.trains
    drawn = {event.what for module in (PYTHON, NUMPY) for event in draws.made(module)}  # alike, once they are seeded
    for event in seeds:
        reason = context.program.varies(event.script, event.node.args[0].value) if event.node.args else "no argument"
        if reason and reason not in drawn:
            message = f"this seed of random differs between ranks ({reason}); use a fixed seed"
            yield decide(CODE, REFUSED, event.script, event.node, message)
            return
    if not made and not in_order:
        return
    first = made[0] if made else None
    for event in seeds:
        if not may_be_left_out(event, trains) and (first is None or event.order < first.order):
            yield decide(CODE, KEPT, event.script, event.node, "a fixed seed of random, before anything is drawn")
            return
    early = min([event for event in (first, *seeds[:1]) if event is not None], key=lambda e: e.order, default=None)
    what = made[0].node if made else in_order[0][1]
    script = made[0].script if made else in_order[0][0]
    yield _seed(context, "random", script, what, early)


def _numpy(context: Context, draws: Draws) -> Iterator[Decision]:
    """Seed NumPy's generator where it is used before ``mindspore.set_seed``."""
    made = draws.made(NUMPY)
    if not made:
        return
    first, startup = made[0], context.startup
    seeds = [
        event
        for event in context.program.timeline.of(SEED, PART_SEED)
        if context.program.flow.qualified(event.script, event.node) != names.DATASET_SEED
    ]
    if any(event.order < first.order and not may_be_left_out(event, startup.trains) for event in seeds):
        return
    ours = startup.seed_place if not any(event.kind == SEED for event in seeds) else None
    line = context.program.timeline
    if ours is not None and line.visited[first.node] > startup.clock(ours):
        return
    early = min([first, *seeds[:1]], key=lambda event: event.order)
    yield _seed(context, "numpy", first.script, first.node, early)


def _seed(context: Context, module: str, script: Script, what: cst.CSTNode, early: Event | None) -> Decision:
    """Put a seed in front of the first draw, or beside the other seed where nothing is drawn before that."""
    startup = context.startup
    place = startup.seed_place
    line = context.program.timeline
    if early is not None and (place is None or line.visited[early.node] <= startup.clock(place)):
        place = _in_front(context, early)
    if place is None:
        message = f"{module} draws, and there is no place for its seed; call {module}.seed first"
        return decide(CODE, REFUSED, script, what, message)
    spelled, needs = startup.speller(place.script).spell(module, place.statement)
    call = f"{spelled}.random.seed" if module == "numpy" else f"{spelled}.seed"
    edit = Insert(place.script, place.statement, place.where, (f"{call}({context.settings.seed})",), 41, "", needs)
    message = f"decides about rows or weights and is seeded nowhere before: {call}({context.settings.seed}) goes in"
    return decide(CODE, CHANGED, script, what, message, edit)


def _in_front(context: Context, event: Event) -> Place:
    """Return the place in the started file right before a statement that leads to an event, in no branch or loop.

    It lies in a block that also leads to the training, so that it runs once.
    """
    shared = min(common(event.frames, train.frames) for train in context.startup.trains)
    level = 0
    for index, frame in enumerate(event.frames[: shared + 1]):
        if frame.conditional or frame.repeated or frame.script is not context.program.entry:
            break
        level = index
    return Place(*anchor(event.frames[level]), "before")


def _parting(draws: Draws, module: str) -> Iterator[Decision]:
    """Refuse orders that are drawn anew while the same generator changes single rows."""
    again = [
        (event.script, event.node)
        for event in draws.made(module)
        if event.what.rpartition(".")[2] in names.CHOOSING and draws.between_steps(event)
    ]
    rows = draws.of_rows(module)
    if rows:
        script, row = rows[0]
        for where, call in [*again, *draws.in_order(module)]:
            message = (
                f"rows are drawn by {module}, which also changes single rows ({script.where(row)}), so ranks would "
                "part after some rows; draw the order from a generator of its own: random.Random(seed)"
            )
            yield decide(CODE, REFUSED, where, call, message)
    in_order = draws.in_order(module)
    if not in_order:
        return
    for script, loop, iterator in draws.started_anew():
        if iterator is not None:
            message = f"num_epochs=1: else the iterator of the epoch before would still draw from {module}"
            edit = AddKeywords(script, iterator, (("num_epochs", "1"),))
            yield decide(CODE, CHANGED, script, iterator, message, edit)
            continue
        for where, call in in_order:
            message = (
                f"rows are drawn by {module} while the loop at {script.where(loop)} starts a new iterator every epoch and "
                "the one before still draws, so ranks could part; loop over create_tuple_iterator(num_epochs=1)"
            )
            yield decide(CODE, REFUSED, where, call, message)
