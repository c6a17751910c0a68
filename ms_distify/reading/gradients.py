"""Where gradients are taken, what they pass through, and which optimizer applies them.

A *take* is a call whose value holds gradients of weights. From each application of an optimizer the walk goes back to
the takes that feed it, through whatever computes on the gradients in between; a reducer passed on the way is remembered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import libcst as cst

from ..mindspore import names
from .bindings import dotted
from .flow import Flow
from .operands import operands
from .origin import Edge, Origin, Selectors
from .project import Project
from .script import Script
from .takes import PAIR, PLAIN, Take, Takes
from .tree import values, walk

_MAX_DEPTH = 40


@dataclass(frozen=True)
class Root:
    """A take that an optimizer's gradient comes from.

    Attributes:
        take: the take.
        reducers: the reductions passed on the way, as (file, call).
        before: what the gradients passed between the take and a reducer: names of calls, each with how many of
            ``reducers`` come behind it.
        through: the library calls passed on the whole way, by canonical name.
        selectors: what is taken out of what the take gives.
    """

    take: Take
    reducers: tuple[tuple[Script, cst.Call], ...]
    before: tuple[tuple[str, int], ...] = ()
    through: tuple[str, ...] = ()
    selectors: Selectors = ()


@dataclass(eq=False)
class Application:
    """A call that applies gradients: ``optimizer(grads)``, ``optimizer.step(grads)``.

    Attributes:
        script: its file.
        call: the call.
        optimizers: the calls that built the optimizer.
        roots: the takes that feed it.
        lost: where the way back ended without a take.
        beside: what is computed into the gradients between a take and here, with its file: factors, limits, sums.
        tests: the conditions under which gradients are taken or changed, with their file.
    """

    script: Script
    call: cst.Call
    optimizers: list[Origin]
    roots: list[Root] = field(default_factory=list)
    lost: list[Origin] = field(default_factory=list)
    beside: list[tuple[Script, cst.BaseExpression]] = field(default_factory=list)
    tests: list[tuple[Script, cst.BaseExpression]] = field(default_factory=list)


class Gradients:
    """The takes and applications of a program."""

    def __init__(self, project: Project, flow: Flow) -> None:
        self.project, self.flow = project, flow
        self.takes = {take.call: take for take in Takes(project, flow).all()}
        self.applications = list(self._applications())

    @property
    def by_functions(self) -> bool:
        """Whether gradients are taken outside the ``construct`` of a Cell, by functions that MindSpore compiles alone."""
        return not all(self._in_construct(take) for take in self.takes.values())

    def _in_construct(self, take: Take) -> bool:
        function = take.script.bindings.scope_of(take.call).function()
        return function is not None and getattr(getattr(function.node, "name", None), "value", "") == "construct"

    # -- applications ------------------------------------------------------------------------------------------------

    def _applications(self) -> Iterator[Application]:
        for script in self.project.scripts():
            for call in script.bindings.calls:
                optimizers = self._optimizers(script, call)
                if optimizers and call.args:
                    application = Application(script, call, optimizers)
                    self._back(application, script, call.args[0].value, _Way(), set())
                    yield application

    def _optimizers(self, script: Script, call: cst.Call) -> list[Origin]:
        found = []
        for origin in self.flow.called(script, call):
            name = origin.qualified.removesuffix("().step").removesuffix("().construct")
            if origin.kind in ("call", "external") and names.is_optimizer(name):
                if origin.kind == "call" or name != origin.qualified:
                    found.append(origin)
            elif origin.kind == "instance" and isinstance(origin.node, cst.ClassDef):
                if any(map(names.is_optimizer, self.flow.library_bases(origin.script, origin.node))):
                    found.append(origin)
        return found

    def _mapped(self, script: Script, call: cst.Call) -> Iterator[str]:
        """Yield what functions that a call is given call: ``hyper_map(partial(clip_one, 1.0), grads)``."""
        for arg in call.args[:1]:
            for part in values(arg.value):
                if not isinstance(part, cst.Name):
                    continue
                for origin in self.flow.origins(script, part):
                    if isinstance(origin.node, (cst.FunctionDef, cst.Lambda)):
                        yield from _called_in(origin.script, origin.node)
                    elif origin.qualified == names.MULTITYPE:
                        yield from self._registered(origin.script, origin.node)

    def _registered(self, script: Script, graph: cst.CSTNode) -> Iterator[str]:
        """Yield what the functions registered in a ``MultitypeFuncGraph`` call."""
        for scope in script.bindings.scopes.values():
            function = scope.node
            for decorator in function.decorators if isinstance(function, cst.FunctionDef) else ():
                made = decorator.decorator
                if (
                    isinstance(made, cst.Call)
                    and isinstance(made.func, cst.Attribute)
                    and made.func.attr.value == "register"
                ):
                    if any(origin.node is graph for origin in self.flow.origins(script, made.func.value)):
                        yield from _called_in(script, function)

    # -- the way back ------------------------------------------------------------------------------------------------

    def _back(
        self,
        application: Application,
        script: Script,
        node: cst.CSTNode,
        way: _Way,
        seen: set[tuple[cst.CSTNode, int]],
    ) -> bool:
        """Go back from an expression to the takes in it; return whether any was found."""
        if (node, len(way.reducers)) in seen or way.depth > _MAX_DEPTH:
            return False
        seen.add((node, len(way.reducers)))
        if not isinstance(node, cst.BaseExpression):
            return False
        found = False
        ended: list[Origin] = []
        for origin in self.flow.origins(script, node, way.calls):
            take = self.takes.get(origin.node) if isinstance(origin.node, cst.Call) else None
            if take is not None and take.shape == PAIR and origin.selectors[:1] == (("item", 0),):
                application.beside.append((script, node))  # the value, not the gradients that come with it
                continue
            if take is not None:
                application.tests.extend(_conditions(origin))
                application.roots.append(Root(take, way.reducers, way.before, way.through, origin.selectors))
                found = True
                continue
            if origin.kind in ("function", "class", "external", "module", "instance"):
                continue
            onward = self._onward(origin, way)
            inside = False
            for group in self._sources(origin):
                leads = [(home, part, self._back(application, home, part, onward, seen)) for home, part in group]
                if any(led for _, _, led in leads):
                    inside = True
                    application.beside.extend(
                        (home, part) for home, part, led in leads if not led and isinstance(part, cst.BaseExpression)
                    )
            if inside:
                application.tests.extend(_conditions(origin))
            elif origin.kind != "literal":
                ended.append(origin)
            found = found or inside
        if not found and way.depth == 0:
            application.lost.extend(ended)
        return found

    def _onward(self, origin: Origin, way: _Way) -> _Way:
        """Return the way as it goes on behind an origin: through a reducer, or through something in front of one."""
        reducers, before, call = way.reducers, way.before, origin.node
        if isinstance(call, cst.Call):
            if reducers:
                passed = (origin.script.tree.text(call.func), *self._mapped(origin.script, call))
                before = (*before, *((name, len(reducers)) for name in passed))
            # A reducer, at least under the condition under which it was built.
            if any(one.qualified == names.GRAD_REDUCER for one in self.flow.called(origin.script, call)):
                reducers = (*reducers, (origin.script, call))
        return _Way(origin.calls, reducers, before, (*way.through, origin.qualified), way.depth + 1)

    def _sources(self, origin: Origin) -> Iterator[list[tuple[Script, cst.CSTNode]]]:
        """Yield what a value is computed from, in groups of what comes together."""
        yield [(origin.script, part) for part in operands(origin.node, origin.selectors)]
        if isinstance(origin.node, cst.Call) and _is_state(origin):
            for script, call in self._updates:
                state = [arg for arg in call.args if self._holds(script, arg.value, origin.node)]
                if state:
                    yield [(script, arg.value) for arg in call.args if arg not in state]
        elif isinstance(origin.node, cst.List) or origin.qualified == "list":
            for script, container, _, value in self.flow.puts():
                if script is origin.script and self._comes_from(script, container, origin.node):
                    yield [(script, value)]

    def _holds(self, script: Script, node: cst.BaseExpression, source: cst.CSTNode) -> bool:
        """Whether an argument is a parameter itself, not something computed from it."""
        plain = isinstance(node, (cst.Name, cst.Attribute, cst.Subscript))
        return plain and self._comes_from(script, node, source)

    def _comes_from(self, script: Script, node: cst.BaseExpression, source: cst.CSTNode) -> bool:
        return any(origin.node is source for origin in self.flow.origins(script, node))

    @cached_property
    def _updates(self) -> list[tuple[Script, cst.Call]]:
        """The calls that set a parameter, themselves or through a function that they map over several."""
        found = []
        for script in self.project.scripts():
            for call in script.bindings.calls:
                called = [script.tree.text(call.func), *(o.qualified for o in self.flow.called(script, call))]
                mapped = [dotted(part) or "" for arg in call.args[:1] for part in walk(arg.value)]
                if any(map(_sets, (*called, *mapped))) or any(map(_sets, self._mapped(script, call))):
                    found.append((script, call))
        return found


@dataclass(frozen=True)
class _Way:
    """A state of the walk from an application: the calls gone into, and what was passed so far."""

    calls: tuple[Edge, ...] = ()
    reducers: tuple[tuple[Script, cst.Call], ...] = ()
    before: tuple[tuple[str, int], ...] = ()
    through: tuple[str, ...] = ()
    depth: int = 0


def _conditions(origin: Origin) -> Iterator[tuple[Script, cst.BaseExpression]]:
    """Yield the conditions around the place where a walk ended, up to its function."""
    below = origin.node
    for parent in origin.script.tree.ancestors(origin.node):
        if isinstance(parent, (cst.FunctionDef, cst.Lambda)):
            return
        if isinstance(parent, (cst.If, cst.IfExp)) and below is not parent.test:
            yield origin.script, parent.test
        below = parent


def _called_in(script: Script, function: cst.CSTNode) -> Iterator[str]:
    yield from (script.tree.text(part.func) for part in walk(function) if isinstance(part, cst.Call))


def _is_state(origin: Origin) -> bool:
    """Whether a value is kept in parameters, so that what was assigned to them comes out: sums of gradients."""
    func = origin.node.func if isinstance(origin.node, cst.Call) else None
    cloned = isinstance(func, cst.Attribute) and func.attr.value == "clone"
    return cloned or origin.qualified in (names.PARAMETER, names.PARAMETER + "Tuple")


def _sets(name: str) -> bool:
    return name.removesuffix("()").rpartition(".")[2] in names.UPDATES


__all__ = ["PAIR", "PLAIN", "Application", "Gradients", "Root", "Take"]
