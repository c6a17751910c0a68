'''Train cells of the program's own need a look at their gradients.

A subclass of ``nn.TrainOneStepCell`` whose ``construct`` skips ``self.grad_reducer`` trains every rank alone, without an
error (FACTS 3). A class that writes its own ``construct`` is refused for now.

Before (refused)::

    class Step(nn.TrainOneStepCell):
        def construct(self, x, y):
            ...
'''

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import Decision
from . import REFUSED, Context, decide, rule

CODE = "MSD303"


@rule(CODE, "train cells of the program's own")
def check(context: Context) -> Iterator[Decision]:
    """Refuse own train cells and optimizers that are built in the program."""
    flow = context.program.flow
    seen: set[cst.CSTNode] = set()
    for script in context.program.scripts:
        for call in script.bindings.calls:
            for origin in flow.called(script, call):
                cls = origin.node
                if origin.kind != "class" or not isinstance(cls, cst.ClassDef) or cls in seen:
                    continue
                seen.add(cls)
                bases = flow.library_bases(origin.script, cls)
                if any(names.is_train_cell(base) for base in bases) and flow.method(origin.script, cls, "construct"):
                    message = f"{cls.name.value} writes a training step of its own, which may skip the gradient reducer"
                    yield decide(CODE, REFUSED, origin.script, cls, message + "; use nn.TrainOneStepCell as it is")
                elif any(names.is_optimizer(base) for base in bases):
                    message = f"{cls.name.value} is an optimizer of the program's own; whether it may be averaged cannot be told"
                    yield decide(CODE, REFUSED, origin.script, cls, message + "; use one of MindSpore's optimizers")
