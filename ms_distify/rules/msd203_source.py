"""A source that cannot be indexed cannot be sharded by MindSpore.

``GeneratorDataset`` takes ``num_shards`` only over sources with ``__getitem__`` (FACTS 4). A generator
function, a lambda or a class that only iterates is refused, and so is a ``__getitem__`` that does not look at its index:
with the one seed that ranks share, all would draw the same rows; a source that cannot be found in the program gets
``num_shards`` with a note, since MindSpore itself raises at once if it cannot.

Before (refused)::

    def rows():
        for i in range(100):
            yield (i,)

    train = ds.GeneratorDataset(rows, ["x"])

After, by hand::

    class Rows:
        def __len__(self):
            return 100

        def __getitem__(self, index):
            return (index,)

    train = ds.GeneratorDataset(Rows(), ["x"])
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import catalog
from ..model import Decision
from ..reading.bindings import parameters
from ..reading.flow import Origin
from ..reading.roles import Site, argument
from ..reading.tree import walk
from . import NOTED, REFUSED, Context, decide, rule

CODE = "MSD203"
WAY_OUT = "give the source __getitem__ and __len__, so that an index names a row"


@rule(CODE, "sources that cannot be indexed")
def check(context: Context) -> Iterator[Decision]:
    """Refuse training sources that MindSpore cannot shard."""
    for site in context.program.roles.sites:
        if context.role(site)[0] != "train" or context.sharded(site):
            continue
        known = catalog.dataset(site.name)
        if known is not None and not known.shards:
            message = f"{site.name} does not take num_shards in every MindSpore release; use another class"
            yield decide(CODE, REFUSED, site.script, site.call, message)
            continue
        reason = _trouble(context, site)
        if reason:
            message = f"the source of this GeneratorDataset is {reason}, which num_shards cannot divide; {WAY_OUT}"
            yield decide(CODE, REFUSED, site.script, site.call, message)
        elif site.name == "GeneratorDataset" and _unknown(context, site):
            message = "the source is not found in this program; MindSpore raises at once if it has no __getitem__"
            yield decide(CODE, NOTED, site.script, site.call, message)


def _sources(context: Context, site: Site) -> list[Origin]:
    if site.name != "GeneratorDataset":
        return []
    value = argument(site.call, 0, "source")
    return [] if value is None else context.program.flow.origins(site.script, value)


def _trouble(context: Context, site: Site) -> str:
    """Return what kind of source cannot be indexed, or nothing."""
    for origin in _sources(context, site):
        where = origin.script.where(origin.node)
        name = getattr(getattr(origin.node, "name", None), "value", "a lambda")
        if origin.kind == "function":
            return f"the function {name} ({where})"
        if origin.kind == "generator":
            return f"what the generator {name} ({where}) gives"
        if isinstance(origin.node, cst.GeneratorExp):
            return "a generator expression"
        if _blind(context, origin):
            return f"of class {name}, whose __getitem__ does not look at its index ({where})"
        if _only_iterates(context, origin):
            return f"of class {name}, without __getitem__ ({where})"
    return ""


def _blind(context: Context, origin: Origin) -> bool:
    """Whether a source gives rows without asking which: with one seed, all ranks would draw the same ones."""
    if not _indexed(context, origin) or not isinstance(origin.node, cst.ClassDef):
        return False
    found = context.program.flow.method(origin.script, origin.node, "__getitem__")
    if found is None:
        return False
    params = parameters(found[1])
    if len(params) != 2 or params[1].star:
        return False
    return not any(isinstance(part, cst.Name) and part.value == params[1].name.value for part in walk(found[1].body))


def _only_iterates(context: Context, origin: Origin) -> bool:
    """Whether a source is an object of a class of the program that nothing gives a ``__getitem__``."""
    if origin.kind != "instance" or not isinstance(origin.node, cst.ClassDef) or _indexed(context, origin):
        return False
    return not context.program.flow.library_bases(origin.script, origin.node) - {"object"}


def _indexed(context: Context, origin: Origin) -> bool:
    if origin.kind != "instance" or not isinstance(origin.node, cst.ClassDef):
        return False
    return context.program.flow.method(origin.script, origin.node, "__getitem__") is not None


def _unknown(context: Context, site: Site) -> bool:
    """Whether it cannot be seen that every source can be indexed."""
    found = _sources(context, site)
    return not found or not all(origin.kind == "literal" or _indexed(context, origin) for origin in found)


def keeps_out(context: Context, site: Site) -> bool:
    """Whether this rule refuses a dataset, so that nothing is added to it."""
    known = catalog.dataset(site.name)
    return (known is not None and not known.shards) or bool(_trouble(context, site))
