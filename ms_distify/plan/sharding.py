"""Whether a dataset is dealt over the ranks already: by num_shards, a sampler, or in another branch."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from ..mindspore import catalog, names
from ..reading.bindings import Binding, dotted
from ..reading.flow import Edge
from ..reading.keywords import star_keywords
from ..reading.program import Program
from ..reading.roles import Site, argument
from ..reading.script import Script
from ..reading.tree import children
from .startup import Startup


@dataclass(frozen=True)
class Sharding:
    """How a training dataset is dealt over the ranks.

    Attributes:
        done: each rank reads its own shard.
        trouble: why that can be neither seen nor brought about, with the way out; or nothing.
    """

    done: bool
    trouble: str = ""


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
    if sampler is not None and _deals(program, site.script, sampler):
        return YES
    value = constructor_argument(site, "num_shards")
    if value is not None:
        return _given(program, startup, site, value)
    stars = star_keywords(flow, site.script, site.call)
    if stars and "num_shards" in stars and any(program.mentions_rank(*item) for item in stars["num_shards"]):
        return YES
    if _dealt_later(program, site):
        return YES
    return _one_card_branch(program, site)


def _dealt_later(program: Program, site: Site) -> bool:
    """Whether ``use_sampler`` puts a sampler that deals rows on what a constructor built, after a ``split`` too."""
    for script in program.scripts:
        for call in script.bindings.calls:
            func = call.func
            if isinstance(func, cst.Attribute) and func.attr.value == "use_sampler" and call.args:
                built = program.flow.origins(script, func.value)
                if any(origin.node is site.call for origin in built) and _deals(program, script, call.args[0].value):
                    if not _is_split(site) or _is_trained(program, site, script, func.value):
                        return True
    return False


def _is_split(site: Site) -> bool:
    """Whether a part of a dataset trains, so that a sampler may sit on another part."""
    return any(
        isinstance(step, cst.Call) and isinstance(step.func, cst.Attribute) and step.func.attr.value == "split"
        for use in site.uses_as("train")
        for _, step in use.methods
    )


def _is_trained(program: Program, site: Site, script: Script, part: cst.BaseExpression) -> bool:
    """Whether the part of a split that gets a sampler is, by its name, the one that every training reads."""
    chosen = _bound(script, part)
    trained = {use.node for use in site.uses_as("train")}
    sinks = [sink for sink in program.roles.sinks if sink.node in trained and sink.dataset is not None]
    return bool(chosen and sinks) and all(
        sink.script is script and bool(chosen & _bound(script, sink.dataset))
        for sink in sinks
        if sink.dataset is not None
    )


def _bound(script: Script, node: cst.CSTNode | None, depth: int = 0) -> set[Binding]:
    """Return the bindings of the name that a dataset expression starts from, and of those it was bound from."""
    while isinstance(node, (cst.Call, cst.Attribute)):
        node = node.func if isinstance(node, cst.Call) else node.value
    if not isinstance(node, cst.Name) or depth > 10:
        return set()
    found = set(script.bindings.lookup(node))
    for binding in tuple(found):
        if not binding.path:
            found |= _bound(script, binding.value, depth + 1)
    return found


def _deals(program: Program, script: Script, sampler: cst.BaseExpression) -> bool:
    """Whether a sampler picks the rows of its rank: MindSpore's, or an own one that is told the rank."""
    if any(origin.qualified == names.DISTRIBUTED_SAMPLER for origin in program.flow.origins(script, sampler)):
        return True
    made: list[cst.CSTNode | None] = [sampler]
    if isinstance(sampler, cst.Name):
        made = [binding.value for binding in script.bindings.lookup(sampler)]
    return any(
        isinstance(call, cst.Call) and any(program.mentions_rank(script, arg.value) for arg in call.args)
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
        )
    return YES


__all__ = ["NO", "YES", "Sharding", "constructor_argument", "sharding"]
