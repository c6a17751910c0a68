"""Batch normalisation keeps its statistics on each rank.

Each rank normalises over its own batch, so its running mean and variance are those of its shard; the checkpoint has rank
0's. ``nn.SyncBatchNorm`` averages them over the ranks, on Ascend.

Before and after (noted)::

    nn.BatchNorm2d(64)
"""

from __future__ import annotations

from collections.abc import Iterator

from ..mindspore import names
from ..model import Decision
from . import NOTED, Context, decide, rule

CODE = "MSD504"


@rule(CODE, "statistics of batch normalisation")
def check(context: Context) -> Iterator[Decision]:
    """Note the first batch normalisation of a program."""
    for script, call, name in context.program.normalised:
        what = (
            f"{name.rpartition('.')[2]} keeps"
            if name in names.BATCH_NORMS
            else f"{name} may have BatchNorm, which keeps"
        )
        message = f"{what} statistics of its own rank; nn.SyncBatchNorm shares them, on Ascend"
        yield decide(CODE, NOTED, script, call, message)
        return
