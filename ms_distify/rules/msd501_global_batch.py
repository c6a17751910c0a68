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
from ..reading.roles import argument
from . import NOTED, Context, decide, rule
from .msd204_pipeline import method_name

CODE = "MSD501"


@rule(CODE, "the global batch grows with the ranks")
def check(context: Context) -> Iterator[Decision]:
    """Note the batch size of every training."""
    program = context.program
    seen: set[cst.CSTNode] = set()
    for site in program.roles.sites:
        for use in site.uses_as("train"):
            for script, node in use.methods:
                if node in seen or method_name(node) != "batch" or not isinstance(node, cst.Call):
                    continue
                seen.add(node)
                size = argument(node, 0, "batch_size")
                if size is None:
                    continue
                number = program.flow.constant(script, size, use.calls)
                text = str(number) if isinstance(number, int) else script.tree.text(size)
                message = f"global batch is {text} x ranks now; batch size and learning rate are left as they are"
                yield decide(CODE, NOTED, script, node, message)
