"""A source that cannot be indexed is dealt by a wrapper: each rank gets its row of every complete group of N.

``GeneratorDataset`` takes ``num_shards`` only over sources with ``__getitem__`` (FACTS 4). A generator function, a
generator, a lambda or a class that only iterates is passed through a small function that is put into the file: every
rank walks over all rows and keeps every N-th, so all take equally many steps; rows that fill no group are left out.
One card reads the source itself, as before; a source that ``**`` hands over cannot be passed through and is refused. A ``__getitem__`` that does not look at its index gives with ``num_shards``
the same rows on all ranks, as they share one seed. Where it draws them (with ``random``, NumPy, SciPy), every rank draws N
rows for each of its own and keeps one, so that together they read what one card draws; where it does not, it is
refused. A source that cannot be found in the program gets
``num_shards`` with a note, since MindSpore itself raises at once if it cannot.

Before::

    def rows():
        for i in range(100):
            yield (i,)

    train = ds.GeneratorDataset(rows, ["x"])

After::

    train = ds.GeneratorDataset(shard_source(rows, rank_size, rank_id), ["x"])
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import catalog, names
from ..model import Decision
from ..plan import sources
from ..plan.draws import Draws, ignores_index
from ..plan.sharding import used_samplers
from ..plan.shards import CannotReachError
from ..reading.flow import Origin
from ..reading.roles import Site, argument
from . import CHANGED, NOTED, REFUSED, Context, constructor_argument, decide, rule

CODE = "MSD203"
WAY_OUT = "give the source __getitem__ and __len__, so that an index names a row"


@rule(CODE, "sources that cannot be indexed")
def check(context: Context) -> Iterator[Decision]:
    """Deal the rows of sources that MindSpore cannot shard."""
    for site in context.program.roles.sites:
        if context.role(site)[0] != "train" or context.sharded(site) or context.sharding(site).trouble:
            continue
        known = catalog.dataset(site.name)
        if known is not None and not known.shards:
            message = f"{site.name} does not take num_shards in every MindSpore release; use another class"
            yield decide(CODE, REFUSED, site.script, site.call, message)
            continue
        blind, in_order = _blindly(context, site), _in_order(context, site)
        if blind and _drawn(context, site):
            yield _dealt(context, site, f"a source {blind}", "drawn")
        elif blind:
            message = f"the source of this GeneratorDataset is {blind}, which num_shards cannot divide; {WAY_OUT}"
            yield decide(CODE, REFUSED, site.script, site.call, message)
        elif in_order and _mixed(context, site):
            message = (
                f"the source of this GeneratorDataset is {in_order} here and one with __getitem__ there; build each "
                "with a constructor of its own"
            )
            yield decide(CODE, REFUSED, site.script, site.call, message)
        elif in_order:
            yield _dealt(context, site, in_order, "source")
        elif site.name == "GeneratorDataset" and _unknown(context, site):
            message = "the source is not found in this program; MindSpore raises at once if it has no __getitem__"
            yield decide(CODE, NOTED, site.script, site.call, message)


def _dealt(context: Context, site: Site, what: str, kind: str) -> Decision:
    """Pass a source through the function that deals its rows."""
    how = context.role(site)[1]
    source = argument(site.call, 0, "source")
    if source is None:
        message = f"GeneratorDataset trains ({how}) on {what}, which ** hands over; pass source= in the call itself"
        return decide(CODE, REFUSED, site.script, site.call, message)
    try:
        supply = context.shards.supply(site)
    except CannotReachError as reason:
        return decide("MSD211", REFUSED, site.script, site.call, f"{site.name} trains ({how}), but {reason}")
    edits = context.helpers.wrap(kind, site.script, source, supply)
    deal = (
        "draws a row for every rank and keeps its own"
        if kind == "drawn"
        else "gets its row of every complete group of rows"
    )
    message = f"GeneratorDataset trains ({how}) on {what}: each rank {deal}"
    return decide(CODE, CHANGED, site.script, site.call, message, *edits, *supply.edits)


def _sources(context: Context, site: Site) -> list[Origin]:
    program = context.program
    ways = [use.calls for use in site.uses_as("train")] or [()]
    given = [(script, value, calls) for script, value in sources.given(program, site) for calls in ways]
    found = (origin for script, value, calls in given for origin in sources.origins(program, script, value, calls))
    return list({(origin.node, origin.kind): origin for origin in found}.values())


def _in_order(context: Context, site: Site) -> str:
    """Return what kind of source can only be read from its beginning, or nothing."""
    for origin in _sources(context, site):
        where = origin.script.where(origin.node)
        name = getattr(getattr(origin.node, "name", None), "value", "a lambda")
        if origin.kind == "function":
            return f"the function {name} ({where})"
        if origin.kind == "generator":
            return f"what the generator {name} ({where}) gives"
        if origin.qualified == names.PARTIAL:
            return f"what functools.partial gives ({where})"
        if isinstance(origin.node, cst.GeneratorExp):
            return "a generator expression"
        if _only_iterates(context, origin):
            return f"an object of class {name}, without __getitem__ ({where})"
    return ""


def _blindly(context: Context, site: Site) -> str:
    """Return what source does not look at the index it is asked for, or nothing."""
    for origin in _sources(context, site):
        if ignores_index(context.program, origin) is not None and isinstance(origin.node, cst.ClassDef):
            where, name = origin.script.where(origin.node), origin.node.name.value
            return f"of class {name}, whose __getitem__ does not look at its index ({where})"
    return ""


def _mixed(context: Context, site: Site) -> bool:
    """Whether one constructor reads sources with and without ``__getitem__``, in training."""
    return any(_indexed(context, origin) for origin in _sources(context, site))


def _drawn(context: Context, site: Site) -> bool:
    """Whether every source of a dataset draws its rows, so that it can be drawn N times for each row of a rank."""
    program, draws = context.program, Draws(context.program)
    if constructor_argument(site, "sampler") is not None or any(used_samplers(program, site)):
        return False
    return all(
        draws.at_random(origin)
        and isinstance(origin.node, cst.ClassDef)
        and program.flow.method(origin.script, origin.node, "__len__") is not None
        for origin in _sources(context, site)
    )


def _only_iterates(context: Context, origin: Origin) -> bool:
    """Whether a source is an object of a class of the program that nothing gives a ``__getitem__``."""
    if origin.kind != "instance" or not isinstance(origin.node, cst.ClassDef) or _indexed(context, origin):
        return False
    bases = context.program.flow.library_bases(origin.script, origin.node)
    return all(base == "object" or names.is_sampler(base) for base in bases)  # samplers have __iter__ alone


def _indexed(context: Context, origin: Origin) -> bool:
    if origin.kind != "instance" or not isinstance(origin.node, cst.ClassDef):
        return False
    return context.program.flow.method(origin.script, origin.node, "__getitem__") is not None


def _unknown(context: Context, site: Site) -> bool:
    """Whether it cannot be seen that every source can be indexed."""
    found = _sources(context, site)
    return not found or not all(origin.kind == "literal" or _indexed(context, origin) for origin in found)


def keeps_out(context: Context, site: Site) -> bool:
    """Whether this rule decides about a dataset, so that no num_shards is added to it."""
    known = catalog.dataset(site.name)
    unsharded = known is not None and not known.shards
    return unsharded or bool(_blindly(context, site)) or bool(_in_order(context, site))
