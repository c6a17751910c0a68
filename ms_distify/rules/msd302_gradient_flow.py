"""Gradients that cannot be followed, or that no reducer can be put behind.

The gradient that an optimizer applies must lead back to the call that takes it, and there must be a place where a reducer can be
built once and seen. Where the way is hidden (an optimizer out of a registry, gradients through a library), the program
is refused: without a reducer it would train every rank alone and say nothing.

Before (refused)::

    optimizer(library.gradients(net, x))
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import Decision
from . import REFUSED, Context, decide, rule

CODE = "MSD302"


@rule(CODE, "gradients that cannot be followed")
def check(context: Context) -> Iterator[Decision]:
    """Refuse takes of weights' gradients in programs where no application of an optimizer is found.

    What concerns one application is decided together with MSD301, which carries the edits.
    """
    program = context.program
    applied = {origin.node for application in program.gradients.applications for origin in application.optimizers}
    takes = [take for take in program.gradients.takes.values() if take.weights is not None]
    fed = {root.take.call for application in program.gradients.applications for root in application.roots}
    unfed = [take for take in takes if take.call not in fed]
    if not unfed:
        return
    for script in program.scripts:
        for call in script.bindings.calls:
            if not names.is_optimizer(program.flow.qualified(script, call)) or call in applied:
                continue
            if call in program.timeline.visited and not _handed_to_cell(context, call):
                take = unfed[0]
                message = (
                    f"gradients of weights are taken here, but where the optimizer of line {script.line(call)} "
                    "applies them cannot be followed; call it by its name"
                )
                yield decide(CODE, REFUSED, take.script, take.call, message)
                return


def _handed_to_cell(context: Context, optimizer: cst.CSTNode) -> bool:
    """Whether an optimizer goes into a Model or a train cell, which apply gradients themselves."""
    flow = context.program.flow
    for script in context.program.scripts:
        for call in script.bindings.calls:
            name = flow.qualified(script, call)
            if name in names.MODELS or names.is_train_cell(name):
                for arg in call.args:
                    if any(origin.node is optimizer for origin in flow.origins(script, arg.value)):
                        return True
    return False
