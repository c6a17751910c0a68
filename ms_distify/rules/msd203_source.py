'''A source that cannot be indexed cannot be sharded by MindSpore.

``GeneratorDataset`` takes ``num_shards`` only over sources with ``__getitem__`` (FACTS 4). A generator function, a lambda
or a class that only iterates is refused; a source that cannot be found in the program gets ``num_shards`` with a note,
since MindSpore itself raises at once if it cannot.

Before (refused)::

    def rows():
        for i in range(100):
            yield (i,)

    train = ds.GeneratorDataset(rows, ["x"])
'''

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import catalog
from ..model import Decision
from ..reading.flow import Origin
from ..reading.roles import Site, argument
from . import NOTED, REFUSED, Context, decide, rule

CODE = "MSD203"
WAY_OUT = "give the source __getitem__ and __len__"


@rule(CODE, "sources that cannot be indexed")
def check(context: Context) -> Iterator[Decision]:
    """Refuse training sources that MindSpore cannot shard."""
    for site in context.program.roles.sites:
        if context.role(site)[0] != "train" or context.sharded(site):
            continue
        known = catalog.dataset(site.name)
        if known is not None and not known.shards:
            message = f"{site.name} takes no num_shards in every MindSpore release known here; use another dataset class"
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
    flow = context.program.flow
    for origin in _sources(context, site):
        if origin.kind == "function":
            name = getattr(getattr(origin.node, "name", None), "value", "a lambda")
            return f"the function {name} ({origin.script.where(origin.node)})"
        if origin.kind == "generator":
            name = getattr(getattr(origin.node, "name", None), "value", "a lambda")
            return f"what the generator {name} ({origin.script.where(origin.node)}) gives"
        if isinstance(origin.node, cst.GeneratorExp):
            return "a generator expression"
        if origin.kind == "instance" and isinstance(origin.node, cst.ClassDef):
            if flow.method(origin.script, origin.node, "__getitem__") is None:
                if not flow.library_bases(origin.script, origin.node) - {"object"}:
                    return f"of class {origin.node.name.value}, without __getitem__ ({origin.script.where(origin.node)})"
    return ""


def _unknown(context: Context, site: Site) -> bool:
    found = _sources(context, site)
    flow = context.program.flow
    for origin in found:
        if origin.kind == "literal":
            continue
        if origin.kind == "instance" and isinstance(origin.node, cst.ClassDef):
            if flow.method(origin.script, origin.node, "__getitem__") is not None:
                continue
        return True
    return not found


def keeps_out(context: Context, site: Site) -> bool:
    """Whether this rule refuses a dataset, so that nothing is added to it."""
    known = catalog.dataset(site.name)
    return (known is not None and not known.shards) or bool(_trouble(context, site))
