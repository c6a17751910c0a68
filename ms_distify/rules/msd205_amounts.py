"""Numbers of rows and workers that mean something else on shards.

``num_samples`` and ``take`` count per shard once there are shards (FACTS 3); a last batch that is
not dropped is smaller on every rank; ``num_parallel_workers``, of a dataset, of a step of its pipeline or of all of
them, is per rank, and the ranks of one machine share its cores. The code is left as it is, and each is noted, with the number
it comes to on the ranks that the launcher starts.

Before and after (noted)::

    train = ds.MnistDataset(path, num_samples=1000, num_parallel_workers=32).batch(10)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import Decision
from ..reading.pipeline import batching, method_name
from ..reading.roles import Site, argument
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
    for script, call, _ in context.program.calls(names.DATASET_WORKERS):
        yield from _workers(context, script, argument(call, 0, "num"), "set_num_parallel_workers", seen)


def _constructor(context: Context, site: Site) -> Iterator[Decision]:
    samples = constructor_argument(site, "num_samples")
    flow = context.program.flow
    if samples is not None and flow.constant(site.script, samples) is not None:
        count = site.script.tree.text(samples)
        message = f"num_samples={count} counts per shard: an epoch has up to {count} x ranks rows"
        yield decide(CODE, NOTED, site.script, samples, message)
    workers = constructor_argument(site, "num_parallel_workers")
    yield from _workers(context, site.script, workers, "num_parallel_workers", set())


def _workers(
    context: Context, script: Script, workers: cst.BaseExpression | None, what: str, seen: set[cst.CSTNode]
) -> Iterator[Decision]:
    """Note a number of workers, with what it comes to on all ranks of a machine."""
    if workers is None or workers in seen:
        return
    seen.add(workers)
    count, ranks = context.program.flow.constant(script, workers), context.settings.ranks
    if count is None:
        return
    text = script.tree.text(workers)
    example = f" (on {ranks} ranks {count * ranks})" if isinstance(count, int) and ranks > 1 else ""
    message = f"{what}={text} is per rank: {text} x ranks workers share the cores of a machine{example}"
    yield decide(CODE, NOTED, script, workers, message)


def _step(context: Context, script: Script, node: cst.CSTNode) -> Iterator[Decision]:
    name = method_name(script, node)
    if not isinstance(node, cst.Call):
        return
    yield from _workers(context, script, argument(node, None, "num_parallel_workers"), "num_parallel_workers", set())
    if name in ("take", "skip") and (name == "skip" or _skipped(context)):
        message = (
            f"{name}() counts per shard, so parts cut with take and skip would overlap; cut the source instead, "
            "or split() it"
        )
        yield decide(CODE, REFUSED, script, node, message)
    elif name == "take":
        message = f"{name}() counts per shard: its number holds for each rank"
        yield decide(CODE, NOTED, script, node, message)
    elif name in ("batch", "padded_batch"):
        told = batching(script, node)  # a loader of a library has its slots elsewhere
        drop = told[1] if told is not None else argument(node, 1, "drop_remainder")
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
