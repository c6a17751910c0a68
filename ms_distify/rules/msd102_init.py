"""init, rank and size, once, after the context and before anything is built.

``init()`` must come behind the device choice and before the first Tensor, Parameter, Cell or dataset
(mindspore.communication.init; FACTS 5). It runs only when a launcher started the program: without one it
fails (FACTS 4), and on one card rank and size stay None, which every dataset class takes for "not sharded".

Before::

    ms.set_context(mode=ms.GRAPH_MODE)

After::

    ms.set_context(mode=ms.GRAPH_MODE)
    rank_id = rank_size = None  # one card
    if int(os.getenv("RANK_SIZE", "1")) > 1:  # started by run_distribute.sh
        init()
        rank_id, rank_size = get_rank(), get_group_size()
"""

from __future__ import annotations

from collections.abc import Iterator

from ..mindspore import names
from ..model import Decision, Edit, Insert, Need
from ..reading.timeline import may_be_left_out
from . import CHANGED, KEPT, Context, decide, rule

CODE = "MSD102"
STARTED = "  # started by run_distribute.sh"


@rule(CODE, "init, rank and size", last=True)
def check(context: Context) -> Iterator[Decision]:
    """Add what is missing of init, rank and size."""
    startup = context.startup
    for event in startup.inits:
        message = "init() is here already"
        if may_be_left_out(event, startup.trains):
            message += ", under a condition: start all ranks so that it holds"
        yield decide(CODE, KEPT, event.script, event.node, message)
    if startup.place is None:
        return
    edits = [] if startup.inits else [_init(context)]
    what = [] if startup.inits else ["init()"]
    known = startup.rank_names
    if known.own and context.asks_for(known.rank, known.size):
        edits += _names(context)
        what.append("rank and size")
    if edits:
        place = startup.place if startup.inits else startup.parallel_place
        assert place is not None
        first = startup.first_build
        before = f", before {first.what} is built ({first.script.where(first.node)})" if first is not None else ""
        side = "after" if place.where == "after" else "before"
        message = f"{', '.join(what)} go in {side} this line{before}"
        yield decide(CODE, CHANGED, place.script, place.statement, message, *edits)


def _init(context: Context) -> Edit:
    startup = context.startup
    place = startup.parallel_place
    assert place is not None
    condition, needs = startup.condition(place.statement, place.script)
    speller = startup.speller(place.script)
    init, more = speller.spell(names.INIT, place.statement)
    lines: tuple[str, ...] = (f"{init}()",)
    if startup.device is not None and (startup.device.target or startup.device.chooses):
        setter, asked = speller.spell(startup.device.setter, place.statement)
        os_name, also = speller.spell("os", place.statement)
        arguments = [f"device_target={startup.device.target}"] if startup.device.target else []
        arguments += [f'device_id=int({os_name}.getenv("DEVICE_ID", "0"))'] if startup.device.chooses else []
        lines = (f"{setter}({', '.join(arguments)})", *lines)
        needs += asked + also
    return Insert(
        place.script, place.statement, place.where, lines, 20, condition + ":" + STARTED,
        tuple(dict.fromkeys(needs + more)),
    )  # fmt: skip


def _names(context: Context) -> list[Edit]:
    """Rank and size, None on one card."""
    startup = context.startup
    place, known = startup.place, startup.rank_names
    assert place is not None
    script, anchor = place.script, place.statement
    speller = startup.speller(script)
    under = ""
    needs: tuple[Need, ...] = ()
    edits: list[Edit] = []
    if startup.guarded:
        condition, needs = startup.condition(anchor, script)
        under = condition + ":" + STARTED
    if startup.guarded or startup.prelude is not None:
        at = startup.prelude or place
        line = f"{known.rank} = {known.size} = None  # one card"
        edits.append(Insert(at.script, at.statement, at.where, (line,), order=10))
    rank, more_rank = speller.spell(names.GET_RANK, anchor)
    size, more_size = speller.spell(names.GET_GROUP_SIZE, anchor)
    line = f"{known.rank}, {known.size} = {rank}(), {size}()"
    needs = tuple(dict.fromkeys(needs + more_rank + more_size))
    return [*edits, Insert(script, anchor, place.where, (line,), 21, under, needs)]
