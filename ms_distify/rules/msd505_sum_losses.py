"""Losses that sum over their rows.

Ranks average their gradients. With a loss that sums over the rows of a batch, N ranks so take steps 1/N as long as one
card at N times the batch does. The code is left as it is, and the loss is noted.

Before and after (noted)::

    loss_fn = nn.MSELoss(reduction="sum")
"""

from __future__ import annotations

from collections.abc import Iterator

from ..mindspore import names
from ..model import Decision
from ..reading.roles import argument
from . import NOTED, Context, decide, rule

CODE = "MSD505"


@rule(CODE, "losses that sum over their rows")
def check(context: Context) -> Iterator[Decision]:
    """Note every loss whose reduction is a sum."""
    flow = context.program.flow
    for script in context.program.scripts:
        for call in script.bindings.calls:
            reduction = argument(call, None, "reduction")
            if reduction is None or flow.constant(script, reduction) != "sum":
                continue
            name = flow.qualified(script, call)
            if name.startswith(names.LOSSES):
                short = name.rpartition(".")[2]
                message = (
                    f"{short} sums over its rows, and ranks average: steps are 1/ranks as long; use reduction='mean'"
                )
                yield decide(CODE, NOTED, script, call, message)
