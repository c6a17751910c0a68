"""What consumes datasets: ``model.train`` and its kin, loops, train cells and gradient functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from ..mindspore import names, wrappers
from .flow import ELEMENT, Flow, Origin, Selectors
from .project import Project
from .script import Script

if TYPE_CHECKING:
    from .roles import Roles

# Methods of mindspore.Model that take datasets: (role, position, keyword).
_MODEL_METHODS = {
    "train": (("train", 1, "train_dataset"),),
    "fit": (("train", 1, "train_dataset"), ("eval", 2, "valid_dataset")),
    "eval": (("eval", 0, "valid_dataset"),),
    "build": (("train", 0, "train_dataset"), ("eval", 1, "valid_dataset")),
}
# What starts the training of a wrapper library's own trainer.
_WRAPPER_STARTS = frozenset({"train", "fit", "run"})


@dataclass(frozen=True)
class Sink:
    """A place that consumes a dataset.

    Attributes:
        role: "train", "eval" or "read".
        script: the file of ``node``.
        node: the consuming call or loop.
        dataset: the expression that is consumed; None where the call hides it in ``*`` or ``**`` arguments.
        what: what it is called in messages.
        selectors: what it takes out of the dataset.
        sure: whether it is a method of a ``mindspore.Model``.
        must: whether a dataset must be found here, so that its loss is told.
    """

    role: str
    script: Script
    node: cst.CSTNode
    dataset: cst.BaseExpression | None
    what: str
    selectors: Selectors = ()
    sure: bool = True
    must: bool = True


class Sinks:
    """Finds the consumers of a program."""

    def __init__(self, project: Project, flow: Flow, roles: Roles) -> None:
        self.project, self.flow, self.roles = project, flow, roles

    def all(self) -> Iterator[Sink]:
        """Yield every consumer."""
        for script in self.project.scripts():
            for call in script.bindings.calls:
                yield from self._methods(script, call)
                yield from self._functions(script, call)
                yield from self._fed_step(script, call)
            for loop in script.bindings.loops:
                yield self._loop(script, loop)

    # -- Model -----------------------------------------------------------------------------------------------

    def _methods(self, script: Script, call: cst.Call) -> Iterator[Sink]:
        func = call.func
        if isinstance(func, cst.Attribute):
            name = func.attr.value
            if name in _WRAPPER_STARTS and self._is_wrapper(script, func.value):
                yield Sink("train", script, call, func.value, script.tree.text(func), sure=False)
                return
            if name not in _MODEL_METHODS:
                return
            is_model = self._is_model(script, func.value)
        else:
            head, _, name = self.flow.qualified(script, call).rpartition("().")
            is_model = head in names.MODELS and name in _MODEL_METHODS
        if is_model is False:
            return
        for role, position, keyword in _MODEL_METHODS[name]:
            value = argument(call, position, keyword)
            hidden = value is None and any(arg.star for arg in call.args) and role == "train" and is_model
            if value is not None or hidden:
                # What may be a Model trains as far as anybody can tell, so its dataset must be found too.
                sure, must = is_model is True, is_model is True or role == "train"
                yield Sink(role, script, call, value, script.tree.text(func), sure=sure, must=must)

    def _is_wrapper(self, script: Script, receiver: cst.BaseExpression) -> bool:
        return any(
            origin.kind == "call" and wrappers.is_wrapper(origin.qualified) and origin.qualified not in names.MODELS
            for origin in self.flow.origins(script, receiver)
        )

    def _is_model(self, script: Script, receiver: cst.BaseExpression) -> bool | None:
        """Whether an expression is a ``mindspore.Model``; None where that cannot be told."""
        origins = self.flow.origins(script, receiver)
        answers: list[bool | None] = []
        for origin in origins:
            if origin.kind == "call" and origin.qualified in names.MODELS:
                answers.append(True)
            elif origin.kind == "instance" and isinstance(origin.node, cst.ClassDef):
                answers.append(names.MODEL in self.flow.library_bases(origin.script, origin.node))
            elif origin.kind == "unknown":
                answers.append(None)
            else:
                answers.append(False)
        if True in answers:
            return True
        return None if None in answers else False

    # -- loops and iterators ---------------------------------------------------------------------------------

    def _loop(self, script: Script, loop: cst.For | cst.CompFor) -> Sink:
        body = loop.body if isinstance(loop, cst.For) else script.tree.parent[loop]
        role = "train" if self.roles.steps(script, body) else "read"
        return Sink(role, script, loop, loop.iter, "the loop", (ELEMENT,), sure=False, must=role == "train")

    def _functions(self, script: Script, call: cst.Call) -> Iterator[Sink]:
        qualified = self.flow.qualified(script, call)
        iterator = call.args[0].value if qualified == "next" and call.args else None
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "__next__":
            iterator = call.func.value
        if iterator is not None:
            around = next(
                (n for n in script.tree.ancestors(call) if isinstance(n, (cst.For, cst.While, cst.FunctionDef))),
                script.tree.module,
            )
            role = "train" if self.roles.steps(script, around.body) else "read"
            yield Sink(role, script, call, iterator, "next()", (ELEMENT,), sure=False, must=False)
        elif qualified == names.DATA_SINK:
            value = argument(call, 1, "dataset")
            if value is not None:
                stepping = call.args[0].value
                steps = any(
                    self.roles.steps(home, function.body)
                    for origin in self.flow.origins(script, stepping)
                    for home, function in self._runs(origin)
                )
                yield Sink("train" if steps else "read", script, call, value, "data_sink", sure=False, must=steps)

    def _runs(self, origin: Origin) -> Iterator[tuple[Script, cst.FunctionDef | cst.Lambda]]:
        node = origin.node
        if isinstance(node, (cst.FunctionDef, cst.Lambda)):
            yield origin.script, node
        elif isinstance(node, cst.ClassDef):
            found = self.flow.method(origin.script, node, "construct")
            if found is not None:
                yield found

    # -- rows that reach a step ------------------------------------------------------------------------------

    def _fed_step(self, script: Script, call: cst.Call) -> Iterator[Sink]:
        """What a train cell or a gradient function is called with comes from a training dataset."""
        if not call.args or not self._learns(script, call):
            return
        for arg in call.args:
            if not arg.star:
                what = f"{script.tree.text(call.func)}()"
                yield Sink("train", script, call, arg.value, what, sure=False, must=False)

    def _learns(self, script: Script, call: cst.Call) -> bool:
        origins = self.flow.called(script, call)
        for origin in origins:
            if origin.kind == "call" and names.is_train_cell(origin.qualified):
                return True
            if origin.kind == "call" and origin.qualified in names.GRADIENT_CALLS:
                around = next((n for n in script.tree.ancestors(call) if isinstance(n, cst.FunctionDef)), None)
                return self.roles.steps(script, around.body if around is not None else script.tree.module.body)
            if origin.kind == "instance" and isinstance(origin.node, cst.ClassDef):
                bases = self.flow.library_bases(origin.script, origin.node)
                if any(names.is_train_cell(base) for base in bases):
                    return True
                found = self.flow.method(origin.script, origin.node, "construct")
                if found is not None and any(names.is_cell(base) for base in bases):
                    return self.roles.steps(found[0], found[1].body)
        return False


def argument(call: cst.Call, position: int | None, keyword: str) -> cst.BaseExpression | None:
    """Return the argument at a position or by keyword; None if there is none or ``*`` hides it."""
    place = 0
    for arg in call.args:
        if arg.keyword is not None:
            if arg.keyword.value == keyword:
                return arg.value
        elif arg.star == "*":
            return None
        elif not arg.star:
            if place == position:
                return arg.value
            place += 1
    return None
