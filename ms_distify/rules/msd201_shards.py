"""Each rank reads its shard of the training data; evaluation data stays whole.

``num_shards`` and ``shard_id`` deal the rows round-robin over the ranks; None, their default, means all rows,
so one card reads what it read before (FACTS 2, 5). The role comes from where the dataset flows. A dataset
function that serves training and evaluation gains parameters that only the training call passes.
``TFRecordDataset`` shards by file and also needs ``shard_equal_rows`` for equal steps. ``# ms-distify:
train`` or ``eval`` on the constructor's line settles a role. One constructor in a loop that fills a dictionary shards
under the keys that train: ``num_shards=rank_size if key == "train" else None``.

Before::

    train = ds.Cifar10Dataset(path, usage="train", shuffle=True)

After::

    train = ds.Cifar10Dataset(path, usage="train", shuffle=True, num_shards=rank_size, shard_id=rank_id)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import catalog
from ..model import Decision
from ..plan.keyed import Keyed, keyed
from ..plan.shards import CannotReachError, Supply, give
from ..reading.keywords import star_keywords
from ..reading.roles import Site, Use
from ..reading.tree import walk
from . import CHANGED, KEPT, NOTED, REFUSED, Context, constructor_argument, decide, rule
from .msd202_sampler import keeps_out as sampler_keeps_out
from .msd203_source import keeps_out as source_keeps_out
from .msd206_split import keeps_out as split_keeps_out

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
        yield decide(CODE, KEPT, script, call, f"{site.name} is read ({how}, which updates no weights): stays whole")
    elif role == "none":
        yield decide(CODE, KEPT, script, call, f"{site.name} reaches no training and no evaluation: left as it is")
    else:
        yield from _training(context, site, how)


def _training(context: Context, site: Site, how: str) -> Iterator[Decision]:
    script, call = site.script, site.call
    sharding = context.sharding(site)
    both = [] if how.startswith("says") else _evaluated_too(context, site)
    told = keyed(site) if not (how.startswith("says") or sharding.done) else None
    if told is not None and not both and told.name and not _dealt_otherwise(context, site) and not sharding.trouble:
        yield _shard(context, site, how, told)
        return
    other = [use for use in site.uses if use.role != "train"]
    if told is not None and other:
        message = (
            f"{site.name} trains ({how}) and serves {other[0].how}, put into one container under a key that is not seen to "
            "tell them apart; build the dataset that trains by a call of its own"
        )
        yield decide(CODE, REFUSED, script, call, message)
        return
    if both and _built_again(site):
        message = (
            f"{site.name} is built in a loop for training ({how}) and for {both[0].how} both; "
            "build the dataset that trains by a call of its own"
        )
        yield decide(CODE, REFUSED, script, call, message)
        return
    for use in both:
        message = f"{use.how} reads what trains: each rank sees its own shard of it there"
        yield decide(CODE, NOTED, use.script, use.node, message)
    if sharding.done:
        yield decide(CODE, KEPT, script, call, f"{site.name} trains ({how}) and is sharded already")
    elif sharding.twin is not None:
        yield _fill(context, site, how, sharding.twin)
    elif sharding.trouble:
        yield decide(CODE, REFUSED, script, call, f"{site.name} trains ({how}), but {sharding.trouble}")
    elif not _dealt_otherwise(context, site):
        yield _shard(context, site, how)


def _dealt_otherwise(context: Context, site: Site) -> bool:
    """Whether another rule deals the rows: of a sampler, of a source, of a part of a split."""
    return sampler_keeps_out(context, site) or source_keeps_out(context, site) or split_keeps_out(site)


def _fill(context: Context, site: Site, how: str, given: tuple[cst.BaseExpression, cst.BaseExpression]) -> Decision:
    """Let the training call pass rank and size to a function that shards in a branch of its own when it gets them."""
    try:
        supply = context.shards.fill(site, given)
    except CannotReachError as reason:
        return decide("MSD211", REFUSED, site.script, site.call, f"{site.name} trains ({how}), but {reason}")
    names = f"{supply.size}, {supply.rank} passed to {', '.join(dict.fromkeys(supply.through))}"
    message = f"{site.name} trains ({how}): {names}, which shards then"
    return decide(CODE, CHANGED, site.script, site.call, message, *supply.edits)


def _evaluated_too(context: Context, site: Site) -> list[Use]:
    """Return the evaluations that read what the very calls that build training data build."""
    trains = {use.way for use in site.uses_as("train")}
    sinks = {sink.node for sink in context.program.roles.sinks if sink.role == "train"}
    return [
        use
        for use in site.uses
        if (use.role == "eval" or (use.role == "read" and _reads(use.node, sinks))) and use.way in trains
    ]


def _reads(node: cst.CSTNode, sinks: set[cst.CSTNode]) -> bool:
    """Whether a consumer is a loop that uses the rows itself, and hands them to no training."""
    return isinstance(node, cst.For) and not any(part in sinks or isinstance(part, cst.Yield) for part in walk(node))


def _built_again(site: Site) -> bool:
    """Whether one place builds several datasets into a container, so that they cannot be told apart."""
    ways = [use.calls for use in site.uses_as("train")]
    places = {(site.script, site.call), *((edge.script, edge.call) for edges in ways for edge in edges)}
    for script, call in places:
        for parent in script.tree.ancestors(call):
            if isinstance(parent, (cst.FunctionDef, cst.Lambda)):
                break
            if isinstance(parent, cst.BaseComp):
                return True
            if isinstance(parent, cst.For) and any(_puts(part) for part in walk(parent.body)):
                return True
    return False


def _puts(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.AssignTarget):
        return isinstance(node.target, cst.Subscript)
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value in ("append", "insert", "setdefault", "update")
    )


def _shard(context: Context, site: Site, how: str, told: Keyed | None = None) -> Decision:
    """Let a constructor pass num_shards and shard_id, if ``told``: for those of its datasets that train."""
    script, call = site.script, site.call
    stars = star_keywords(context.program.flow, script, call)
    if stars is None or stars.keys() & {"num_shards", "shard_id", "sampler", "shard_equal_rows"}:
        message = f"** arguments of {site.name} may carry num_shards or a sampler; write them out"
        return decide("MSD603", REFUSED, script, call, message)
    if any(arg.star == "*" for arg in call.args):
        message = f"* arguments of {site.name} may fill num_shards or sampler by position; write them out"
        return decide("MSD603", REFUSED, script, call, message)
    if context.startup.place is None and not context.startup.inits:
        message = f"{site.name} trains ({how}), but there is no place for the start-up that would tell its rank"
        return decide(CODE, REFUSED, script, call, message)
    now = (constructor_argument(site, "num_shards"), constructor_argument(site, "shard_id"))
    try:
        supply = context.shards.supply(site, now)
        if told is not None and now != (None, None):
            raise CannotReachError("it passes num_shards already, and evaluates under another key")
        edits = give(script, call, *_wanted(context, site, supply, now, told))
    except CannotReachError as reason:
        return decide("MSD211", REFUSED, script, call, f"{site.name} trains ({how}), but {reason}")
    extra = ", shard_equal_rows" if _equal_rows(site) else ""
    through = f", passed on through {', '.join(dict.fromkeys(supply.through))}" if supply.through else ""
    whole = next((use.how for use in site.uses if use.role != "train"), "")
    through += f" where {told.condition}" if told is not None else ""
    rest = f"; whole for {whole}" if whole and through else ""
    message = f"{site.name} trains ({how}): num_shards, shard_id{extra}{through}{rest}"
    return decide(CODE, CHANGED, script, call, message, *edits, *supply.edits)


def _wanted(
    context: Context,
    site: Site,
    supply: Supply,
    now: tuple[cst.BaseExpression | None, cst.BaseExpression | None],
    told: Keyed | None = None,
) -> list[tuple[str, cst.BaseExpression | None, str]]:
    """Return what the constructor shall pass: (parameter, what it passes now, the new text)."""
    size, rank = (told.text(name) if told is not None else name for name in (supply.size, supply.rank))
    wanted = [("num_shards", now[0], size), ("shard_id", now[1], rank)]
    if _equal_rows(site):
        equal = constructor_argument(site, "shard_equal_rows")
        if equal is None or context.program.flow.constant(site.script, equal) is False:
            wanted.append(("shard_equal_rows", equal, "True"))
    return wanted


def _equal_rows(site: Site) -> bool:
    known = catalog.dataset(site.name)
    return known is not None and known.equal_rows
