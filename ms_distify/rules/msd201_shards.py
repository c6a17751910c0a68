'''Each rank reads its shard of the training data; evaluation data stays whole.

``num_shards`` and ``shard_id`` deal the rows round-robin over the ranks; None, their default, means all rows, so one
card reads what it read before (FACTS 2, 5). The role comes from where the dataset flows. A dataset function that serves
training and evaluation gains parameters that only the training call passes. ``TFRecordDataset`` shards by file and also
needs ``shard_equal_rows`` for equal steps. ``# ms-distify: train`` or ``eval`` on the constructor's line settles a role.

Before::

    train = ds.Cifar10Dataset(path, usage="train", shuffle=True)

After::

    train = ds.Cifar10Dataset(path, usage="train", shuffle=True, num_shards=rank_size, shard_id=rank_id)
'''

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import catalog
from ..model import AddKeywords, Decision
from ..plan.shards import CannotReach
from ..reading.roles import Site
from ..reading.script import Script
from . import CHANGED, KEPT, REFUSED, Context, decide, rule
from .msd202_sampler import keeps_out as sampler_keeps_out
from .msd203_source import keeps_out as source_keeps_out

CODE = "MSD201"


@rule(CODE, "each rank reads its shard of the training data")
def check(context: Context) -> Iterator[Decision]:
    """Decide about every dataset constructor."""
    for site in context.program.roles.sites:
        yield from _site(context, site)


def _site(context: Context, site: Site) -> Iterator[Decision]:
    script, call = site.script, site.call
    role, how = context.role(site)
    if role == "eval":
        yield decide(CODE, KEPT, script, call, f"{site.name} evaluates ({how}): stays whole")
    elif role == "read":
        yield decide(CODE, KEPT, script, call, f"{site.name} is only looked at ({how}): stays whole")
    elif role == "none":
        yield decide(CODE, KEPT, script, call, f"{site.name} reaches no training and no evaluation: left as it is")
    elif context.sharded(site):
        yield decide(CODE, KEPT, script, call, f"{site.name} trains ({how}) and is sharded already")
    elif not sampler_keeps_out(context, site) and not source_keeps_out(context, site):
        yield _shard(context, site, how)


def _shard(context: Context, site: Site, how: str) -> Decision:
    script, call = site.script, site.call
    if any(arg.star == "**" for arg in call.args) and not _free_of_keys(context, script, call):
        message = f"** arguments of {site.name} may carry num_shards or a sampler; write them out"
        return decide("MSD603", REFUSED, script, call, message)
    if context.startup.place is None and not context.startup.inits:
        message = f"{site.name} trains ({how}), but there is no place for the start-up that would tell its rank"
        return decide(CODE, REFUSED, script, call, message)
    try:
        supply = context.shards.supply(site)
    except CannotReach as reason:
        return decide("MSD211", REFUSED, script, call, f"{site.name} trains ({how}), but {reason}")
    keywords = [("num_shards", supply.size), ("shard_id", supply.rank)]
    known = catalog.dataset(site.name)
    extra = ""
    if known is not None and known.equal_rows:
        keywords.append(("shard_equal_rows", "True"))
        extra = ", shard_equal_rows"
    already = {arg.keyword.value for arg in call.args if arg.keyword is not None}
    added = tuple((name, value) for name, value in keywords if name not in already)
    through = f", passed on through {', '.join(dict.fromkeys(supply.through))}" if supply.through else ""
    message = f"{site.name} trains ({how}): num_shards, shard_id{extra}{through}"
    return decide(CODE, CHANGED, script, call, message, AddKeywords(script, call, added), *supply.edits)


def _free_of_keys(context: Context, script: Script, call: cst.Call) -> bool:
    for arg in call.args:
        if arg.star == "**":
            keys = context.program.dictionary_keys(script, arg.value)
            if keys is None or keys & {"num_shards", "shard_id", "sampler", "shard_equal_rows"}:
                return False
    return True
