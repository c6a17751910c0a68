"""What a training pipeline does to its rows must mean the same on every rank.

``filter`` and ``bucket_batch_by_length`` leave ranks with different numbers of rows, so that one rank waits for ever in
a reduction that the others never join; ``zip`` pairs rows rightly only if both sides are dealt alike. These are
refused. ``concat`` of two sharded datasets keeps ranks equal, but rows land on other ranks than in the whole, which is
noted (FACTS 5).

Before (refused)::

    train = ds.zip((ds.MnistDataset(images), ds.MnistDataset(masks)))

After, by hand::

    train = ds.zip((ds.MnistDataset(images, shuffle=False), ds.MnistDataset(masks, shuffle=False)))
    train = train.shuffle(1000)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..model import Decision
from ..reading.pipeline import method_name
from ..reading.roles import Site, argument
from ..reading.script import Script
from . import NOTED, REFUSED, Context, decide, rule

CODE = "MSD204"
_UNEQUAL = {
    "filter": "leaves each rank another number of rows, so one would wait for the others for ever; "
    "filter in the source",
    "bucket_batch_by_length": "forms another number of batches on each rank, so one would wait for the others for ever",
}


@rule(CODE, "pipelines that ranks must walk alike")
def check(context: Context) -> Iterator[Decision]:
    """Look at the dataset methods between the constructor and the training."""
    seen: set[cst.CSTNode] = set()
    for site in context.program.roles.sites:
        if context.role(site)[0] != "train" or context.sharded(site):
            continue
        for use in site.uses_as("train"):
            for script, node in use.methods:
                if node not in seen:
                    seen.add(node)
                    yield from _step(context, script, node)


def _step(context: Context, script: Script, node: cst.CSTNode) -> Iterator[Decision]:
    name = method_name(script, node)
    if name in _UNEQUAL:
        yield decide(CODE, REFUSED, script, node, f"{name} {_UNEQUAL[name]}")
    elif name == "concat":
        message = "concatenated after sharding: equal on every rank, but rows land on other ranks than in the whole"
        yield decide(CODE, NOTED, script, node, message)
    elif name == "zip" and not _unshuffled(context, node):
        message = (
            "zip pairs rows rightly on shards only where no side is shuffled; set shuffle=False on both, shuffle after"
        )
        yield decide(CODE, REFUSED, script, node, message)


def _unshuffled(context: Context, node: cst.CSTNode) -> bool:
    """Whether every training dataset that goes into a zip says shuffle=False."""
    through: list[Site] = [
        site
        for site in context.program.roles.sites
        for use in site.uses
        if any(step is node for _, step in use.methods)
    ]
    return bool(through) and all(
        context.program.flow.constant(site.script, argument(site.call, None, "shuffle")) is False for site in through
    )
