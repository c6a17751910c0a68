"""Metrics over training data are metrics of a shard.

A dataset that is trained on and evaluated too is sharded for training, so each rank measures its own rows and prints
its own number.

Before and after (noted)::

    model.train(1, train)
    print(model.eval(train))
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..model import Decision
from . import KEPT, NOTED, Context, decide, rule

CODE = "MSD503"


@rule(CODE, "metrics over training data")
def check(context: Context) -> Iterator[Decision]:
    """Note evaluations of the very dataset that trains."""
    noted: set[cst.CSTNode] = set()
    for site in context.program.roles.sites:
        ways = {use.way for use in site.uses_as("train")}
        for use in site.uses_as("eval"):
            if use.way in ways:
                noted.add(use.node)
                message = (
                    f"evaluates the training data of line {site.script.line(site.call)}: each rank sees its shard only"
                )
                yield decide(CODE, NOTED, use.script, use.node, message)
    for sink in context.program.roles.sinks:
        if sink.role == "eval" and sink.node not in noted:
            message = f"{sink.what} evaluates whole data: the same number on every rank"
            yield decide(CODE, KEPT, sink.script, sink.node, message)
