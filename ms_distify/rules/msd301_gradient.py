'''Gradients taken by hand need a reducer, which this release does not put in.

``value_and_grad`` and its relatives reduce nothing: ranks drift apart and nothing says so (FACTS 3). ``Model.train``,
``nn.TrainOneStepCell`` and ``nn.TrainOneStepWithLossScaleCell`` average the gradients by themselves and need nothing.

Before (refused)::

    grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)
    loss, grads = grad_fn(x, y)
    optimizer(grads)
'''

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import Decision
from . import KEPT, REFUSED, Context, decide, rule

CODE = "MSD301"
WAY_OUT = "use Model.train or nn.TrainOneStepCell, which average gradients themselves, or add nn.DistributedGradReducer by hand"


@rule(CODE, "gradients taken by hand")
def check(context: Context) -> Iterator[Decision]:
    """Refuse hand-written gradients; name the steps that reduce by themselves."""
    program = context.program
    taken = False
    for script, call, name in program.gradients():
        taken = True
        short = name.rpartition(".")[2]
        yield decide(CODE, REFUSED, script, call, f"{short} takes gradients that nothing averages over the ranks; {WAY_OUT}")
    for script, call in program.steps:
        for origin in program.flow.called(script, call):
            if origin.kind == "call" and names.is_train_cell(origin.qualified):
                cell = origin.qualified.rpartition(".")[2]
                yield decide(CODE, KEPT, script, call, f"{cell} averages its gradients itself in data parallel")
            elif not taken and (names.is_optimizer(origin.qualified.removesuffix("().step"))):
                message = f"the gradient given to this optimizer cannot be followed; {WAY_OUT}"
                yield decide(CODE, REFUSED, script, call, message)
    for sink in program.roles.sinks:
        if sink.role == "train" and sink.sure and isinstance(sink.node, cst.Call) and sink.what != "next()":
            yield decide(CODE, KEPT, sink.script, sink.node, f"{sink.what} averages its gradients itself in data parallel")
