"""Which draws from the generators of Python and NumPy decide about rows and weights, and so must be alike on all ranks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from ..mindspore import names
from ..reading.bindings import parameters
from ..reading.origin import Origin
from ..reading.program import Program
from ..reading.roles import Site, Use, argument
from ..reading.script import Script
from ..reading.timeline import DRAW, TRAIN, Event, common, draws_as
from ..reading.tree import values, walk
from . import sources
from .sharding import constructor_argument

PYTHON, NUMPY = "random", "numpy.random"
_MAX_REACHED = 500


class Draws:
    """The draws of a program, by what they decide.

    A draw while the program is set up (a shuffled file list, a split, initial weights) is an event of the timeline.
    A draw of a generator function, a source that iterates or an own sampler decides which rows come next, or changes
    them in step with that; so does one of a ``__getitem__`` that does not look at its index. Others, in ``__getitem__``
    or in operations of ``map``, change one row, at a moment of their own; they need not be alike.
    """

    def __init__(self, program: Program) -> None:
        self.program = program

    def made(self, module: str) -> list[Event]:
        """Return the draws from a module's generator that the program reaches by itself, in order."""
        return [event for event in self.program.timeline.of(DRAW) if module_of(event.what) == module]

    def in_order(self, module: str) -> list[tuple[Script, cst.Call]]:
        """Return the draws that decide which training rows come next."""
        return [(s, call) for s, call, name in self._draws if module_of(name) == module and self._next(s, call)]

    def of_rows(self, module: str) -> list[tuple[Script, cst.Call]]:
        """Return the draws that change single training rows while others are read: in ``__getitem__``, in ``map``."""
        return [
            (script, call)
            for script, call, name in self._draws
            if module_of(name) == module and any(node in self._changing for node in script.tree.ancestors(call))
        ]

    def at_random(self, origin: Origin) -> bool:
        """Whether a source draws each row that it is asked for, whatever the index."""
        found = ignores_index(self.program, origin)
        inside = self._reached(iter([found])) if found is not None else set()
        return any(node in inside for script, call, _ in self._draws for node in script.tree.ancestors(call))

    def of_evaluation(self, site: Site, use: Use) -> tuple[Script, cst.Call, str] | None:
        """Return a draw that is made while the rows of a dataset are read by one of its consumers."""
        made: list[tuple[Script, cst.CSTNode]] = []
        for script, node in ((site.script, site.call), *use.methods):
            for arg in node.args if isinstance(node, cst.Call) else ():
                made += self._called_by(script, arg.value)
                for origin in self.program.flow.origins(script, arg.value):
                    if isinstance(origin.node, (cst.ClassDef, cst.FunctionDef)):
                        made.append((origin.script, origin.node))
        inside = self._reached(iter(made))
        return next((d for d in self._draws if any(node in inside for node in d[0].tree.ancestors(d[1]))), None)

    def between_steps(self, event: Event) -> bool:
        """Whether a draw is made again and again, in a loop around a training step."""
        for train in self.program.timeline.of(TRAIN):
            level = common(event.frames, train.frames)
            if any(frame.repeated for frame in event.frames[: level + 1]):
                return True
        return False

    def started_anew(self) -> list[tuple[Script, cst.For, cst.Call | None]]:
        """Return the training loops that build a new iterator over the rows every time round an outer loop.

        Where ``num_epochs=1`` is not said, the pipeline of the iterator before is already drawing its next epoch, at a
        moment that nobody knows. With each loop comes the call that makes the iterator, if ``num_epochs=1`` can be said
        there.
        """
        found: list[tuple[Script, cst.For, cst.Call | None]] = []
        for event in self.program.timeline.of(TRAIN):
            loop: cst.CSTNode = event.node
            if not isinstance(loop, cst.For) or not any(frame.repeated for frame in event.frames):
                continue
            calls = _iterators(loop.iter)
            if not calls and self._bound_to_iterator(event.script, loop.iter):
                continue  # one iterator for all epochs
            counts = [argument(call, None, "num_epochs") for call in calls]
            if not any(self.program.flow.constant(event.script, count) == 1 for count in counts if count is not None):
                found.append((event.script, loop, calls[0] if counts == [None] else None))
        return found

    def _bound_to_iterator(self, script: Script, rows: cst.BaseExpression) -> bool:
        """Whether an expression has a name that was bound to an iterator over rows before."""
        names_in = [part for part in values(rows) if isinstance(part, cst.Name)]
        bound = [binding.value for name in names_in for binding in script.bindings.lookup(name)]
        return any(_iterators(value) for value in bound if value is not None)

    @cached_property
    def _draws(self) -> list[tuple[Script, cst.Call, str]]:
        known = list(self.program.calls(*names.PYTHON_DRAWS, *names.NUMPY_DRAWS))
        others = ((s, call, draws_as(name, call)) for s, call, name in self.program.library_calls)
        return known + [(script, call, name) for script, call, name in others if name]

    def _next(self, script: Script, call: cst.Call) -> bool:
        return any(node in self._ordering for node in script.tree.ancestors(call))

    @cached_property
    def _ordering(self) -> set[cst.CSTNode]:
        """Functions and classes that decide which training rows come next, and what they call."""
        return self._reached(self._ordering_roots())

    @cached_property
    def _changing(self) -> set[cst.CSTNode]:
        """Functions that change single training rows, and what they call."""
        return self._reached(self._changing_roots())

    def _ordering_roots(self) -> Iterator[tuple[Script, cst.CSTNode]]:
        flow = self.program.flow
        for script, value, is_sampler in self._sources():
            for origin in sources.origins(self.program, script, value):
                if origin.kind in ("function", "generator"):
                    yield origin.script, origin.node
                elif isinstance(origin.node, cst.ClassDef):
                    indexed = flow.method(origin.script, origin.node, "__getitem__")
                    if is_sampler or indexed is None:
                        yield from flow.ancestry(origin.script, origin.node)
                    elif ignores_index(self.program, origin) is not None:
                        yield indexed

    def _changing_roots(self) -> Iterator[tuple[Script, cst.CSTNode]]:
        flow = self.program.flow
        for script, value, is_sampler in self._sources():
            for origin in () if is_sampler else flow.origins(script, value):
                if isinstance(origin.node, cst.ClassDef):
                    found = flow.method(origin.script, origin.node, "__getitem__")
                    if found is not None and ignores_index(self.program, origin) is None:
                        yield found
        steps = {(s, n) for site in self._training() for use in site.uses_as("train") for s, n in use.methods}
        for script, step in steps:
            for arg in step.args if isinstance(step, cst.Call) else ():
                yield from self._called_by(script, arg.value)

    def _called_by(self, script: Script, operations: cst.BaseExpression) -> Iterator[tuple[Script, cst.CSTNode]]:
        """Yield the program's functions and callable objects in what ``map`` or ``batch`` is given."""
        for part in values(operations):
            if isinstance(part, (cst.Name, cst.Call, cst.Lambda, cst.Attribute)):
                for origin in self.program.flow.origins(script, part):
                    if isinstance(origin.node, (cst.FunctionDef, cst.Lambda)):
                        yield origin.script, origin.node
                    elif isinstance(origin.node, cst.ClassDef):
                        found = self.program.flow.method(origin.script, origin.node, "__call__")
                        if found is not None:
                            yield found
                    elif isinstance(origin.node, (cst.List, cst.Tuple)) and origin.node is not operations:
                        yield from self._called_by(origin.script, origin.node)

    def _training(self) -> list[Site]:
        return [site for site in self.program.roles.sites if site.uses_as("train")]

    def _sources(self) -> Iterator[tuple[Script, cst.BaseExpression, bool]]:
        """Yield the samplers and generator sources of training datasets; the last says that it is a sampler."""
        for site in self._training():
            sampler = constructor_argument(site, "sampler")
            if sampler is not None:
                yield site.script, sampler, True
            yield from ((script, value, False) for script, value in sources.given(self.program, site))

    def _reached(self, roots: Iterator[tuple[Script, cst.CSTNode]]) -> set[cst.CSTNode]:
        """Return functions and classes, and the functions of the program that they call, directly or not."""
        found: set[cst.CSTNode] = set()
        stack = list(roots)
        while stack and len(found) < _MAX_REACHED:
            script, node = stack.pop()
            if node in found:
                continue
            found.add(node)
            for part in walk(node):
                if isinstance(part, cst.Call):
                    stack += self.program.flow.targets(script, part)
        return found


def ignores_index(program: Program, origin: Origin) -> tuple[Script, cst.FunctionDef] | None:
    """Return the ``__getitem__`` of a source that gives rows without asking which, if it does so."""
    if origin.kind != "instance" or not isinstance(origin.node, cst.ClassDef):
        return None
    found = program.flow.method(origin.script, origin.node, "__getitem__")
    if found is None:
        return None
    params = parameters(found[1])
    if len(params) != 2 or params[1].star:
        return None
    asks = any(isinstance(part, cst.Name) and part.value == params[1].name.value for part in values(found[1].body))
    return None if asks else found


def _iterators(node: cst.CSTNode) -> list[cst.Call]:
    """Return the calls in an expression that make an iterator over rows."""
    calls = [part for part in walk(node) if isinstance(part, cst.Call)]
    return [c for c in calls if isinstance(c.func, cst.Attribute) and c.func.attr.value in names.ITERATORS]


def module_of(name: str) -> str:
    """Return the module whose shared generator a function draws from."""
    return name.rpartition(".")[0]


__all__ = ["NUMPY", "PYTHON", "Draws", "ignores_index", "module_of"]
