"""What a ``GeneratorDataset`` reads."""

from __future__ import annotations

import libcst as cst

from ..mindspore import names
from ..reading.flow import Origin
from ..reading.keywords import star_keywords
from ..reading.origin import Edge
from ..reading.program import Program
from ..reading.roles import Site, argument
from ..reading.script import Script


def given(program: Program, site: Site) -> list[tuple[Script, cst.BaseExpression]]:
    """Return the source of a ``GeneratorDataset``: its argument, or what ``**`` arguments carry under that name."""
    if site.name != "GeneratorDataset":
        return []
    value = argument(site.call, 0, "source")
    if value is not None:
        return [(site.script, value)]
    return (star_keywords(program.flow, site.script, site.call) or {}).get("source", [])


def origins(program: Program, script: Script, value: cst.BaseExpression, calls: tuple[Edge, ...] = ()) -> list[Origin]:
    """Return where a source comes from; ``functools.partial(f, ...)`` is as good as what ``f`` is, if that is a function."""
    found = []
    for origin in program.flow.origins(script, value, calls):
        call = origin.node
        inner: list[Origin] = []
        if origin.qualified == names.PARTIAL and isinstance(call, cst.Call) and call.args:
            inner = origins(program, origin.script, call.args[0].value, origin.calls)
        found += inner if inner and all(one.kind == "function" for one in inner) else [origin]
    return found
