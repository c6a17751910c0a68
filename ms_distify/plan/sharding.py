"""Whether a dataset is dealt over the ranks already: by num_shards, a sampler, or in another branch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ..mindspore import catalog, names
from ..reading.bindings import dotted, literal
from ..reading.flow import Edge, Origin
from ..reading.keywords import star_keywords
from ..reading.origin import Part
from ..reading.program import Program
from ..reading.roles import Site, argument
from ..reading.script import Script
from ..reading.tree import children, walk
from .startup import Startup


@dataclass(frozen=True)
class Sharding:
    """How a training dataset is dealt over the ranks.

    Attributes:
        done: each rank reads its own shard.
        trouble: why that can be neither seen nor brought about, with the way out; or nothing.
        twin: what the constructor that shards in the other branch passes for size and rank, where it waits for somebody
            to pass them; None if there is none.
    """

    done: bool
    trouble: str = ""
    twin: tuple[cst.BaseExpression, cst.BaseExpression] | None = None


YES, NO = Sharding(done=True), Sharding(done=False)


def constructor_argument(site: Site, name: str) -> cst.BaseExpression | None:
    """Return what a dataset constructor passes for a parameter, by keyword or by position."""
    known = catalog.dataset(site.name)
    slots = known.positional if known is not None else ()
    return argument(site.call, slots.index(name) if name in slots else None, name)


def sharding(program: Program, startup: Startup, site: Site) -> Sharding:
    """Return whether a training dataset is sharded already."""
    flow = program.flow
    sampler = constructor_argument(site, "sampler")
    ways: list[tuple[Edge, ...]] = [use.calls for use in site.uses_as("train")] or [()]
    if sampler is not None and all(_deals(program, site.script, sampler, way) for way in ways):
        return YES
    value = constructor_argument(site, "num_shards")
    if value is not None:
        return _given(program, startup, site, value)
    stars = star_keywords(flow, site.script, site.call)
    if stars and "num_shards" in stars and any(program.mentions_rank(*item) for item in stars["num_shards"]):
        return YES
    if _dealt_later(program, site) or _dealt_in_source(program, site):
        return YES
    return _one_card_branch(program, site)


def used_samplers(program: Program, site: Site) -> Iterator[tuple[Script, cst.Call, list[Origin]]]:
    """Yield the ``use_sampler`` and ``add_sampler`` calls on what a constructor built.

    Yields:
        The file, the call, and the ways on which the constructor's dataset gets there (for a part of a ``split``:
        which part).
    """
    for script in program.scripts:
        for call in script.bindings.calls:
            func = call.func
            if isinstance(func, cst.Attribute) and func.attr.value in names.SAMPLER_METHODS and call.args:
                built = [o for o in program.flow.origins(script, func.value) if o.node is site.call]
                if built:
                    yield script, call, built


def _dealt_later(program: Program, site: Site) -> bool:
    """Whether a sampler that deals rows is put on what a constructor built, after a ``split`` on all that trains."""
    wanted = {(part_of(part) if (part := last(use.parts)) else None) for use in site.uses_as("train")}
    dealt: set[tuple[cst.Call, int | None] | None] = set()
    for script, call, built in used_samplers(program, site):
        for origin in built:
            ways = [origin.calls] if origin.calls else [use.calls for use in site.uses_as("train")] or [()]
            if all(_deals(program, script, call.args[0].value, way) for way in ways):
                part = last(origin.parts)
                dealt.add(part_of(part) if part is not None else None)
    return bool(dealt) and wanted <= dealt


def last(parts: tuple[Part, ...]) -> Part | None:
    """Return the part that the last ``split`` gave."""
    return parts[0] if parts else None


def part_of(part: Part) -> tuple[cst.Call, int | None]:
    """Return what tells one part of one split from others."""
    return part.call, part.index


def _dealt_in_source(program: Program, site: Site) -> bool:
    """Whether the source of a ``GeneratorDataset`` is told rank and group size, and so deals its rows itself."""
    if site.name != "GeneratorDataset":
        return False
    source = argument(site.call, 0, "source")
    made: list[tuple[Script, cst.CSTNode | None]] = [(site.script, source)]
    if isinstance(source, cst.Name):
        made = [(site.script, binding.value) for binding in site.script.bindings.lookup(source)]
    elif source is not None:
        made += [(origin.script, origin.node) for origin in program.flow.origins(site.script, source)]
    return any(isinstance(call, cst.Call) and program.told(script, call) for script, call in made)


def _deals(program: Program, script: Script, sampler: cst.BaseExpression, calls: tuple[Edge, ...] = ()) -> bool:
    """Whether a sampler picks the rows of its rank: MindSpore's, or an own one that is told the rank."""
    flow = program.flow
    for origin in flow.origins(script, sampler, calls):
        if origin.qualified == names.DISTRIBUTED_SAMPLER and isinstance(origin.node, cst.Call):
            count = argument(origin.node, 0, "num_shards")
            # DistributedSampler(1, 0), or of parameters that nobody fills, gives every rank all rows.
            if not calls or flow.constant(origin.script, count, calls) not in (None, 1):
                if count is None or literal(count) != 1:
                    return True
    made: list[cst.CSTNode | None] = [sampler]
    if isinstance(sampler, cst.Name):
        made = [binding.value for binding in script.bindings.lookup(sampler)]
    return any(
        isinstance(call, cst.Call)
        and flow.qualified(script, call) != names.DISTRIBUTED_SAMPLER
        and any(program.mentions_rank(script, arg.value) for arg in call.args)
        for call in made
    )


def _given(program: Program, startup: Startup, site: Site, value: cst.BaseExpression) -> Sharding:
    script = site.script
    contexts: list[tuple[Edge, ...]] = [use.calls for use in site.uses_as("train")] or [()]
    values = [program.flow.constant(script, value, calls) for calls in contexts]
    if all(found in (None, 1) for found in values):
        return NO
    if program.mentions_rank(script, value) or startup.inits:
        # Where the program itself starts up, a count that cannot be followed (a configuration) is its own
        # affair.
        return YES
    text = script.tree.text(value)
    return Sharding(
        done=False,
        trouble=f"num_shards={text} does not come from get_group_size(), and nothing starts the ranks; leave it out",
    )


def _one_card_branch(program: Program, site: Site) -> Sharding:
    """Look at a constructor in the one-card branch of an ``if`` whose other branch shards."""
    node: cst.CSTNode = site.call
    for parent in site.script.tree.ancestors(site.call):
        if (
            isinstance(parent, (cst.If, cst.IfExp))
            and node is not parent.test
            and any(_counts(program, site.script, parent, t) for t in _twins(program, site, parent, node))
        ):
            return _decided(program, site, parent)
        node = parent
    return NO


def _twins(program: Program, site: Site, branching: cst.If | cst.IfExp, own: cst.CSTNode) -> list[cst.BaseExpression]:
    """Return what constructors in the other branch, or behind an ``if`` without one, pass for num_shards."""
    tree = site.script.tree
    other = branching.orelse if own is branching.body else branching.body
    outside: cst.CSTNode | None = other
    if other is None:
        outside = tree.parent.get(branching)
    found = []
    for twin in program.roles.sites:
        if twin is site or twin.script is not site.script or outside is None:
            continue
        start, end = tree.span(outside)
        if start <= tree.start(twin.call) < end:
            shards = constructor_argument(twin, "num_shards")
            if shards is not None:
                found.append(shards)
    return found


def _counts(program: Program, script: Script, branching: cst.If | cst.IfExp, shards: cst.BaseExpression) -> bool:
    """Whether the condition is about the number of ranks that the other branch deals the rows to."""
    return bool(_read(branching.test) & _read(shards)) or program.mentions_rank(script, branching.test)


def _read(expression: cst.CSTNode) -> set[str]:
    """Return the variables that an expression reads: ``n``, ``args.n`` (and not ``args``)."""
    name = dotted(expression)
    if name is not None:
        return {name}
    return {found for child in children(expression) for found in _read(child)}


def _decided(program: Program, site: Site, branching: cst.If | cst.IfExp) -> Sharding:
    """The one-card branch is harmless unless the training call itself always chooses it."""
    contexts: list[tuple[Edge, ...]] = [use.calls for use in site.uses_as("train")] or [()]
    flow = program.flow
    if any(flow.constant(site.script, branching.test, calls) is not ... for calls in contexts):
        test = site.script.tree.text(branching.test)
        where = site.script.where(branching.test)
        return Sharding(
            done=False,
            trouble=f"'{test}' ({where}) always chooses the branch without shards; pass get_group_size(), get_rank()",
            twin=_waiting(program, site, branching, contexts),
        )
    return YES


def _waiting(
    program: Program, site: Site, branching: cst.If | cst.IfExp, contexts: list[tuple[Edge, ...]]
) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """Return the parameters through which the other branch would get size and rank, if nobody passes them."""
    other = branching.orelse if site.call in set(walk(branching.body)) else branching.body
    inside = set(walk(other)) if other is not None else set()
    for twin in program.roles.sites:
        if twin.script is site.script and twin.call in inside:
            size, rank = constructor_argument(twin, "num_shards"), constructor_argument(twin, "shard_id")
            # Nothing that is passed reaches constants of the function itself.
            if _parameter(site.script, size) and _parameter(site.script, rank):
                assert isinstance(size, cst.Name)
                assert isinstance(rank, cst.Name)
                now = [tuple(program.flow.constant(site.script, node, c) for node in (size, rank)) for c in contexts]
                if all(pair == (None, None) for pair in now) or all(pair == (1, 0) for pair in now):
                    return size, rank
    return None


def _parameter(script: Script, node: cst.BaseExpression | None) -> bool:
    """Whether an expression is a parameter, and nothing else is assigned to its name."""
    bindings = script.bindings.lookup(node) if isinstance(node, cst.Name) else []
    return bool(bindings) and all(binding.kind == "parameter" for binding in bindings)


__all__ = ["NO", "YES", "Sharding", "constructor_argument", "last", "part_of", "sharding", "used_samplers"]
