"""Where gradients are taken, what they pass through, and which optimizer applies them.

A *take* is a call whose value holds gradients of weights. From each application of an optimizer the walk goes back to
the takes that feed it, through whatever computes on the gradients in between; a reducer passed on the way is remembered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import libcst as cst

from ..mindspore import names
from .bindings import literal
from .flow import Flow
from .origin import Edge, Origin
from .project import Project
from .roles import argument
from .script import Script
from .tree import children, walk

PAIR, PLAIN = "pair", "plain"  # (value, gradients), or the gradients alone
_MAX_DEPTH = 40


@dataclass(frozen=True)
class Take:
    """A call that takes gradients.

    Attributes:
        script: its file.
        call: the call whose value holds the gradients.
        maker: the call that made the gradient function (``value_and_grad(...)``), with its file.
        weights: the expression of the weights, with its file; None if gradients of inputs are taken.
        shape: PAIR where the value comes with the gradients, PLAIN where they stand alone.
        mixed: the gradients come together with those of inputs.
        trouble: why the value is not what its shape says, or nothing.
    """

    script: Script
    call: cst.Call
    maker: tuple[Script, cst.CSTNode]
    weights: tuple[Script, cst.BaseExpression] | None
    shape: str
    mixed: bool = False
    trouble: str = ""


@dataclass(frozen=True)
class Root:
    """A take that an optimizer's gradient comes from.

    Attributes:
        take: the take.
        reducers: the reductions passed on the way, as (file, call).
        before: what the gradients passed between the take and the last reducer: names of calls.
        through: the library calls passed on the whole way, by canonical name.
    """

    take: Take
    reducers: tuple[tuple[Script, cst.Call], ...]
    before: tuple[str, ...] = ()
    through: tuple[str, ...] = ()


@dataclass(eq=False)
class Application:
    """A call that applies gradients: ``optimizer(grads)``, ``optimizer.step(grads)``.

    Attributes:
        script: its file.
        call: the call.
        optimizers: the calls that built the optimizer.
        roots: the takes that feed it.
        lost: where the way back ended without a take.
    """

    script: Script
    call: cst.Call
    optimizers: list[Origin]
    roots: list[Root] = field(default_factory=list)
    lost: list[Origin] = field(default_factory=list)


class Gradients:
    """The takes and applications of a program."""

    def __init__(self, project: Project, flow: Flow) -> None:
        self.project, self.flow = project, flow
        self.takes = {take.call: take for take in self._takes()}
        self.applications = list(self._applications())

    @property
    def by_functions(self) -> bool:
        """Whether gradients are taken outside the ``construct`` of a Cell, by functions that MindSpore compiles alone."""
        return not all(self._in_construct(take) for take in self.takes.values())

    def _in_construct(self, take: Take) -> bool:
        function = take.script.bindings.scope_of(take.call).function()
        return function is not None and getattr(getattr(function.node, "name", None), "value", "") == "construct"

    # -- takes -----------------------------------------------------------------------------------------------------

    def _takes(self) -> Iterator[Take]:
        for script in self.project.scripts():
            for call in script.bindings.calls:
                called = self.flow.called(script, call)
                for origin in called:
                    if origin.kind == "call" and isinstance(origin.node, cst.Call):
                        take = self._take(script, call, origin, origin.node)
                        if take is not None:
                            if len({one.node for one in called}) > 1:
                                take = replace(take, trouble="one of several gradient functions is called here")
                            yield take
                            break

    def _take(self, script: Script, call: cst.Call, origin: Origin, maker: cst.Call) -> Take | None:
        name, home = origin.qualified, origin.script
        if name in names.VALUE_AND_GRAD:
            weights = argument(maker, 2, "weights")
            position = argument(maker, 1, "grad_position")
            mixed = position is None or literal(position) is not None
            return self._made(script, call, home, maker, weights, PAIR, mixed)
        if name in names.GRAD:
            weights = argument(maker, 2, "weights")
            position = argument(maker, 1, "grad_position")
            mixed = position is None or literal(position) is not None
            return self._made(script, call, home, maker, weights, PLAIN, mixed)
        if name == names.FORWARD_VALUE_AND_GRAD:
            weights = argument(maker, 1, "weights")
            by_list = argument(maker, 3, "get_by_list")
            mixed = literal(argument(maker, 2, "get_all")) is True
            chosen = weights if by_list is not None and literal(by_list) is not False else None
            return self._made(script, call, home, maker, chosen, PAIR, mixed)
        if name == names.GRAD_OPERATION + "()":
            weights = argument(maker, 1, "weights")
            operation = self._operation(home, maker)
            mixed = operation is not None and literal(argument(operation, 0, "get_all")) is True
            return self._made(script, call, home, maker, weights, PLAIN, mixed)
        return None

    def _operation(self, script: Script, call: cst.Call) -> cst.Call | None:
        """Return the ``GradOperation(...)`` call behind ``operation(network, weights)``."""
        for origin in self.flow.called(script, call):
            if origin.qualified == names.GRAD_OPERATION and isinstance(origin.node, cst.Call):
                return origin.node
        return None

    def _made(
        self,
        script: Script,
        call: cst.Call,
        home: Script,
        maker: cst.Call,
        weights: cst.BaseExpression | None,
        shape: str,
        mixed: bool,
    ) -> Take:
        known = None if weights is None or literal(weights) is None else (home, weights)
        trouble = ""
        options = (("has_aux", 3), ("return_ids", 4)) if self._has_options(home, maker) else ()
        for option, position in options:
            value = argument(maker, position, option)
            beside = value is not None and literal(value) is not False
            if beside and (option == "return_ids" or shape == PLAIN):
                trouble = f"{option} puts something else beside the gradients"
        return Take(script, call, (home, maker), known, shape, mixed and known is not None, trouble)

    def _has_options(self, script: Script, maker: cst.Call) -> bool:
        """Whether a maker takes ``has_aux`` and ``return_ids``: ``value_and_grad`` and ``grad`` do."""
        return self.flow.qualified(script, maker) in names.GRAD | names.VALUE_AND_GRAD

    # -- applications ------------------------------------------------------------------------------------------------

    def _applications(self) -> Iterator[Application]:
        for script in self.project.scripts():
            for call in script.bindings.calls:
                optimizers = self._optimizers(script, call)
                if optimizers and call.args:
                    application = Application(script, call, optimizers)
                    self._back(application, script, call.args[0].value, (), (), set(), 0)
                    yield application

    def _mapped(self, script: Script, call: cst.Call) -> Iterator[str]:
        """Yield what functions that a call is given call: ``hyper_map(partial(clip_one, 1.0), grads)``."""
        for arg in call.args[:1]:
            for part in walk(arg.value):
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

    def _optimizers(self, script: Script, call: cst.Call) -> list[Origin]:
        found = []
        for origin in self.flow.called(script, call):
            name = origin.qualified.removesuffix("().step").removesuffix("().construct")
            if origin.kind in ("call", "external") and names.is_optimizer(name):
                if origin.kind == "call" or name != origin.qualified:
                    found.append(origin)
        return found

    def _reduces(self, script: Script, call: cst.Call) -> bool:
        """Whether a call runs a reducer, at least under the condition under which it was built."""
        return any(origin.qualified == names.GRAD_REDUCER for origin in self.flow.called(script, call))

    def _back(
        self,
        application: Application,
        script: Script,
        node: cst.CSTNode,
        calls: tuple[Edge, ...],
        reducers: tuple[tuple[Script, cst.Call], ...],
        seen: set[tuple[cst.CSTNode, int]],
        depth: int,
        before: tuple[str, ...] = (),
        through: tuple[str, ...] = (),
    ) -> bool:
        """Go back from an expression to the takes in it; return whether any was found."""
        if (node, len(reducers)) in seen or depth > _MAX_DEPTH:
            return False
        seen.add((node, len(reducers)))
        if not isinstance(node, cst.BaseExpression):
            return False
        found = False
        ended: list[Origin] = []
        for origin in self.flow.origins(script, node, calls):
            take = self.takes.get(origin.node) if isinstance(origin.node, cst.Call) else None
            if take is not None:
                application.roots.append(Root(take, reducers, before, through))
                found = True
                continue
            if origin.kind in ("function", "class", "external", "module", "instance"):
                continue
            onward, passed = reducers, before
            if reducers and isinstance(origin.node, cst.Call):
                passed = (*before, origin.script.tree.text(origin.node.func), *self._mapped(origin.script, origin.node))
            if isinstance(origin.node, cst.Call) and self._reduces(origin.script, origin.node):
                onward = (*reducers, (origin.script, origin.node))
            inside = False
            for part in parts_of(origin.node):
                inside = (
                    self._back(
                        application,
                        origin.script,
                        part,
                        origin.calls,
                        onward,
                        seen,
                        depth + 1,
                        passed,
                        (*through, origin.qualified),
                    )
                    or inside
                )
            if not inside and origin.kind != "literal":
                ended.append(origin)
            found = found or inside
        if not found and depth == 0:
            application.lost.extend(ended)
        return found


def _called_in(script: Script, function: cst.CSTNode) -> Iterator[str]:
    yield from (script.tree.text(part.func) for part in walk(function) if isinstance(part, cst.Call))


def parts_of(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the expressions that a value is computed from: arguments, operands, elements."""
    if isinstance(node, cst.Call):
        if isinstance(node.func, cst.Attribute):
            yield node.func.value
        for arg in node.args:
            yield arg.value
        return
    for child in children(node):
        if isinstance(child, cst.BaseExpression):
            yield child
        elif not isinstance(child, (cst.BaseStatement, cst.BaseSmallStatement)):
            yield from parts_of(child)
