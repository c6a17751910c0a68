"""A sampler stays, and the rows it yields are dealt over the ranks.

MindSpore refuses ``sampler=`` together with ``num_shards`` (FACTS 4), and leaving the sampler out would train on
other rows. So a ``DistributedSampler`` is put over it: rank r reads every N-th row that the sampler yields, which are
the rows of one card, since all ranks draw with one seed (measured with 2.10 on 2 and 3 ranks). Its ``shuffle=False``
says that the order is the sampler's. Samplers whose rows belong together in batches (``PKSampler``,
``batch_sampler=``, an own class that is told the batch size or loops inside loops) would be torn apart and are refused, as are random
samplers of ``MindDataset``, which then draw the same rows in every epoch.

Before::

    train = ds.ImageFolderDataset(path, sampler=ds.RandomSampler(num_samples=500))

After::

    def shard_sampled(dataset, num_shards=None, shard_id=None):
        if num_shards is not None:
            dataset.add_sampler(ds.DistributedSampler(num_shards, shard_id, shuffle=False))
        return dataset

    train = shard_sampled(ds.ImageFolderDataset(path, sampler=ds.RandomSampler(num_samples=500)), rank_size, rank_id)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import Decision, Insert
from ..plan.sharding import used_samplers
from ..plan.shards import CannotReachError, Supply
from ..reading.bindings import dotted, literal, parameters
from ..reading.flow import Origin
from ..reading.pipeline import batching
from ..reading.roles import Site, argument
from ..reading.script import Script
from ..reading.tree import walk
from . import CHANGED, NOTED, REFUSED, Context, constructor_argument, decide, rule

CODE = "MSD202"
WAY_OUT = "deal whole batches over the ranks in a sampler of your own that is told get_rank() and get_group_size()"


@rule(CODE, "samplers of training data")
def check(context: Context) -> Iterator[Decision]:
    """Put a DistributedSampler over the sampler of training data."""
    for site in context.program.roles.sites:
        if context.role(site)[0] != "train" or context.sharded(site) or context.sharding(site).trouble:
            continue
        batches = argument(site.call, None, "batch_sampler")
        if batches is not None and literal(batches) is not None:
            message = f"batch_sampler= forms whole batches, which dealing their rows would tear apart; {WAY_OUT}"
            yield decide(CODE, REFUSED, site.script, batches, message)
            continue
        value, used = sampler_of(context, site), _later(context, site)
        if any(use.parts for use in site.uses_as("train")):
            continue  # the part of a split that trains is dealt instead (MSD206)
        if used:
            for script, call in used:
                yield from _after(context, site, script, call)
        elif value is not None:
            yield from _around(context, site, value)


def _around(context: Context, site: Site, value: cst.BaseExpression) -> Iterator[Decision]:
    """Wrap a constructor that has a sampler."""
    what, trouble, noted = _judge(context, site, site.script, value)
    if trouble:
        yield decide(CODE, REFUSED, site.script, value, f"{site.name} has {what}, {trouble}")
        return
    try:
        supply = context.shards.supply(site)
    except CannotReachError as reason:
        message = f"{site.name} trains ({context.role(site)[1]}), but {reason}"
        yield decide("MSD211", REFUSED, site.script, site.call, message)
        return
    edits = context.helpers.wrap("sampled", site.script, site.call, supply)
    yield decide(CODE, CHANGED, site.script, value, _says(context, site, what), *edits, *supply.edits)
    if noted:
        yield decide(CODE, NOTED, site.script, value, noted)


def _after(context: Context, site: Site, script: Script, call: cst.Call) -> Iterator[Decision]:
    """Put the DistributedSampler on right after ``use_sampler``."""
    what, trouble, noted = _judge(context, site, script, call.args[0].value)
    assert isinstance(call.func, cst.Attribute)
    receiver, statement = call.func.value, _plain_statement(script, call)
    if not trouble and (statement is None or dotted(receiver) is None):
        trouble = "in the middle of an expression; make use_sampler a statement of its own on a named dataset"
    if not trouble and _sometimes(site, script, call):
        trouble = "only under a condition, so its rows would be dealt only there; use it where the dataset is built"
    if trouble:
        yield decide(CODE, REFUSED, script, call, f"{site.name} gets {what}, {trouble}")
        return
    try:
        supply = _supply(context, site, script, call)
    except CannotReachError as reason:
        yield decide("MSD211", REFUSED, script, call, f"{site.name} gets {what}, but {reason}")
        return
    assert statement is not None
    edit = put_on(context, script, statement, "add_sampler", script.tree.text(receiver), supply)
    yield decide(CODE, CHANGED, script, call, _says(context, site, what), edit, *supply.edits)
    if noted:
        yield decide(CODE, NOTED, script, call, noted)


def _sometimes(site: Site, script: Script, call: cst.Call) -> bool:
    """Whether a call may be left out, or made often, where the constructor is called once."""
    inside = set(site.script.tree.ancestors(site.call))
    for parent in script.tree.ancestors(call):
        if isinstance(parent, (cst.FunctionDef, cst.Lambda)):
            return False
        if isinstance(parent, (cst.If, cst.For, cst.While, cst.Try, cst.TryStar, cst.Match)) and parent not in inside:
            return True
    return False


def put_on(
    context: Context, script: Script, statement: cst.CSTNode, method: str, dataset: str, supply: Supply
) -> Insert:
    """Return the edit that puts a DistributedSampler on a named dataset behind a statement, on many ranks only."""
    sampler, needs = context.startup.speller(script).spell(names.DISTRIBUTED_SAMPLER, statement)
    line = f"{dataset}.{method}({sampler}({supply.size}, {supply.rank}, shuffle=False))"
    return Insert(script, statement, "after", (line,), 5, f"{supply.size} is not None:", needs)


def _supply(context: Context, site: Site, script: Script, call: cst.Call) -> Supply:
    """Return rank and size beside a ``use_sampler`` call: in the constructor's function, or where they are seen."""
    here, home = script.bindings.scope_of(call).function(), site.script.bindings.scope_of(site.call).function()
    if script is site.script and here is home:
        return context.shards.supply_at(script, call, [use.calls for use in site.uses_as("train")] or [()])
    return context.shards.supply_at(script, call, [()])


def _says(context: Context, site: Site, what: str) -> str:
    return f"{site.name} trains ({context.role(site)[1]}) with {what}: its rows are dealt over the ranks"


def _judge(context: Context, site: Site, script: Script, value: cst.BaseExpression) -> tuple[str, str, str]:
    """Return what a sampler is, why its rows cannot be dealt (or nothing), and what to note (or nothing)."""
    origins = [o for o in context.program.flow.origins(script, value) if literal(o.node) is not None]
    named = next((o for o in origins if _name(o)), None)
    what = f"a sampler ({_name(named)}, {named.script.where(named.node)})" if named else "a sampler"
    for origin in origins:
        if origin.qualified == names.PK_SAMPLER:
            return what, f"whose batches of P classes by K rows dealing would tear apart; {WAY_OUT}", ""
        if site.name == "MindDataset" and origin.qualified in names.RANDOM_SAMPLERS:
            way_out = "leave it out, MindDataset shuffles by itself (shuffle=True)"
            return what, f"which under a DistributedSampler draws the same rows in every epoch; {way_out}", ""
        told = _told_batch(context, site, origin)
        if told:
            return what, f"which is told the batch size ({told}): dealing would tear its batches apart; {WAY_OUT}", ""
        if _groups(context, origin):
            reason = (
                "whose loops inside loops may lay out batches by the order of its rows, which dealing would tear apart"
            )
            return what, f"{reason}; {WAY_OUT}", ""
    if not origins or not all(map(_known, origins)):
        return what, "", "the sampler is not found in this program; right if no batch relies on the order of its rows"
    return what, "", ""


def _known(origin: Origin) -> bool:
    """Whether a sampler is one of MindSpore's, one of the program's own classes, or written-out rows."""
    if origin.kind == "call":
        return origin.qualified.startswith("mindspore.") or origin.qualified in ("range", "list")
    return origin.kind in ("instance", "literal")


def _name(origin: Origin | None) -> str:
    if origin is None or origin.kind not in ("call", "instance"):
        return ""
    if isinstance(origin.node, cst.ClassDef):
        return origin.node.name.value
    return origin.qualified.rpartition(".")[2]


def _told_batch(context: Context, site: Site, origin: Origin) -> str:
    """Return the argument by which an own sampler is told the batch size, or nothing."""
    if origin.kind != "instance" or not isinstance(origin.node, cst.ClassDef):
        return ""
    flow = context.program.flow
    found = flow.method(origin.script, origin.node, "__init__")
    if found is None:
        return ""
    named = next((param.name.value for param in parameters(found[1]) if "batch" in param.name.value), "")
    batches = {text for use in site.uses_as("train") for s, step in use.methods if (text := _batch_size(s, step))}
    passed = (s.tree.text(arg.value) for s, call in flow.call_sites(found[1]) for arg in call.args)
    return str(named) or next((text for text in passed if text in batches and not text.isdigit()), "")


def _groups(context: Context, origin: Origin) -> bool:
    """Whether an own sampler walks in loops inside loops, as those do that put P classes of K rows into each batch."""
    if origin.kind != "instance" or not isinstance(origin.node, cst.ClassDef):
        return False
    found = context.program.flow.method(origin.script, origin.node, "__iter__")
    if found is None:
        return False
    loops = (cst.For, cst.While, cst.CompFor)
    outer = (part for part in walk(found[1].body) if isinstance(part, (cst.For, cst.While)))
    return any(isinstance(inner, loops) for loop in outer for inner in walk(loop.body))


def _batch_size(script: Script, step: cst.CSTNode) -> str:
    batch = batching(script, step)
    return script.tree.text(batch[0]) if batch is not None and batch[0] is not None else ""


def sampler_of(context: Context, site: Site) -> cst.BaseExpression | None:
    """Return the sampler a constructor passes, None if it passes none (or None)."""
    value = constructor_argument(site, "sampler")
    if value is None or literal(value) is None:
        return None
    flow = context.program.flow
    contexts = [use.calls for use in site.uses_as("train")] or [()]
    return None if all(flow.constant(site.script, value, calls) is None for calls in contexts) else value


def _later(context: Context, site: Site) -> list[tuple[Script, cst.Call]]:
    """Return the ``use_sampler`` calls on what a constructor built whole."""
    return [
        (script, call)
        for script, call, built in used_samplers(context.program, site)
        if any(not origin.parts for origin in built)
    ]


def _plain_statement(script: Script, call: cst.Call) -> cst.CSTNode | None:
    """Return the statement line that consists of a call, None if the call stands in something larger."""
    expression = script.tree.parent.get(call)
    line = script.tree.parent.get(expression) if isinstance(expression, cst.Expr) else None
    return line if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None


def keeps_out(context: Context, site: Site) -> bool:
    """Whether this rule decides about a dataset, so that no num_shards is added to it."""
    batches = argument(site.call, None, "batch_sampler")
    return (
        sampler_of(context, site) is not None
        or bool(_later(context, site))
        or (batches is not None and literal(batches) is not None)
    )
