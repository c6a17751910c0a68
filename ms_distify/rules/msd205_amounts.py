"""Numbers of rows and workers that mean something else on shards.

``num_samples`` and ``take`` count per shard once there are shards (FACTS 3); a last batch that is
not dropped is smaller on every rank; ``num_parallel_workers`` is per rank. The code is left as it is, and
each is noted.

Before and after (noted)::

    train = ds.MnistDataset(path, num_samples=1000, num_parallel_workers=32).batch(10)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..model import Decision
from ..reading.pipeline import batching, method_name
from ..reading.roles import Site
from ..reading.script import Script
from . import NOTED, REFUSED, Context, constructor_argument, decide, rule

CODE = "MSD205"


@rule(CODE, "numbers of rows and workers on shards")
def check(context: Context) -> Iterator[Decision]:
    """Note the numbers of every training dataset."""
    seen: set[cst.CSTNode] = set()
    for site in context.program.roles.sites:
        if context.role(site)[0] != "train":
            continue
        yield from _constructor(context, site)
        for use in site.uses_as("train"):
            for script, node in use.methods:
                if node not in seen:
                    seen.add(node)
                    yield from _step(context, script, node)


def _constructor(context: Context, site: Site) -> Iterator[Decision]:
    samples = constructor_argument(site, "num_samples")
    flow = context.program.flow
    if samples is not None and flow.constant(site.script, samples) is not None:
        count = site.script.tree.text(samples)
        message = f"num_samples={count} counts per shard: an epoch has up to {count} x ranks rows"
        yield decide(CODE, NOTED, site.script, samples, message)
    workers = constructor_argument(site, "num_parallel_workers")
    if workers is not None and flow.constant(site.script, workers) is not None:
        count = site.script.tree.text(workers)
        message = f"num_parallel_workers={count} is per rank: {count} x ranks workers on this machine"
        yield decide(CODE, NOTED, site.script, workers, message)


def _step(context: Context, script: Script, node: cst.CSTNode) -> Iterator[Decision]:
    name = method_name(script, node)
    if not isinstance(node, cst.Call):
        return
    if name in ("take", "skip") and (name == "skip" or _skipped(context)):
        message = (
            f"{name}() counts per shard, so parts cut with take and skip would overlap; cut the source instead, "
            "or split() it"
        )
        yield decide(CODE, REFUSED, script, node, message)
    elif name == "take":
        message = f"{name}() counts per shard: its number holds for each rank"
        yield decide(CODE, NOTED, script, node, message)
    elif (batch := batching(script, node)) is not None:
        drop = batch[1]
        if drop is None or context.program.flow.constant(script, drop) is False:
            message = "without drop_remainder=True the last batch of an epoch is smaller on every rank; consider it"
            yield decide(CODE, NOTED, script, node, message)


def _skipped(context: Context) -> bool:
    """Whether any dataset of the program leaves out its first rows, as the other part of a ``take``."""
    return any(
        method_name(script, node) == "skip"
        for site in context.program.roles.sites
        for use in site.uses
        for script, node in use.methods
    )
