"""In which order a program does what matters: contexts, init, seeds, what it builds, where it trains.

The started script is followed statement by statement into the functions it calls. Each event keeps the blocks
that lead to it, so that "after the context and before the first dataset" becomes a place in one block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import libcst as cst

from ..mindspore import names, wrappers
from .bindings import literal, parameters
from .expressions import is_main_guard
from .flow import Flow, Origin
from .project import Project
from .roles import Roles, calls_in
from .script import Script

CONTEXT, INIT, RANK, PARALLEL, RESET, SEED = "context", "init", "rank", "parallel", "reset", "seed"
BUILD, TRAIN = "build", "train"
# Seeds of NumPy and of the datasets alone: `mindspore.set_seed` sets them too.
PART_SEED = "part seed"
# Seeds of Python's own generator, and draws from it and from NumPy's.
PYTHON_SEED, DRAW = "python seed", "draw"
_KINDS = {
    names.SET_CONTEXT: CONTEXT,
    names.SET_DEVICE: CONTEXT,
    names.INIT: INIT,
    names.GET_RANK: RANK,
    names.GET_GROUP_SIZE: RANK,
    names.SET_PARALLEL: PARALLEL,
    names.RESET_PARALLEL: RESET,
    names.SET_SEED: SEED,
    names.NUMPY_SEED: PART_SEED,
    names.PYTHON_SEED: PYTHON_SEED,
    names.DATASET_SEED: PART_SEED,
    names.TENSOR: BUILD,
    names.PARAMETER: BUILD,
    names.MODEL: BUILD,
    names.LOAD_CHECKPOINT: BUILD,
}
_MAX_EVENTS = 20_000


@dataclass(frozen=True)
class Frame:
    """A statement on the way to an event: the ``index``-th of ``block``.

    Attributes:
        repeated: the block is the body of a loop.
        conditional: the block may be left out or left early (an ``if`` other than the main guard, a handler,
        what
            handlers guard).
    """

    script: Script
    block: Any
    index: int
    repeated: bool = False
    conditional: bool = False

    @property
    def statement(self) -> cst.CSTNode:
        """The statement of the block that leads to the event."""
        statement: cst.CSTNode = self.block.body[self.index]
        return statement


@dataclass(frozen=True)
class Event:
    """Something that happens when the program runs.

    Attributes:
        kind: one of the constants of this module.
        script: the file of ``node``.
        node: the call.
        frames: the statements that lead there, outermost first.
        order: its place in the course of the program.
        what: for a build: what is built, for messages.
        rows: whether what is built is a dataset, which starts from no random weights.
    """

    kind: str
    script: Script
    node: cst.Call
    frames: tuple[Frame, ...]
    order: int
    what: str = ""
    rows: bool = False

    @property
    def conditional(self) -> bool:
        """Whether it happens only under a condition or in a loop."""
        return any(frame.conditional or frame.repeated for frame in self.frames)


def diverge(first: tuple[Frame, ...], second: tuple[Frame, ...]) -> int:
    """Return the level at which two events lie in different statements of one block; -1 if there is none."""
    for level, (a, b) in enumerate(zip(first, second)):
        if a.block is not b.block:
            return -1
        if a.index != b.index:
            return level
    return -1


def common(first: tuple[Frame, ...], second: tuple[Frame, ...]) -> int:
    """Return the innermost level at which two events lie in the same block; 0 is the started file itself."""
    level = 0
    for index, (a, b) in enumerate(zip(first, second)):
        if a.block is not b.block:
            break
        level = index
        if a.index != b.index:
            break
    return level


def may_be_left_out(event: Event, others: list[Event]) -> bool:
    """Whether some of ``others`` can happen without ``event``: it is in a branch or loop they are not in."""
    return any(
        frame.conditional or frame.repeated
        for other in others
        for frame in event.frames[common(event.frames, other.frames) + 1 :]
    )


class Timeline:
    """The events of a program, in order."""

    def __init__(self, project: Project, flow: Flow, roles: Roles) -> None:
        self.project, self.flow = project, flow
        self._trains = {sink.node for sink in roles.sinks if sink.role == "train"}
        self._roles = roles
        self._entered: set[tuple[cst.CSTNode, cst.CSTNode]] = set()
        self._imported: set[Script] = {project.entry}
        self.events: list[Event] = []
        # In which order calls are reached, and statements begun and finished, for the first time.
        self.handed_over: list[cst.Call] = []  # library calls that are given functions or classes to call
        self.visited: dict[cst.CSTNode, int] = {}
        self.begun: dict[cst.CSTNode, int] = {}
        self.finished: dict[cst.CSTNode, int] = {}
        # How often statements are reached, on different ways; loops are told by the frames.
        self.runs: dict[cst.CSTNode, int] = {}
        self._clock = 0
        self._body(project.entry, project.entry.tree.module, (), started=True)

    def of(self, *kinds: str) -> list[Event]:
        """Return the events of some kinds, in order."""
        return [event for event in self.events if event.kind in kinds]

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    # -- statements ------------------------------------------------------------------------------------------

    def _body(
        self,
        script: Script,
        block: Any,
        frames: tuple[Frame, ...],
        *,
        repeated: bool = False,
        conditional: bool = False,
        started: bool = False,
    ) -> None:
        if not hasattr(block, "body"):
            return
        for index, statement in enumerate(block.body):
            if len(self.events) > _MAX_EVENTS:
                return
            here = (*frames, Frame(script, block, index, repeated, conditional))
            self.begun.setdefault(statement, self._tick())
            self.runs[statement] = self.runs.get(statement, 0) + 1
            self._statement(script, statement, here, started)
            self.finished.setdefault(statement, self._tick())

    def _statement(self, script: Script, node: cst.CSTNode, frames: tuple[Frame, ...], started: bool) -> None:
        if isinstance(node, cst.FunctionDef):
            self._defaults(script, node, frames)
            return
        if isinstance(node, cst.ClassDef):
            self._body(script, node.body, frames, started=started)
        elif isinstance(node, cst.If):
            self._if(script, node, frames, started)
        elif isinstance(node, (cst.For, cst.While)):
            self._expression(script, node.iter if isinstance(node, cst.For) else node.test, frames)
            if node in self._trains:
                self._step_event(script, node, frames)
            self._body(script, node.body, frames, repeated=True, started=started)
            if node.orelse is not None:
                self._body(script, node.orelse.body, frames, started=started)
        elif isinstance(node, cst.With):
            for item in node.items:
                self._expression(script, item.item, frames)
            self._body(script, node.body, frames, started=started)
        elif isinstance(node, (cst.Try, cst.TryStar)):
            # `try: init()` with a handler for "no launcher" does not always init.
            self._body(script, node.body, frames, conditional=bool(node.handlers), started=started)
            for handler in node.handlers:
                self._body(script, handler.body, frames, conditional=True, started=started)
            for clause in (node.orelse, node.finalbody):
                if clause is not None:
                    self._body(script, clause.body, frames, started=started)
        elif isinstance(node, cst.Match):
            self._expression(script, node.subject, frames)
            for case in node.cases:
                self._body(script, case.body, frames, conditional=True, started=started)
        else:
            parts = node.body if isinstance(node, cst.SimpleStatementLine) else [node]
            for part in parts:
                if isinstance(part, (cst.Import, cst.ImportFrom)):
                    self._import(script, part, frames)
                else:
                    self._expression(script, part, frames)

    def _defaults(self, script: Script, function: cst.FunctionDef, frames: tuple[Frame, ...]) -> None:
        """Follow what is drawn for defaults, which are computed where the function is defined.

        Cells in defaults (``act=nn.ReLU()``) are not counted as built there: they have no weights as a rule.
        """
        known = len(self.events)
        for param in parameters(function):
            if param.default is not None:
                self._expression(script, param.default, frames)
        self.events[known:] = [event for event in self.events[known:] if event.kind != BUILD]

    def _if(self, script: Script, node: cst.If, frames: tuple[Frame, ...], started: bool) -> None:
        if is_main_guard(node):
            if started:
                self._body(script, node.body, frames, started=started)
            return
        self._expression(script, node.test, frames)
        self._body(script, node.body, frames, conditional=True, started=started)
        if isinstance(node.orelse, cst.If):
            self._if(script, node.orelse, frames, started)
        elif node.orelse is not None:
            self._body(script, node.orelse.body, frames, conditional=True, started=started)

    def _import(self, script: Script, node: cst.Import | cst.ImportFrom, frames: tuple[Frame, ...]) -> None:
        for module in self.project.imports_at(script, node):
            if module not in self._imported:
                self._imported.add(module)
                self._body(module, module.tree.module, frames)

    # -- calls -----------------------------------------------------------------------------------------------

    def _expression(self, script: Script, node: cst.CSTNode, frames: tuple[Frame, ...]) -> None:
        calls = sorted(calls_in(node), key=lambda call: script.tree.span(call)[1])
        for call in calls:
            self._call(script, call, frames)

    def _call(self, script: Script, call: cst.Call, frames: tuple[Frame, ...]) -> None:
        self.visited.setdefault(call, self._tick())
        if call in self._trains:
            self._event(TRAIN, script, call, frames, script.tree.text(call.func))
        for origin in self.flow.called(script, call):
            if origin.kind == "external":
                kind, what = self._library(origin.qualified)
                if drawn := draws_as(origin.qualified, call):
                    kind, what = DRAW, drawn
                if kind:
                    rows = names.dataset_class(origin.qualified) is not None
                    self._event(kind, script, call, frames, what, rows=rows)
                for handed in self._handed_over(script, call):
                    self.handed_over.append(call)
                    if isinstance(handed.node, cst.FunctionDef):
                        self._enter(handed.script, handed.node, call, frames)
            elif origin.kind == "class" and isinstance(origin.node, cst.ClassDef):
                bases = self.flow.library_bases(origin.script, origin.node)
                if any(names.is_cell(base) or names.is_train_cell(base) for base in bases):
                    self._event(BUILD, script, call, frames, f"the Cell {origin.node.name.value}")
                    continue
                self._enter_origin(origin, call, frames)
            elif origin.kind == "function":
                self._enter_origin(origin, call, frames)
        if self._roles.is_step(script, call) and call not in self._trains:
            self._step_event(script, call, frames)

    def _library(self, qualified: str) -> tuple[str, str]:
        kind = _KINDS.get(qualified)
        last = qualified.rpartition(".")[2]
        if kind is not None:
            return kind, last
        if qualified in names.PYTHON_DRAWS or qualified in names.NUMPY_DRAWS:
            return DRAW, qualified
        if names.dataset_class(qualified) or names.is_optimizer(qualified) or names.is_train_cell(qualified):
            return BUILD, last
        if qualified in names.BUILDS_TRAIN_CELL:
            return BUILD, last
        if names.is_cell(qualified):
            return BUILD, f"the Cell {last}"
        if qualified.startswith(names.OPERATORS) and last[:1].islower():
            # A primitive that is only made (`ops.Cast()`) touches no device: MindSpore's own distributed
            # examples make them at module level, before init.
            return BUILD, f"the operator {last}"
        if wrappers.is_wrapper(qualified) and "." in qualified:
            return BUILD, qualified
        return "", ""

    def _handed_over(self, script: Script, call: cst.Call) -> Iterator[Origin]:
        """Yield functions and classes given to a library that may call them: ``fire.Fire(main)``, ``app.run(main)``."""
        for arg in call.args:
            if isinstance(arg.value, cst.Name):
                for origin in self.flow.origins(script, arg.value):
                    if isinstance(origin.node, (cst.FunctionDef, cst.ClassDef)):
                        yield origin

    def _enter_origin(self, origin: Origin, call: cst.Call, frames: tuple[Frame, ...]) -> None:
        node = origin.node
        if isinstance(node, cst.ClassDef):
            found = self.flow.method(origin.script, node, "__init__")
            if found is not None:
                self._enter(*found, call, frames)
        elif isinstance(node, (cst.FunctionDef, cst.Lambda)):
            self._enter(origin.script, node, call, frames)

    def _enter(
        self,
        script: Script,
        function: cst.FunctionDef | cst.Lambda,
        call: cst.Call,
        frames: tuple[Frame, ...],
    ) -> None:
        # Every call enters each function once: the first time is the one that decides what comes too early.
        if (call, function) in self._entered or len(frames) > 60:
            return
        self._entered.add((call, function))
        if isinstance(function, cst.Lambda):
            self._expression(script, function.body, frames)
        else:
            self._body(script, function.body, frames)

    def _step_event(self, script: Script, node: cst.CSTNode, frames: tuple[Frame, ...]) -> None:
        # A loop may take the step; of steps only the place is looked at, and that every node has.
        self._event(TRAIN, script, node, frames, "the training loop")  # type: ignore[arg-type]

    def _event(
        self,
        kind: str,
        script: Script,
        node: cst.Call,
        frames: tuple[Frame, ...],
        what: str = "",
        *,
        rows: bool = False,
    ) -> None:
        self.events.append(Event(kind, script, node, frames, self._tick(), what, rows))


def draws_as(qualified: str, call: cst.Call) -> str:
    """Return what a call of another library draws from NumPy's shared generator, under a name there; or nothing."""
    draws = qualified in names.NUMPY_SPLITS or (qualified.startswith("scipy.stats.") and qualified.endswith(".rvs"))
    return f"numpy.random.{qualified.rpartition('.')[2]}" if draws and not _has_state(call) else ""


def _has_state(call: cst.Call) -> bool:
    """Whether a call of scikit-learn's or SciPy's is told how to draw."""
    states = [arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "random_state"]
    return any(literal(state) is not None for state in states) or any(arg.star for arg in call.args)
