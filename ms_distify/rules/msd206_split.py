"""A dataset is split whole, and the rows of the part that trains are dealt over the ranks.

``split()`` of a sharded dataset fails in MindSpore (FACTS 4), so the constructor gets no ``num_shards``. ``split``
leaves a sampler on each part to be replaced by ``use_sampler``; a ``DistributedSampler`` there makes rank r read every
N-th row that one card would read from the part (measured with 2.10 on 3 ranks), and the other parts stay whole. This
holds for datasets that are split as they were built: behind ``map`` or ``batch``, a part takes no sampler. A
``MindDataset`` would no longer shuffle its part from epoch to epoch, so that one is refused.

Before::

    train, val = ds.Cifar10Dataset(path).split([0.9, 0.1])

After::

    train, val = ds.Cifar10Dataset(path).split([0.9, 0.1])
    if rank_size is not None:
        train.use_sampler(ds.DistributedSampler(rank_size, rank_id, shuffle=False))
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import catalog
from ..model import Decision
from ..plan.sharding import last, part_of
from ..plan.shards import CannotReachError
from ..reading.bindings import dotted, literal
from ..reading.origin import Part
from ..reading.roles import Site, Use
from ..reading.script import Script
from . import CHANGED, REFUSED, Context, decide, rule
from .msd202_sampler import put_on

CODE = "MSD206"
WAY_OUT = "split first, then call use_sampler(ds.DistributedSampler(...)) on the part that trains"


@rule(CODE, "parts of a split that train")
def check(context: Context) -> Iterator[Decision]:
    """Deal the rows of the parts that train."""
    for site in context.program.roles.sites:
        if context.role(site)[0] != "train" or context.sharded(site) or context.sharding(site).trouble:
            continue
        wanted: dict[tuple[cst.Call, int | None], list[Use]] = {}
        for use in site.uses_as("train"):
            part = last(use.parts)
            if part is not None:
                wanted.setdefault(part_of(part), []).append(use)
        if wanted and any(not use.parts for use in site.uses_as("train")):
            message = f"{site.name} trains whole and in parts; build the whole by a call of its own"
            yield decide(CODE, REFUSED, site.script, site.call, message)
            continue
        for uses in wanted.values():
            yield _deal(context, site, uses)


def keeps_out(site: Site) -> bool:
    """Whether this rule decides about a dataset, so that no num_shards is added to it."""
    return any(use.parts for use in site.uses_as("train"))


def _deal(context: Context, site: Site, uses: list[Use]) -> Decision:
    part = uses[0].parts[0]
    script, call = part.script, part.call
    name, statement = _named(script, part)
    trouble = _trouble(site, uses)
    if not trouble and (statement is None or not name):
        trouble = "gives parts that have no name; write 'train, rest = data.split(...)' in a statement of its own"
    if trouble:
        return decide(CODE, REFUSED, script, call, f"split() {trouble}")
    try:
        supply = context.shards.supply_at(script, call, [use.parts[0].calls for use in uses])
    except CannotReachError as reason:
        return decide("MSD211", REFUSED, script, call, f"a part of {site.name} trains, but {reason}")
    assert statement is not None
    edit = put_on(context, script, statement, "use_sampler", name, supply)
    message = f"{name}, a part of {site.name}, trains ({uses[0].how}): its rows are dealt over the ranks"
    return decide(CODE, CHANGED, script, call, message, edit, *supply.edits)


def _trouble(site: Site, uses: list[Use]) -> str:
    """Return why a part of a split takes no sampler, or nothing."""
    known = catalog.dataset(site.name)
    if site.name == "MindDataset":
        return f"of a MindDataset whose part is dealt would no longer shuffle it; {WAY_OUT}, and shuffle(...) it"
    if known is None or not known.sampler:
        return f"of {site.name} gives parts that take no sampler, and shards cannot be split; cut the files instead"
    for use in uses:
        steps = [node for _, node in use.methods]
        before = steps[steps.index(use.parts[0].call) + 1 :] if use.parts[0].call in steps else []
        between = next((node for node in before if _method(node) not in ("split", "use_sampler", "add_sampler")), None)
        if between is not None:
            return f"behind {_method(between) or 'other steps'}() gives parts that take no sampler; {WAY_OUT}"
    return ""


def _method(node: cst.CSTNode) -> str:
    func = node.func if isinstance(node, cst.Call) else None
    return func.attr.value if isinstance(func, cst.Attribute) else ""


def _named(script: Script, part: Part) -> tuple[str, cst.CSTNode | None]:
    """Return what a part of a split is called behind the statement that makes it, and that statement."""
    tree = script.tree
    node: cst.CSTNode = part.call
    parent = tree.parent.get(node)
    chosen: object = ...
    if isinstance(parent, cst.Subscript) and parent.value is node and len(parent.slice) == 1:
        index = parent.slice[0].slice
        chosen = literal(index.value) if isinstance(index, cst.Index) else ...
        if chosen != part.index:
            return "", None
        node, parent = parent, tree.parent.get(parent)
    line = tree.parent.get(parent) if isinstance(parent, cst.Assign) else None
    if not isinstance(parent, cst.Assign) or parent.value is not node or len(parent.targets) != 1:
        return "", None
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return "", None
    return _target(script, parent.targets[0].target, part.index, whole=chosen is ...), line


def _target(script: Script, target: cst.BaseExpression, index: int | None, *, whole: bool) -> str:
    """Return what an assignment calls a part; ``whole``: all parts are assigned."""
    if not whole:
        return script.tree.text(target) if dotted(target) else ""
    if index is None or index < 0:
        return ""
    if isinstance(target, (cst.Tuple, cst.List)):
        elements = target.elements
        if index >= len(elements) or any(isinstance(element, cst.StarredElement) for element in elements):
            return ""
        value = elements[index].value
        return script.tree.text(value) if dotted(value) else ""
    return f"{script.tree.text(target)}[{index}]" if dotted(target) else ""


__all__ = ["CODE", "check", "keeps_out"]
