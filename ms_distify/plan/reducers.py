"""Where a gradient reducer is built and where gradients pass through it.

Gradients are reduced where they come into being, so before anything looks at their values, and once for each
contribution whatever happens to them afterwards (accumulation, clipping, a finite check). The reducer is built once: in
``__init__`` of a cell, else where the optimizer is built, else where the gradient function is made.
"""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from ..mindspore import names
from ..model import Edit, Insert, Need
from ..reading.gradients import PAIR, Application, Take
from ..reading.program import Program
from ..reading.script import Script
from .reducer_pass import CannotReduce, pass_through
from .reducer_places import Builder, Places, owner_of, starts_base
from .startup import Startup

Condition = Callable[[Script, cst.CSTNode], "tuple[str, tuple[Need, ...]]"]


class Reducers:
    """Plans reducers; one for each set of weights and place where gradient functions are made."""

    def __init__(self, program: Program, startup: Startup, condition: Condition) -> None:
        self.program, self.startup, self.condition = program, startup, condition
        self._places = Places(program, startup)

    def reduce(self, take: Take, application: Application) -> tuple[str, list[Edit]]:
        """Return the reducer's name and the edits that build it and pass a take's gradients through it.

        Raises:
            CannotReduce: the weights, the place or the shape of the take do not allow it.
        """
        if take.weights is None:
            raise CannotReduce("these are gradients of inputs, not of weights")
        if take.trouble:
            raise CannotReduce(take.trouble)
        if not self._is_list(*take.weights):
            raise CannotReduce(
                "whether its weights are a list that can be read twice cannot be told; pass optimizer.parameters"
            )
        if take.mixed and not self._only_of_weights(take):
            raise CannotReduce("gradients of inputs and of weights come together; pass grad_position=None")
        if self._inherits(take):
            name = "self.grad_reducer"
            return name, pass_through(take, name, self.startup.speller(take.script))
        builder = self._places.find(take, application)
        if builder is None:
            raise CannotReduce("there is no place for a reducer that is reached once and seen from here")
        passed = pass_through(take, builder.name, self.startup.speller(take.script))
        return builder.name, [self._build(builder), *passed]

    # -- building ----------------------------------------------------------------------------------------------------

    def _build(self, builder: Builder) -> Edit:
        speller = self.startup.speller(builder.script)
        reducer, needs = speller.spell(names.GRAD_REDUCER, builder.statement)
        identity, more = speller.spell(names.IDENTITY, builder.statement)
        condition, asked = self.condition(builder.script, builder.statement)
        line = f"{builder.name} = {reducer}({builder.weights}) if {condition} else {identity}()"
        return Insert(
            builder.script, builder.statement, "after", (line,), 60, needs=tuple(dict.fromkeys(needs + more + asked))
        )

    def _inherits(self, take: Take) -> bool:
        """Whether the take stands in a subclass of a MindSpore train cell, which has a reducer that was skipped."""
        owner = owner_of(take.script, take.call)
        if owner is None:
            return False
        flow = self.program.flow
        if not any(names.is_train_cell(base) for base in flow.library_bases(take.script, owner)):
            return False
        if self._sets_own(take.script, owner):
            return False
        own = take.script.bindings.scopes[owner].bindings.get("__init__", [])
        return all(starts_base(binding.node, owner.name.value) for binding in own)

    def _sets_own(self, script: Script, owner: cst.ClassDef) -> bool:
        """Whether the program puts something in the place of the reducer that a class inherits: an identity, None."""
        family = {cls for _, cls in self.program.flow.ancestry(script, owner)}
        for home, target, _, _ in self.program.project.attribute_assignments("grad_reducer"):
            origins = self.program.flow.origins(home, target.value)
            if not origins or any(origin.node in family or origin.kind == "unknown" for origin in origins):
                return True
        return False

    def _only_of_weights(self, take: Take) -> bool:
        """Whether of gradients of inputs and of weights, which come as a pair, only the second go to optimizers."""
        chosen = ((("item", 1),) if take.shape == PAIR else ()) + (("item", 1),)
        return all(
            root.selectors[: len(chosen)] == chosen
            for application in self.program.gradients.applications
            for root in application.roots
            if root.take is take
        )

    def _is_list(self, script: Script, weights: cst.BaseExpression) -> bool:
        """Whether weights are surely a list or tuple, not one Parameter nor an iterator that is used up."""
        lists = names.PARAMETER_LISTS | names.PARAMETER_ATTRIBUTES
        if isinstance(weights, cst.Attribute) and weights.attr.value in names.PARAMETER_ATTRIBUTES:
            return True
        for origin in self.program.flow.origins(script, weights):
            node = origin.node
            last = origin.qualified.rpartition(".")[2]
            if isinstance(node, (cst.Tuple, cst.List, cst.ListComp)) or last in lists:
                if isinstance(node, cst.Call) and any(self._used_up(origin.script, arg.value) for arg in node.args):
                    return False
                continue
            called = node.func if isinstance(node, cst.Call) else None
            if isinstance(called, cst.Attribute) and called.attr.value in names.PARAMETER_LISTS:
                continue
            if origin.kind == "unknown" and isinstance(node, cst.Attribute):
                if node.attr.value in lists:
                    continue
            if isinstance(node, cst.BinaryOperation):
                continue  # lists added up
            return False
        return True

    def _used_up(self, script: Script, node: cst.BaseExpression) -> bool:
        """Whether a value is an iterator: ``filter(...)``, ``map(...)``, a generator expression."""
        return isinstance(node, cst.Name) and any(
            origin.qualified in ("filter", "map", "iter", "zip") or isinstance(origin.node, cst.GeneratorExp)
            for origin in self.program.flow.origins(script, node)
        )


__all__ = ["CannotReduce", "Reducers"]
