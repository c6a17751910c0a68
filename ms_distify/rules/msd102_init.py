'''init, rank and size, once, after the context and before anything is built.

``init()`` must come behind the device choice and before the first Tensor, Parameter, Cell or dataset
(mindspore.communication.init; FACTS 5). It runs only when a launcher started the program: without one it fails
(FACTS 4), and on one card rank and size stay None, which every dataset class takes for "not sharded".

Before::

    ms.set_context(mode=ms.GRAPH_MODE)

After::

    ms.set_context(mode=ms.GRAPH_MODE)
    rank_id = rank_size = None  # one card
    if int(os.getenv("RANK_SIZE", "1")) > 1:  # started by run_distribute.sh
        init()
        rank_id, rank_size = get_rank(), get_group_size()
'''

from __future__ import annotations

from collections.abc import Iterator

from ..mindspore import names
from ..model import Decision, Edit, Insert
from . import CHANGED, KEPT, Context, decide, rule

CODE = "MSD102"
STARTED = "  # started by run_distribute.sh"


@rule(CODE, "init, rank and size")
def check(context: Context) -> Iterator[Decision]:
    """Add what is missing of init, rank and size."""
    startup = context.startup
    for event in startup.inits:
        yield decide(CODE, KEPT, event.script, event.node, "init() is here already")
    if startup.place is None or not context.incomplete:
        return
    place = startup.place
    known = startup.rank_names
    missing_init = not startup.inits
    if not missing_init and not known.own:
        return
    script, anchor = place.script, place.statement
    speller = startup.speller(script)
    under, needs = "", ()
    if startup.guarded:
        condition, needs = startup.condition(anchor, script)
        under = condition + ":" + STARTED
    lines: list[str] = []
    if missing_init:
        init, more = speller.spell(names.INIT, anchor)
        needs += more
        lines.append(f"{init}()")
    edits: list[Edit] = []
    if known.own:
        rank, more_rank = speller.spell(names.GET_RANK, anchor)
        size, more_size = speller.spell(names.GET_GROUP_SIZE, anchor)
        needs += more_rank + more_size
        lines.append(f"{known.rank}, {known.size} = {rank}(), {size}()")
        if startup.guarded or startup.prelude is not None:
            at = startup.prelude or place
            line = f"{known.rank} = {known.size} = None  # one card"
            edits.append(Insert(at.script, at.statement, at.where, (line,), order=10))
    edits.append(Insert(script, anchor, place.where, tuple(lines), 20, under, tuple(dict.fromkeys(needs))))
    first = startup.first_build
    before = f", before {first.what} (line {first.script.line(first.node)})" if first is not None else ""
    what = "init(), rank and size" if missing_init else "rank and size"
    side = "after" if place.where == "after" else "before"
    message = f"{what} go in {side} this line{before}"
    yield decide(CODE, CHANGED, script, anchor, message, *edits)
