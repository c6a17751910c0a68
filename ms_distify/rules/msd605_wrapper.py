"""Libraries that build and distribute training by themselves.

mindcv, mindnlp and their like have loaders and trainers of their own, with shard parameters of their own.
What comes out of them is not followed; a training that reads from one is refused.

Before (refused)::

    loader = mindcv.data.create_loader(dataset, batch_size=32)
    model.train(1, loader)
"""

from __future__ import annotations

from collections.abc import Iterator

from ..mindspore import names
from ..model import Decision
from . import REFUSED, Context, decide, rule

CODE = "MSD605"


@rule(CODE, "wrapper libraries")
def check(context: Context) -> Iterator[Decision]:
    """Refuse trainings on datasets of a wrapper library."""
    for sink, origin in context.program.roles.lost:
        root = origin.qualified.partition(".")[0]
        if sink.role == "train" and root in names.WRAPPERS:
            message = (
                f"{sink.what} trains through {origin.qualified}, which distributes by itself or has shard "
                "parameters of its own; use those"
            )
            yield decide(CODE, REFUSED, origin.script, origin.node, message)
