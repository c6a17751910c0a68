"""Literal step counts do not follow the shards.

With N ranks an epoch has a Nth of the steps. A schedule computed from ``get_dataset_size()`` follows by itself; one
written with literal numbers of steps, or computed from ``len(rows) // batch_size``, runs N times too slowly. So do a
``sink_size``, and loops that end after a number of steps. Each is left as it is and noted, with the number that would mean the
same. Where all ranks together take the batch of one card (``--global-batch keep``, MSD501), steps are those of one card, and
counts stay right.

Before and after (noted)::

    lr = nn.cosine_decay_lr(0.0, 0.1, total_step=18750, step_per_epoch=1875, decay_epoch=10)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..mindspore.rates import STEP_COUNTS
from ..model import Decision
from ..plan.rates import Rates
from ..plan.steps import Count, Limits, counted, tables
from ..reading.roles import argument
from ..reading.script import Script
from . import KEPT, NOTED, Context, decide, rule

CODE = "MSD502"
# The parameter of Model's methods that makes an epoch of so many steps, with its position.
_SINKS = {"train": 4, "fit": None, "build": 2}


@rule(CODE, "literal step counts")
def check(context: Context) -> Iterator[Decision]:
    """Note literal numbers of steps in schedules, in trainings and in loops that they end."""
    flow = context.program.flow
    for script in context.program.scripts:
        for call in script.bindings.calls:
            qualified = flow.qualified(script, call)
            if qualified == names.CHECKPOINT_CONFIG or names.is_lr_schedule(qualified):
                yield from _schedule(context, script, call, qualified.rpartition(".")[2])
    for sink in context.program.roles.sinks:
        if sink.role == "train" and isinstance(sink.node, cst.Call) and isinstance(sink.node.func, cst.Attribute):
            name = sink.node.func.attr.value
            size = argument(sink.node, _SINKS[name], "sink_size") if sink.sure and name in _SINKS else None
            count = counted(context.program, sink.script, size) if size is not None else None
            if size is not None and count is not None and not (count.number is not None and count.number < 0):
                yield _noted(
                    context,
                    sink.script,
                    size,
                    f"sink_size={sink.script.tree.text(size)} makes an epoch of that many",
                    count,
                )
    made = {
        limit.node: limit
        for one in Rates(context.program).handed()
        if one.value is not None
        for limit in tables(context.program, one.script, one.value)
    }
    for limit in made.values():
        yield _noted(context, limit.script, limit.node, limit.what, limit.count)
    for limit in Limits(context.program).all():
        yield _noted(
            context, limit.script, limit.node, f"{limit.what}: training ends after {limit.count.text}", limit.count
        )


def _schedule(context: Context, script: Script, call: cst.Call, short: str) -> Iterator[Decision]:
    if short not in STEP_COUNTS:
        return
    literal_steps = False
    for parameter, position in STEP_COUNTS[short]:
        value = argument(call, position, parameter)
        count = counted(context.program, script, value) if value is not None else None
        if value is not None and count is not None:
            literal_steps = True
            yield _noted(context, script, value, f"{short}: {parameter}={script.tree.text(value)} counts", count)
    if not literal_steps:
        yield decide(CODE, KEPT, script, call, f"{short} has no literal step count; it follows what it is given")


def _noted(context: Context, script: Script, node: cst.CSTNode, what: str, count: Count) -> Decision:
    where = f" ({count.text} at {count.where})" if count.where else ""
    if context.keeps_batch:
        message = f"{what} steps{where}; there are as many as on one card, since the global batch stays"
        return decide(CODE, KEPT, script, node, message)
    ranks, example = context.settings.ranks, ""
    if count.number is not None and ranks > 1:
        example = f" (on {ranks} ranks {max(round(count.number / ranks), 1)})"
    elif count.numbers and ranks > 1:
        example = f" (on {ranks} ranks {', '.join(str(max(round(n / ranks), 1)) for n in count.numbers)})"
    message = (
        f"{what} steps of one card{where}; an epoch has 1/ranks of them now, so {count.text} / ranks would mean the same"
        f"{example}"
    )
    return decide(CODE, NOTED, script, node, message)
