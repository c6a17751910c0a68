"""Nothing undoes the parallel context.

``reset_auto_parallel_context`` after the start-up puts the program back into stand-alone mode: gradients are
no longer averaged, and nothing says so. The call stays for one card and is left out on many.

Before::

    ms.reset_auto_parallel_context()

After::

    if rank_size is None:
        ms.reset_auto_parallel_context()
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..model import Decision, Guard
from ..reading.timeline import Event
from . import CHANGED, KEPT, REFUSED, Context, decide, rule

CODE = "MSD106"


@rule(CODE, "nothing undoes the parallel context")
def check(context: Context) -> Iterator[Decision]:
    """Guard resets that come after the start-up."""
    startup = context.startup
    if startup.place is None:
        return
    for event in startup.resets:
        statement = event.script.tree.statement(event.node)
        alone = (
            isinstance(statement, cst.SimpleStatementLine)
            and len(statement.body) == 1
            and isinstance(statement.body[0], cst.Expr)
            and statement.body[0].value is event.node
        )
        if _before(context, event):
            message = "resets what an earlier program left, before the start-up"
            yield decide(CODE, KEPT, event.script, event.node, message)
        elif not any(f.repeated for f in event.frames) and all(t.order < event.order for t in startup.trains):
            yield decide(CODE, KEPT, event.script, event.node, "comes after the last training")
        elif context.program.guarded_by_rank(event.script, event.node):
            yield decide(CODE, KEPT, event.script, event.node, "resets only on one card")
        elif alone and startup.rank_names.own and startup.visible(event.script, event.node):
            condition = f"{startup.rank_names.size} is None"
            message = "would undo the parallel context; it runs on one card only now"
            yield decide(CODE, CHANGED, event.script, event.node, message, Guard(event.script, statement, condition))
        else:
            message = "undoes the parallel context that is set before; remove this call"
            yield decide(CODE, REFUSED, event.script, event.node, message)


def _before(context: Context, event: Event) -> bool:
    """Whether a reset comes before the parallel context: the user's last one, or the one that goes in."""
    startup, line = context.startup, context.program.timeline
    if startup.parallels:
        return event.order < startup.parallels[-1].order
    place = startup.parallel_place
    if place is None:
        return True
    clock = line.finished if place.where == "after" else line.begun
    return line.visited.get(event.node, 0) < clock.get(place.statement, 0)
