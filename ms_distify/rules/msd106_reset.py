'''Nothing undoes the parallel context.

``reset_auto_parallel_context`` after the start-up puts the program back into stand-alone mode: gradients are no longer
averaged, and nothing says so. The call stays for one card and is left out on many.

Before::

    ms.reset_auto_parallel_context()

After::

    if rank_size is None:
        ms.reset_auto_parallel_context()
'''

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..model import Decision, Guard
from . import CHANGED, KEPT, REFUSED, Context, decide, rule

CODE = "MSD106"


@rule(CODE, "nothing undoes the parallel context")
def check(context: Context) -> Iterator[Decision]:
    """Guard resets that come after the start-up."""
    startup = context.startup
    if startup.place is None:
        return
    tree = startup.place.script.tree
    for event in startup.resets:
        parallel = startup.parallels[-1] if startup.parallels else None
        if parallel is not None:
            undone = event.order > parallel.order
        else:
            build = startup.first_build
            undone = build is not None and event.order > build.order
            if not undone and event.script is startup.place.script:
                undone = tree.start(event.node) > tree.start(startup.place.statement)
        statement = event.script.tree.statement(event.node)
        alone = (
            isinstance(statement, cst.SimpleStatementLine)
            and len(statement.body) == 1
            and isinstance(statement.body[0], cst.Expr)
            and statement.body[0].value is event.node
        )
        if not undone:
            yield decide(CODE, KEPT, event.script, event.node, "resets what an earlier program left, before the start-up")
        elif context.program.guarded_by_rank(event.script, event.node):
            yield decide(CODE, KEPT, event.script, event.node, "resets only on one card")
        elif alone and startup.rank_names.own and startup.visible(event.script, event.node):
            condition = f"{startup.rank_names.size} is None"
            message = "would undo the parallel context; it runs on one card only now"
            yield decide(CODE, CHANGED, event.script, event.node, message, Guard(event.script, statement, condition))
        else:
            message = "undoes the parallel context that is set before; remove this call"
            yield decide(CODE, REFUSED, event.script, event.node, message)
