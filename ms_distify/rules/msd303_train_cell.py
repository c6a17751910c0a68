"""Train cells of the program's own average their gradients too.

A subclass of ``nn.TrainOneStepCell`` whose ``construct`` skips the inherited ``self.grad_reducer`` trains every rank alone,
without an error (FACTS 3); its gradients are passed through it (MSD301). A ``construct`` that neither takes gradients in
sight nor calls the one it inherits is refused, and so is an optimizer of the program's own that changes its gradients;
one that only looks at them is given averaged ones.

Before::

    class Step(nn.TrainOneStepCell):
        def construct(self, x, y):
            loss = self.network(x, y)
            grads = self.grad(self.network, self.weights)(x, y, self.sens)
            return ops.depend(loss, self.optimizer(grads))

After::

    class Step(nn.TrainOneStepCell):
        def construct(self, x, y):
            loss = self.network(x, y)
            grads = self.grad_reducer(self.grad(self.network, self.weights)(x, y, self.sens))
            return ops.depend(loss, self.optimizer(grads))
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import Decision
from ..reading.bindings import dotted
from ..reading.script import Script
from ..reading.tree import walk
from . import KEPT, REFUSED, Context, decide, rule

CODE = "MSD303"


@rule(CODE, "train cells of the program's own")
def check(context: Context) -> Iterator[Decision]:
    """Look at own train cells and optimizers that are built in the program."""
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
                if any(names.is_train_cell(base) for base in bases):
                    yield from _cell(context, origin.script, cls)
                elif any(names.is_optimizer(base) for base in bases) and not _hands_on(context, origin.script, cls):
                    message = f"{cls.name.value} is an optimizer of the program's own; whether its gradients may be averaged cannot be told"
                    yield decide(CODE, REFUSED, origin.script, cls, message + "; use one of MindSpore's optimizers")


def _hands_on(context: Context, script: Script, cls: cst.ClassDef) -> bool:
    """Whether an optimizer of the program's own gives its gradients, as they come, to the ``construct`` of its base."""
    found = context.program.flow.method(script, cls, "construct")
    if found is None:
        return context.program.flow.method(script, cls, "__call__") is None
    home, construct = found
    params = [*construct.params.posonly_params, *construct.params.params]
    scope = home.bindings.scopes[construct]
    if len(params) != 2 or construct.params.star_kwarg is not None or isinstance(construct.params.star_arg, cst.Param):
        return False
    gradients = params[1].name.value
    if len(scope.bindings[gradients]) != 1 or any(_changes(part, gradients) for part in walk(construct)):
        return False
    passed = [
        part
        for part in walk(construct)
        if isinstance(part, cst.Call) and _is_base(home, part.func)
        if len(part.args) == 1 and isinstance(part.args[0].value, cst.Name) and part.args[0].value.value == gradients
    ]
    return len(passed) == 1


def _changes(part: cst.CSTNode, gradients: str) -> bool:
    """Whether a list of gradients is changed in place."""
    if isinstance(part, cst.AssignTarget) and isinstance(part.target, cst.Subscript):
        return dotted(part.target.value) == gradients
    return isinstance(part, cst.AugAssign) and isinstance(part.target, cst.Subscript)


def _is_base(script: Script, func: cst.BaseExpression) -> bool:
    """Whether this is ``super().construct``, or an attribute of ``self`` that is only ever that."""
    if not isinstance(func, cst.Attribute):
        return False
    name = dotted(func)
    set_to = [value for target, value, _ in script.bindings.attribute_assignments if dotted(target) == name]
    return _is_super(func) or (bool(set_to) and all(isinstance(v, cst.Attribute) and _is_super(v) for v in set_to))


def _cell(context: Context, script: Script, cls: cst.ClassDef) -> Iterator[Decision]:
    found = context.program.flow.method(script, cls, "construct")
    if found is None:
        yield decide(CODE, KEPT, script, cls, f"{cls.name.value} keeps the construct that averages by itself")
        return
    home, construct = found
    inside = set(walk(construct))
    if any(application.call in inside for application in context.program.gradients.applications):
        return
    if any(isinstance(part, cst.Attribute) and _is_super(part) for part in inside):
        yield decide(CODE, KEPT, script, cls, f"{cls.name.value} calls the construct that averages by itself")
        return
    message = f"the construct of {cls.name.value} applies gradients in a way that cannot be followed"
    yield decide(CODE, REFUSED, home, construct, message + "; call self.optimizer(grads) in it")


def _is_super(part: cst.Attribute) -> bool:
    """Whether this is ``super().construct``."""
    return part.attr.value == "construct" and isinstance(part.value, cst.Call) and dotted(part.value.func) == "super"
