"""A sampler is never dropped, and never stands beside num_shards.

MindSpore refuses ``sampler=`` together with ``num_shards`` (FACTS 4), and leaving the sampler out would train
on other rows. A training dataset with a sampler is refused; a ``DistributedSampler`` is a sharded dataset
already.

Before (refused)::

    train = ds.ImageFolderDataset(path, sampler=ds.RandomSampler(num_samples=500))

After, by hand (accepted as sharded; one card is rank 0 of 1)::

    ranks, rank = int(os.getenv("RANK_SIZE", "1")), int(os.getenv("RANK_ID", "0"))
    sampler = ds.DistributedSampler(ranks, rank, shuffle=False)
    sampler.add_child(ds.RandomSampler(num_samples=500))
    train = ds.ImageFolderDataset(path, sampler=sampler)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import Decision
from ..reading.bindings import literal
from ..reading.roles import Site
from ..reading.script import Script
from . import REFUSED, Context, constructor_argument, decide, rule

CODE = "MSD202"
WAY_OUT = "make it the child of a DistributedSampler, which shards what it yields"


@rule(CODE, "samplers of training data")
def check(context: Context) -> Iterator[Decision]:
    """Refuse training datasets that carry a sampler."""
    for site in context.program.roles.sites:
        if context.role(site)[0] != "train" or context.sharded(site):
            continue
        value = sampler_of(context, site)
        if value is not None:
            what = _made(context, site, value)
            message = f"{site.name} has a sampler{what}, which cannot stand beside num_shards; {WAY_OUT}"
            yield decide(CODE, REFUSED, site.script, value, message)
        for script, use in used_samplers(context, site):
            message = f"use_sampler changes a dataset that trains and would be sharded; {WAY_OUT}"
            yield decide(CODE, REFUSED, script, use, message)


def _made(context: Context, site: Site, value: cst.BaseExpression) -> str:
    """Say which sampler it is and where it is made, if that is seen."""
    for origin in context.program.flow.origins(site.script, value):
        if origin.kind in ("call", "instance"):
            name = origin.qualified.rpartition(".")[2] or getattr(getattr(origin.node, "name", None), "value", "")
            return f" ({name}, {origin.script.where(origin.node)})"
    return ""


def sampler_of(context: Context, site: Site) -> cst.BaseExpression | None:
    """Return the sampler a constructor passes, None if it passes none (or None)."""
    value = constructor_argument(site, "sampler")
    if value is None or literal(value) is None:
        return None
    flow = context.program.flow
    contexts = [use.calls for use in site.uses_as("train")] or [()]
    return None if all(flow.constant(site.script, value, calls) is None for calls in contexts) else value


def used_samplers(context: Context, site: Site) -> list[tuple[Script, cst.Call]]:
    """Return the ``use_sampler`` calls on what a constructor built, except those that shard."""
    found = []
    flow = context.program.flow
    for script in context.program.scripts:
        for call in script.bindings.calls:
            func = call.func
            if not isinstance(func, cst.Attribute) or func.attr.value != "use_sampler" or not call.args:
                continue
            if any(origin.node is site.call for origin in flow.origins(script, func.value)):
                samplers = flow.origins(script, call.args[0].value)
                if not any(origin.qualified == names.DISTRIBUTED_SAMPLER for origin in samplers):
                    found.append((script, call))
    return found


def keeps_out(context: Context, site: Site) -> bool:
    """Whether this rule refuses a dataset, so that nothing is added to it."""
    return sampler_of(context, site) is not None or bool(used_samplers(context, site))
