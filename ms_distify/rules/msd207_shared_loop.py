"""A loop that trains on one dataset and evaluates another.

Where one loop serves both, and the step stands under a condition, the flow cannot tell which dataset trains: sharding
all of them would give every rank metrics of its own rows. ``# ms-distify: eval`` on the constructor's line of the
evaluation data settles it.

Before (refused)::

    for phase in ("train", "val"):
        for x, y in loaders[phase]:
            if phase == "train":
                step(x, y)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..model import Decision
from ..reading.roles import Use
from ..reading.script import Script
from ..reading.tree import children
from . import REFUSED, Context, decide, rule

CODE = "MSD207"


@rule(CODE, "loops that train and evaluate")
def check(context: Context) -> Iterator[Decision]:
    """Refuse loops over several datasets that train only under a condition."""
    roles = context.program.roles
    for sink in roles.sinks:
        loop = sink.node
        if sink.role != "train" or not isinstance(loop, cst.For) or _always(context, sink.script, loop):
            continue
        fed = {
            (site.call, tuple(edge.call for edge in use.calls))
            for site in roles.sites
            for use in site.uses
            if use.node is loop and not context.program.pragma(site.script, site.call, "eval")
        }
        if len(fed) > 1:
            message = (
                "this loop reads several datasets and trains only under a condition, so which of them trains cannot be "
                "told; write '# ms-distify: eval' on the line of each constructor of evaluation data"
            )
            yield decide(CODE, REFUSED, sink.script, loop, message)
    yield from _taken(context)


def _taken(context: Context) -> Iterator[Decision]:
    """Refuse rows taken by ``next`` beside a step that other rows are seen to reach, and these are not."""
    roles = context.program.roles
    reach: set[tuple[cst.Call, tuple[tuple[cst.Call, int | None], ...]]] = set()
    taken: dict[tuple[cst.Call, tuple[tuple[cst.Call, int | None], ...]], Use] = {}
    for site in roles.sites:
        if context.program.pragma(site.script, site.call, "eval"):
            continue
        for use in site.uses_as("train"):
            key = (site.call, use.way)
            if use.how.startswith("next() "):
                taken.setdefault(key, use)
            else:
                reach.add(key)
    for key, use in taken.items():
        if reach and key not in reach and not context.program.pragma(use.script, key[0], "train"):
            message = (
                "other rows reach the training step, and these are not seen to, so whether they train cannot be told; write "
                "'# ms-distify: eval' (or 'train') on the line of their constructor"
            )
            yield decide(CODE, REFUSED, use.script, use.node, message)


def _always(context: Context, script: Script, loop: cst.For) -> bool:
    """Whether a step of a loop's body stands under no condition."""
    stack: list[cst.CSTNode] = [loop.body]
    while stack:
        node = stack.pop()
        if isinstance(node, (cst.If, cst.IfExp, cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            continue
        if isinstance(node, cst.Call) and context.program.roles.steps(script, node):
            return True
        stack.extend(children(node))
    return False
