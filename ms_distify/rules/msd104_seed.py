"""One seed, the same on every rank, before the first Cell and the first dataset.

Ranks must start from equal weights, and a shuffled dataset is dealt over the ranks rightly only if all ranks
shuffle alike; both come from the seed (FACTS 3). A fixed seed of the user's is kept, a seed that differs per
rank is refused. ``set_seed`` seeds NumPy as well: where the user seeds NumPy or the datasets alone, it goes
in front of that.

Before::

    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.Dense(4, 2)

After::

    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_seed(0)
    net = nn.Dense(4, 2)
"""

from __future__ import annotations

from collections.abc import Iterator

from ..mindspore import names
from ..model import Decision, Insert
from ..reading.bindings import literal
from ..reading.timeline import DRAW, Event, may_be_left_out
from . import CHANGED, KEPT, NOTED, REFUSED, Context, decide, rule

CODE = "MSD104"


@rule(CODE, "one seed for all ranks")
def check(context: Context) -> Iterator[Decision]:
    """Keep a good seed, refuse one that differs per rank, add one where there is none."""
    startup = context.startup
    yield from _unseeded(context)
    # Datasets start from no random weights: a seed below them is still in time.
    first = next((event for event in startup.builds if not event.rows), None)
    enough = False
    for event in startup.seeds:
        reason = _differs(context, event)
        if reason:
            enough = True  # one of ours in front of it would change nothing
            message = f"this seed differs between ranks ({reason}), so their weights would; use a fixed seed"
            yield decide(CODE, REFUSED, event.script, event.node, message)
        elif first is not None and event.order > first.order:
            message = (
                f"set_seed comes below {first.what} (line {first.script.line(first.node)}), "
                "whose weights it does not reach; set it first"
            )
            yield decide(CODE, NOTED, event.script, event.node, message)
        elif may_be_left_out(event, startup.trains):
            message = "this seed is set only under a condition"
            yield decide(CODE, NOTED, event.script, event.node, message)
        else:
            enough = True
            yield decide(CODE, KEPT, event.script, event.node, "a fixed seed, set before anything is built")
    if enough or startup.seed_place is None:
        return
    place = startup.seed_place
    setter, needs = startup.speller(place.script).spell(names.SET_SEED, place.statement)
    line = f"{setter}({context.settings.seed})"
    edit = Insert(place.script, place.statement, place.where, (line,), 40, "", needs)
    message = f"seed {context.settings.seed} on every rank: equal weights, equal shuffling"
    yield decide(CODE, CHANGED, place.script, place.statement, message, edit)


def _differs(context: Context, event: Event) -> str:
    """Return what makes a seed differ between ranks, or nothing."""
    if not event.node.args:
        return ""
    reason = context.program.varies(event.script, event.node.args[0].value)
    drawn = {draw.what for draw in context.program.timeline.of(DRAW)}
    return "" if reason in drawn else reason  # a seed goes in front of the draw (MSD108)


def _unseeded(context: Context) -> Iterator[Decision]:
    """Refuse random generators that every rank would seed from its own system."""
    program = context.program
    for script, call, name in program.calls(*names.UNSEEDED):
        given = call.args and literal(call.args[0].value) is not None
        if not given and call in program.timeline.visited:
            short = name.rpartition(".")[2]
            message = (
                f"{short}() without a seed draws differently on every rank: other rows, other splits; give it a seed"
            )
            yield decide(CODE, REFUSED, script, call, message)
