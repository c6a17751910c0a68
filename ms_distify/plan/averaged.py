"""Whether the reducers that a program has of its own average, on many ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from ..mindspore import names
from ..reading.bindings import dotted
from ..reading.gradients import Application, Root
from ..reading.program import Program
from ..reading.roles import argument
from ..reading.script import Script
from ..reading.tree import values
from .startup import Startup

# Not just "parallel": `if args.parallel` is a flag that the launcher knows nothing of.
_PARALLEL = re.compile(r"parallel_mode|ParallelMode")
_MAX_PARTS = 200
_Reducer = tuple[Script, cst.Call]


class Averaged:
    """Judges the reducers on the way of gradients."""

    def __init__(self, program: Program, startup: Startup) -> None:
        self.program, self.startup = program, startup

    def roots(self, application: Application) -> list[Root]:
        """Return the roots of an application, without the reducers that never run.

        A reducer under a flag that is False wherever it is set averages nothing: gradients pass it by.
        """
        if self._inits_off():
            return application.roots
        found = []
        for root in application.roots:
            live = [index for index, reducer in enumerate(root.reducers) if not self._is_off(reducer)]
            first = live[0] if live else len(root.reducers)
            # what lies in front of a reducer that never runs lies in front of none
            before = tuple((name, behind) for name, behind in root.before if behind > first)
            reducers = tuple(root.reducers[index] for index in live)
            found.append(replace(root, reducers=reducers, before=before))
        return found

    def trouble(self, application: Application, roots: list[Root]) -> str:
        """Return why the reducers on some ways of an application do not average what one card takes, or nothing."""
        reducers = list(dict.fromkeys(reducer for root in roots for reducer in root.reducers))
        if any(names.ALL_REDUCE + "()" in root.through for root in roots):
            return "these gradients pass through an AllReduce of the program's own; use nn.DistributedGradReducer"
        for script, call in reducers:
            for home, built in self._built(script, call):
                mean = argument(built, 1, "mean")
                if mean is None or self.program.flow.constant(home, mean) is not False:
                    continue
                if not self._divided(application, argument(built, 2, "degree")):
                    return (
                        f"the reducer of line {home.line(built)} adds gradients up (mean=False), which makes steps as many "
                        "times too large as there are ranks; leave mean=False out"
                    )
        flag = next((found for reducer in reducers if (found := self._own_condition(*reducer))), "")
        if flag and not self.startup.inits:
            return (
                f"these gradients are averaged only under '{flag}', which nothing here ties to the ranks; "
                "reduce them whenever RANK_SIZE is above 1"
            )
        return ""

    def _divided(self, application: Application, degree: cst.BaseExpression | None) -> bool:
        """Whether the number of ranks, as a reducer that adds up is given it, is computed into the gradients.

        Many cells divide by it together with the loss scale: ``grad_scale(scaling_sens * self.degree, grads)``.
        """
        given = dotted(degree) if degree is not None else None
        return any(self._counts(script, node, given, set()) for script, node in application.beside)

    def _counts(self, script: Script, node: cst.CSTNode, given: str | None, seen: set[cst.CSTNode]) -> bool:
        """Whether a value is made of the number of ranks, or of what a reducer is given for it."""
        if node in seen or len(seen) > _MAX_PARTS:
            return False
        seen.add(node)
        for part in values(node):
            if not isinstance(part, (cst.Name, cst.Attribute)):
                continue
            if (given is not None and dotted(part) == given) or self.program.counts_ranks(script, part):
                return True
            for origin in self.program.flow.origins(script, part):
                if isinstance(origin.node, cst.BaseExpression) and origin.kind in ("unknown", "call"):
                    if self._counts(origin.script, origin.node, given, seen):
                        return True
        return False

    def _built(self, script: Script, call: cst.Call) -> Iterator[tuple[Script, cst.Call]]:
        """Yield where the reducer that a call runs is built; a train cell's inherited one is built nowhere here."""
        for origin in self.program.flow.called(script, call):
            if origin.qualified == names.GRAD_REDUCER and isinstance(origin.node, cst.Call):
                yield origin.script, origin.node

    def _is_off(self, reducer: _Reducer) -> bool:
        """Whether a reducer is surely not called on many ranks, or never built."""
        many = self.program.many
        if many.reached(*reducer) is False:
            return True
        built = list(self._built(*reducer))
        inherited = any(
            origin.qualified == names.GRAD_REDUCER and not isinstance(origin.node, cst.Call)
            for origin in self.program.flow.called(*reducer)
        )
        return bool(built) and not inherited and all(many.reached(*place) is False for place in built)

    def _inits_off(self) -> bool:
        """Whether the program's own ``init()`` stands under a flag that is off as well: one to be switched by hand."""
        return any(self.program.many.reached(event.script, event.node) is False for event in self.startup.inits)

    def _own_condition(self, script: Script, call: cst.Call) -> str:
        """Return a condition of the program's own under which alone a reducer is built or used, or nothing.

        Conditions on the parallel mode, the rank or the group size hold on many ranks.
        """
        for home, node in ((script, call), *self._built(script, call)):
            test = self.program.many.unknown(home, node)
            if test is not None:
                text = home.tree.text(test)
                if not _PARALLEL.search(text) and not self.program.mentions_rank(home, test):
                    return text
        return ""
