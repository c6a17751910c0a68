"""The global batch grows with the ranks.

N ranks at batch b take the steps that one card takes at batch N x b (FACTS 2). Batch size and learning rate are left as
they are; the new global batch is noted once for each training.

Before and after (noted)::

    train = train.batch(32)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..model import Decision
from ..reading.pipeline import batching
from . import NOTED, Context, decide, rule

CODE = "MSD501"


@rule(CODE, "the global batch grows with the ranks")
def check(context: Context) -> Iterator[Decision]:
    """Note the batch size of every training."""
    program = context.program
    seen: set[cst.CSTNode] = set()
    for site in program.roles.sites:
        for use in site.uses_as("train"):
            for script, node in use.methods:
                batch = batching(script, node)
                if node in seen or batch is None or batch[0] is None:
                    continue
                seen.add(node)
                size = batch[0]
                number = program.flow.constant(script, size, use.calls)
                text = str(number) if isinstance(number, int) else script.tree.text(size)
                message = f"global batch is {text} x ranks now; batch size and learning rate are left as they are"
                yield decide(CODE, NOTED, script, node, message)
