"""Which draws from the generators of Python and NumPy decide about rows and weights, and so must be alike on all ranks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from ..mindspore import names
from ..reading.program import Program
from ..reading.roles import argument
from ..reading.script import Script
from ..reading.timeline import DRAW, TRAIN, Event, common
from ..reading.tree import walk
from .sharding import constructor_argument

PYTHON, NUMPY = "random", "numpy.random"


class Draws:
    """The draws of a program, by what they decide.

    A draw while the program is set up (a shuffled file list, a split, initial weights) is an event of the timeline.
    A draw of a generator function, a source that iterates or an own sampler decides which rows come next.
    Others, in ``__getitem__`` or in operations of ``map``, change one row; they need not be alike.
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
        """Return the draws that change single rows, if they are made at all."""
        reached = {event.node for event in self.made(module)}
        return [
            (script, call)
            for script, call, name in self._draws
            if module_of(name) == module and call not in reached and not self._next(script, call)
        ]

    def between_steps(self, event: Event) -> bool:
        """Whether a draw is made again and again, in a loop around a training step."""
        for train in self.program.timeline.of(TRAIN):
            level = common(event.frames, train.frames)
            if any(frame.repeated for frame in event.frames[: level + 1]):
                return True
        return False

    def started_anew(self) -> list[tuple[Script, cst.CSTNode]]:
        """Return the training loops that build a new iterator over the rows every time round an outer loop.

        Where ``num_epochs=1`` is not said, the pipeline of the iterator before is already drawing its next epoch, at a
        moment that nobody knows.
        """
        found: list[tuple[Script, cst.CSTNode]] = []
        for event in self.program.timeline.of(TRAIN):
            node: cst.CSTNode = event.node
            if isinstance(node, cst.For) and any(frame.repeated for frame in event.frames):
                if self._runs_on(event.script, node.iter):
                    found.append((event.script, node))
        return found

    def _runs_on(self, script: Script, rows: cst.BaseExpression) -> bool:
        made = (
            [rows, *(b.value for b in script.bindings.lookup(rows) if b.value)]
            if isinstance(rows, cst.Name)
            else [rows]
        )
        calls = [part for value in made for part in walk(value) if isinstance(part, cst.Call)]
        iterators = [c for c in calls if isinstance(c.func, cst.Attribute) and c.func.attr.value in names.ITERATORS]
        if iterators and isinstance(rows, cst.Name):
            return False  # one iterator for all epochs
        return not any(self.program.flow.constant(script, argument(c, None, "num_epochs")) == 1 for c in iterators)

    @cached_property
    def _draws(self) -> list[tuple[Script, cst.Call, str]]:
        return list(self.program.calls(*names.PYTHON_DRAWS, *names.NUMPY_DRAWS))

    def _next(self, script: Script, call: cst.Call) -> bool:
        return any(node in self._ordering for node in script.tree.ancestors(call))

    @cached_property
    def _ordering(self) -> set[cst.CSTNode]:
        """Functions and classes that decide which training rows come next."""
        return set(self._ordering_nodes())

    def _ordering_nodes(self) -> Iterator[cst.CSTNode]:
        flow = self.program.flow
        for site in self.program.roles.sites:
            if not site.uses_as("train"):
                continue
            sampler = constructor_argument(site, "sampler")
            source = argument(site.call, 0, "source") if site.name == "GeneratorDataset" else None
            for value in (sampler, source):
                for origin in flow.origins(site.script, value) if value is not None else ():
                    if origin.kind in ("function", "generator"):
                        yield origin.node
                    elif isinstance(origin.node, cst.ClassDef):
                        indexed = flow.method(origin.script, origin.node, "__getitem__") is not None
                        if value is sampler or not indexed:
                            yield from (cls for _, cls in flow.ancestry(origin.script, origin.node))


def module_of(name: str) -> str:
    """Return the module whose shared generator a function draws from."""
    return name.rpartition(".")[0]


__all__ = ["NUMPY", "PYTHON", "Draws", "module_of"]
