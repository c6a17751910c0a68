"""Rank 0 alone saves.

``save_checkpoint`` and ``export`` write one path from every rank at once (FACTS 3). Weights are equal on all ranks, so rank 0
writes for all. A later ``load_checkpoint`` of such a file is noted: another rank may read before rank 0 has written.

Before::

    ms.save_checkpoint(net, "last.ckpt")

After::

    if rank_id in (None, 0):
        ms.save_checkpoint(net, "last.ckpt")
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import Decision, Guard
from ..reading.script import Script
from . import CHANGED, KEPT, NOTED, REFUSED, Context, decide, rule

CODE = "MSD402"


@rule(CODE, "rank 0 alone saves")
def check(context: Context) -> Iterator[Decision]:
    """Guard every save; note loads that may come too early."""
    program = context.program
    saved: list[tuple[Script, cst.Call]] = []
    for script, call, name in program.calls(names.SAVE_CHECKPOINT, names.EXPORT):
        short = name.rpartition(".")[2]
        if program.guarded_by_rank(script, call):
            yield decide(CODE, KEPT, script, call, f"{short} already depends on the rank")
            continue
        saved.append((script, call))
        statement = script.tree.statement(call)
        alone = (
            isinstance(statement, cst.SimpleStatementLine)
            and len(statement.body) == 1
            and isinstance(statement.body[0], cst.Expr)
            and statement.body[0].value is call
        )
        if not alone:
            message = (
                f"{short} stands in a larger statement; give it a line of its own, so that rank 0 alone can run it"
            )
            yield decide(CODE, REFUSED, script, call, message)
            continue
        _, zero, needs = context.rank_test(script, call)
        yield decide(
            CODE, CHANGED, script, call, f"{short}: rank 0 alone writes", Guard(script, statement, zero, needs)
        )
    if not saved:
        return
    last = min((event.order for event in context.startup.trains), default=0)
    for script, call, _ in program.calls(names.LOAD_CHECKPOINT):
        event = next((e for e in context.startup.builds if e.node is call), None)
        if event is None or event.order > last:
            message = "reads a checkpoint after training: a rank may read before rank 0 has written it"
            yield decide(CODE, NOTED, script, call, message)
