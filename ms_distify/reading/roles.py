"""Which dataset trains, which evaluates, and how that is known.

Roles come from where a dataset flows: the walk starts at what consumes it (``model.train``, a loop whose body steps
an optimizer, ``model.eval``) and goes back to the constructor. Names are not asked while the flow can tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from ..mindspore import names
from .flow import ELEMENT, Edge, Flow, Origin
from .project import Project
from .script import Script
from .tree import children

# Methods of mindspore.Model that take datasets: (role, position, keyword).
_MODEL_METHODS = {
    "train": (("train", 1, "train_dataset"),),
    "fit": (("train", 1, "train_dataset"), ("eval", 2, "valid_dataset")),
    "eval": (("eval", 0, "valid_dataset"),),
    "build": (("train", 0, "train_dataset"), ("eval", 1, "valid_dataset")),
}


@dataclass(frozen=True)
class Use:
    """One consumer that a dataset reaches.

    Attributes:
        role: "train", "eval" (a metric or a plain look at the rows), or "read" (rows looked at, nothing computed from
            them that the program could learn from).
        script: the file of the consumer.
        node: the consuming call or loop.
        how: what it is, for messages: "model.train at train.py:88".
        calls: the calls between the consumer and the constructor, outermost first.
        methods: the dataset methods between them, last applied first.
    """

    role: str
    script: Script
    node: cst.CSTNode
    how: str
    calls: tuple[Edge, ...]
    methods: tuple[tuple[Script, cst.CSTNode], ...]


@dataclass(eq=False)
class Site:
    """A dataset constructor of the program.

    Attributes:
        script: its file.
        call: the constructor call.
        name: the class of ``mindspore.dataset``.
        uses: the consumers it reaches.
    """

    script: Script
    call: cst.Call
    name: str
    uses: list[Use] = field(default_factory=list)

    def uses_as(self, role: str) -> list[Use]:
        """Return the uses in one role."""
        return [use for use in self.uses if use.role == role]


@dataclass(frozen=True)
class Sink:
    """A place that consumes a dataset."""

    role: str
    script: Script
    node: cst.CSTNode
    dataset: cst.BaseExpression
    what: str
    selectors: tuple[tuple[str, int | str | None], ...] = ()
    sure: bool = True


class Roles:
    """The dataset constructors and consumers of a program."""

    def __init__(self, project: Project, flow: Flow) -> None:
        self.project = project
        self.flow = flow
        self._steps: dict[cst.CSTNode, bool] = {}
        self.lost: list[tuple[Sink, Origin]] = []
        self.sites = self._constructors()
        self.sinks = [*self._model_sinks(), *self._loop_sinks()]
        self._by_call = {site.call: site for site in self.sites}
        for sink in self.sinks:
            self._follow(sink)

    # -- constructors ------------------------------------------------------------------------------------------

    def _constructors(self) -> list[Site]:
        found = []
        for script in self.project.scripts():
            for call in script.bindings.calls:
                name = names.dataset_class(self.flow.qualified(script, call))
                if name is not None:
                    found.append(Site(script, call, name))
        return found

    # -- consumers ---------------------------------------------------------------------------------------------

    def _model_sinks(self) -> Iterator[Sink]:
        for script in self.project.scripts():
            for call in script.bindings.calls:
                func = call.func
                if not isinstance(func, cst.Attribute) or func.attr.value not in _MODEL_METHODS:
                    continue
                is_model = self._is_model(script, func.value)
                if is_model is False:
                    continue
                for role, position, keyword in _MODEL_METHODS[func.attr.value]:
                    value = argument(call, position, keyword)
                    if value is not None:
                        what = script.tree.text(func)
                        yield Sink(role, script, call, value, what, sure=is_model is True)

    def _is_model(self, script: Script, receiver: cst.BaseExpression) -> bool | None:
        """Whether an expression is a ``mindspore.Model``; None where that cannot be told."""
        origins = self.flow.origins(script, receiver)
        answers: list[bool | None] = []
        for origin in origins:
            if origin.kind == "call" and origin.qualified == names.MODEL:
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

    def _loop_sinks(self) -> Iterator[Sink]:
        for script in self.project.scripts():
            for loop in script.bindings.loops:
                role = "read"
                if isinstance(loop, cst.For):
                    if self.steps(script, loop.body):
                        role = "train"
                elif self.steps(script, script.tree.parent[loop]):
                    role = "train"
                yield Sink(role, script, loop, loop.iter, "the loop", (ELEMENT,))
            for call in script.bindings.calls:
                if self.flow.qualified(script, call) == "next" and call.args:
                    around = next(
                        (n for n in script.tree.ancestors(call) if isinstance(n, (cst.For, cst.While, cst.FunctionDef))),
                        script.tree.module,
                    )
                    role = "train" if self.steps(script, around.body) else "read"  # type: ignore[attr-defined]
                    yield Sink(role, script, call, call.args[0].value, "next()", (ELEMENT,))

    def steps(self, script: Script, node: cst.CSTNode) -> bool:
        """Whether running ``node`` (a block or body) updates weights, in it or in what it calls."""
        if isinstance(node, (list, tuple)):
            return any(self.steps(script, part) for part in node)
        known = self._steps.get(node)
        if known is not None:
            return known
        self._steps[node] = False
        found = any(
            self.is_step(script, call) or any(self.steps(home, body_of(f)) for home, f in self.flow.targets(script, call))
            for call in calls_in(node)
        )
        self._steps[node] = found
        return found

    def is_step(self, script: Script, call: cst.Call) -> bool:
        """Whether a call applies an optimizer or runs a train cell."""
        for origin in self.flow.called(script, call):
            name = origin.qualified
            if origin.kind == "call" and (names.is_optimizer(name) or names.is_train_cell(name)):
                return True
            if origin.kind == "external" and name.endswith("().step") and names.is_optimizer(name[: -len("().step")]):
                return True
            if origin.kind == "instance" and isinstance(origin.node, cst.ClassDef):
                bases = self.flow.library_bases(origin.script, origin.node)
                if any(names.is_optimizer(base) or names.is_train_cell(base) for base in bases):
                    return True
        return False

    # -- the way back ------------------------------------------------------------------------------------------

    def _follow(self, sink: Sink) -> None:
        how = f"{sink.what} at {sink.script.where(sink.node)}"
        for origin in self.flow.origins(sink.script, sink.dataset, (), sink.selectors):
            site = self._by_call.get(origin.node) if isinstance(origin.node, cst.Call) else None  # type: ignore[arg-type]
            if site is not None:
                site.uses.append(Use(sink.role, sink.script, sink.node, how, origin.calls, origin.methods))
            elif sink.sure and not sink.selectors:
                self.lost.append((sink, origin))


def argument(call: cst.Call, position: int | None, keyword: str) -> cst.BaseExpression | None:
    """Return the argument a call passes at a position or by keyword; None if it passes none or hides it in ``*``."""
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


def calls_in(node: cst.CSTNode) -> Iterator[cst.Call]:
    """Yield the calls that running a block makes by itself, leaving out bodies of functions defined in it."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, (cst.FunctionDef, cst.Lambda, cst.ClassDef)) and current is not node:
            continue
        if isinstance(current, cst.Call):
            yield current
        stack.extend(children(current))


def body_of(function: cst.FunctionDef | cst.Lambda) -> cst.CSTNode:
    """Return the body of a function or lambda."""
    return function.body
