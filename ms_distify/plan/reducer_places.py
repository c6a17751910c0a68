"""Where a reducer is built: reached once, before the gradients are taken, and seen from there.

In the order of preference: behind the optimizer; where the gradient function is made; at the end of ``__init__`` of a
cell; where the weights get their name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from ..mindspore import names
from ..reading.bindings import Scope, dotted, literal
from ..reading.gradients import Application, Take
from ..reading.program import Program
from ..reading.script import Script
from ..reading.tree import values, walk
from .startup import Startup


@dataclass(frozen=True)
class Builder:
    """Where a reducer is built: after a statement, under a name."""

    script: Script
    statement: cst.CSTNode
    name: str
    weights: str


class Places:
    """Finds places; one for each set of weights and place where gradient functions are made."""

    def __init__(self, program: Program, startup: Startup) -> None:
        self.program, self.startup = program, startup
        self._built: dict[tuple[cst.CSTNode, str], Builder] = {}

    def find(self, take: Take, application: Application) -> Builder | None:
        """Return the place for the reducer of a take, or None."""
        found = self._at_optimizer(take, application)
        if found is not None:
            return found
        places = [self._at_maker, self._in_cell, self._at_weights]
        if self._each_step(take):
            places = [self._in_cell, self._at_weights, lambda take: self._at_passed(take, application), self._at_maker]
        return next((found for place in places if (found := place(take)) is not None), None)

    def _in_cell(self, take: Take) -> Builder | None:
        """Build at the end of ``__init__`` where the weights hang on ``self`` from there."""
        owner = _self_of(take.script, take.call)
        if owner is None:
            return None
        found = self.program.flow.method(take.script, owner, "__init__")
        if found is None or found[0] is not take.script or take.weights is None or take.weights[0] is not found[0]:
            return None
        script, init = found
        source = self._self_only(script, take.weights[1])
        if source is None:
            return None
        if any(isinstance(part, cst.Return) for part in walk(init.body)) or self.program.roles.steps(script, init.body):
            return None
        if not self._set_in(script, owner, init, source):
            return None
        statement, text = init.body.body[-1], script.tree.text(source)
        return Builder(script, statement, f"self.{self._attribute(script, owner, statement, text)}", text)

    def _set_in(self, script: Script, owner: cst.ClassDef, init: cst.FunctionDef, weights: cst.BaseExpression) -> bool:
        """Whether every attribute of ``self`` in an expression is set by a statement of ``__init__`` itself.

        The ``__init__`` of a MindSpore train cell sets some, where it is run.
        """
        tree, wanted, top = script.tree, set(), set()
        for part in walk(weights):
            if isinstance(part, cst.Attribute) and isinstance(part.value, cst.Name) and part.value.value == "self":
                wanted.add(part.attr.value)
        for target, value, _ in script.bindings.attribute_assignments:
            line = tree.statement(target)
            if tree.parent.get(line) is init.body and literal(value) is not None:
                top.add(target.attr.value)
        if any(map(names.is_train_cell, self.program.flow.library_bases(script, owner))):
            if any(starts_base(line, owner.name.value) for line in init.body.body):
                top |= {"network", "optimizer", "weights"}
        return wanted <= top

    def _each_step(self, take: Take) -> bool:
        """Whether the gradient function is made anew for each step, so that a reducer beside it would be too."""
        script, maker = take.maker
        tree = script.tree
        here = script.bindings.scope_of(maker).function()
        if any(isinstance(parent, (cst.For, cst.While)) for parent in _within(tree.ancestors(maker), here)):
            return True
        if here is None or script is not take.script or script.bindings.scope_of(take.call).function() is not here:
            return False
        return any(
            isinstance(parent, (cst.For, cst.While))
            for home, call in self.program.flow.call_sites(here.node)
            for parent in _within(home.tree.ancestors(call), home.bindings.scope_of(call).function())
        ) and not any(isinstance(parent, (cst.For, cst.While)) for parent in _within(tree.ancestors(take.call), here))

    def _attribute(self, script: Script, owner: cst.ClassDef, statement: cst.CSTNode, weights: str) -> str:
        taken = {target.attr.value for target, _, _ in script.bindings.attribute_assignments}
        taken |= set(script.bindings.scopes[owner].bindings)
        taken |= {builder.name for builder in self._built.values() if builder.script is script}
        return self._name((owner, weights), statement, lambda: _free("grad_reducer", taken), script, weights)

    def _at_optimizer(self, take: Take, application: Application) -> Builder | None:
        """Build behind the optimizer, where that is surely passed before the gradients are taken."""
        if len(application.optimizers) != 1 or len(self.program.flow.called(application.script, application.call)) != 1:
            return None
        built = application.optimizers[0]
        call = built.node
        if built.script is not take.script or not isinstance(call, cst.Call):
            return None
        found = self._beside(take, call)
        return found if found is not None and self._passed_first(found, take) else None

    def _at_passed(self, take: Take, application: Application) -> Builder | None:
        """Build behind the optimizer that is passed to the function of a step, under the name it has there."""
        built = application.optimizers[0]
        if len(application.optimizers) != 1 or built.script is not take.script:
            return None
        found = self._beside(take, built.node, passed=True)
        return found if found is not None and self._passed_first(found, take) else None

    def _passed_first(self, builder: Builder, take: Take) -> bool:
        """Whether a statement lies on every way to a take, and before it."""
        tree, line = take.script.tree, self.program.timeline
        block = tree.parent.get(builder.statement)
        scope = take.script.bindings.scope_of(builder.statement)
        outermost = getattr(scope.node, "body", None) if scope.kind != "module" else tree.module
        around = block is outermost or any(parent is block for parent in tree.ancestors(take.call))
        begun, taken = line.begun.get(builder.statement), line.visited.get(take.call)
        return around and (begun is None or taken is None or begun < taken)

    def _at_maker(self, take: Take) -> Builder | None:
        """Build behind the statement that makes the gradient function: whatever calls that has passed there."""
        script, maker = take.maker
        if script is not take.script or take.weights is None:
            return None
        statement = script.tree.parent.get(maker)
        line = script.tree.parent.get(statement) if statement is not None else None
        if isinstance(statement, cst.Assign) and isinstance(line, cst.SimpleStatementLine) and _on_self(take.call.func):
            owner = owner_of(script, take.call)
            target = statement.targets[0].target
            on_self = isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name)
            if owner is None or not on_self or not isinstance(script.tree.parent.get(line), cst.IndentedBlock):
                return None
            if owner_of(script, maker) is not owner or self._compiled(script.bindings.scope_of(line)):
                return None
            text = script.tree.text(take.weights[1])
            return Builder(script, line, f"self.{self._attribute(script, owner, line, text)}", text)
        return self._beside(take, maker)

    def _at_weights(self, take: Take) -> Builder | None:
        """Build behind the statement that gives the weights their name, where it is surely passed first."""
        if take.weights is None or not isinstance(take.weights[1], cst.Name):
            return None
        found = take.weights[0].bindings.lookup(take.weights[1])
        if len(found) != 1 or found[0].value is None or found[0].path:
            return None
        builder = self._beside(take, found[0].value)
        return builder if builder is not None and self._passed_first(builder, take) else None

    def _beside(self, take: Take, call: cst.CSTNode, *, passed: bool = False) -> Builder | None:
        """Build after the assignment that ``call`` stands in, if its scope is seen from the take.

        With ``passed``, the weights may be those of a parameter for which what is built there is passed.
        """
        script = take.script
        assert take.weights is not None
        home, weights = take.weights
        statement = script.tree.parent.get(call)
        line = script.tree.parent.get(statement) if statement is not None else None
        if home is not script or not isinstance(statement, cst.Assign) or not isinstance(line, cst.SimpleStatementLine):
            return None
        if not isinstance(script.tree.parent.get(line), (cst.Module, cst.IndentedBlock)):
            return None
        scope = script.bindings.scope_of(line)
        if scope.kind == "class" or not _sees(script.bindings.scope_of(take.call), scope) or self._compiled(scope):
            return None
        text = script.tree.text(weights)
        if not self._known_there(script, weights, scope, line):
            text = self._renamed(script, weights, call, scope, statement) if passed else ""
        if not text:
            return None
        speller = self.startup.speller(script)
        name = self._name((line, text), line, lambda: speller.fresh("grad_reducer"), script, text)
        return Builder(script, line, name, text)

    def _renamed(
        self, script: Script, weights: cst.BaseExpression, call: cst.CSTNode, scope: Scope, statement: cst.Assign
    ) -> str:
        """Return the weights of a parameter, ``opt.parameters``, as they read where the object is built; or nothing.

        The object must be built once, so that it is the one that every caller passes.
        """
        target = statement.targets[0].target
        if not isinstance(weights, cst.Attribute) or not isinstance(weights.value, cst.Name):
            return ""
        if len(statement.targets) != 1 or not isinstance(target, cst.Name):
            return ""
        parameter = [binding.kind for binding in script.bindings.lookup(weights.value)] == ["parameter"]
        origins = self.program.flow.origins(script, weights.value)
        once = scope.kind == "module" and len(scope.bindings.get(target.value, ())) == 1
        once = once and not any(isinstance(up, (cst.For, cst.While)) for up in script.tree.ancestors(statement))
        if not parameter or not once or len(origins) != 1 or origins[0].node is not call or origins[0].selectors:
            return ""
        return f"{target.value}.{weights.attr.value}"

    def _name(
        self,
        key: tuple[cst.CSTNode, str],
        statement: cst.CSTNode,
        make: Callable[[], str],
        script: Script,
        weights: str,
    ) -> str:
        if key not in self._built:
            self._built[key] = Builder(script, statement, make(), weights)
        return self._built[key].name

    def _known_there(self, script: Script, weights: cst.BaseExpression, scope: Scope, line: cst.CSTNode) -> bool:
        """Whether every name in the weights' expression has, after a line, the value it has where it stands."""
        end = script.tree.span(line)[1]
        for part in values(weights):
            if not isinstance(part, cst.Name):
                continue
            for binding in script.bindings.lookup(part):
                if binding.scope is scope and binding.at < end:
                    continue
                if binding.scope is not scope and _sees(scope, binding.scope):
                    continue
                return False
        return True

    def _compiled(self, scope: Scope) -> bool:
        """Whether a scope is that of a function compiled by MindSpore, in which no Cell can be built."""
        function = scope.function()
        node = function.node if function is not None else None
        if not isinstance(node, cst.FunctionDef):
            return False
        words = {
            (dotted(d.decorator) or dotted(getattr(d.decorator, "func", None)) or "").split(".")[-1]
            for d in node.decorators
        }
        return bool(words & {"jit", "ms_function"}) or node.name.value == "construct"

    def _self_only(self, script: Script, weights: cst.BaseExpression) -> cst.BaseExpression | None:
        """Return the weights' expression if it is made of ``self``, through one local name; else None."""
        if isinstance(weights, cst.Name):
            found = script.bindings.lookup(weights)
            if len(found) != 1 or found[0].value is None or found[0].path:
                return None
            weights = found[0].value
        roots = [part for part in values(weights) if isinstance(part, cst.Name)]
        local = [part for part in roots if part.value != "self" and self._is_local(script, part)]
        return None if local or not any(part.value == "self" for part in roots) else weights

    def _is_local(self, script: Script, name: cst.Name) -> bool:
        return any(binding.scope.kind != "module" for binding in script.bindings.lookup(name))


def _self_of(script: Script, node: cst.CSTNode) -> cst.ClassDef | None:
    """Return the class whose instance is ``self`` at a node, where its ``__init__`` has run by then."""
    scope: Scope | None = script.bindings.scope_of(node)
    inner = True
    while scope is not None and "self" not in scope.bindings:
        inner, scope = inner and scope.kind != "function", scope.parent
    if scope is None or scope.parent is None or not isinstance(scope.node, cst.FunctionDef):
        return None
    owner, params = scope.parent.node, scope.node.params
    first = next(iter((*params.posonly_params, *params.params)), None)
    if first is None or first.name.value != "self" or len(scope.bindings["self"]) != 1:
        return None
    if inner and scope.node.name.value == "__init__":
        return None  # in front of its own end
    return owner if isinstance(owner, cst.ClassDef) else None


def owner_of(script: Script, node: cst.CSTNode) -> cst.ClassDef | None:
    """Return the class in whose method a node stands."""
    scope: Scope | None = script.bindings.scope_of(node)
    while scope is not None:
        if scope.kind == "class" and isinstance(scope.node, cst.ClassDef):
            return scope.node
        scope = scope.parent
    return None


def _within(parents: Iterable[cst.CSTNode], function: Scope | None) -> Iterator[cst.CSTNode]:
    """Yield parents up to the function they stand in."""
    for parent in parents:
        if function is not None and parent is function.node:
            return
        yield parent


def starts_base(init: cst.CSTNode, name: str) -> bool:
    """Whether an ``__init__`` runs the one of the base: ``super()``, not ``super(Base, self)``, which leaves it out."""
    for part in walk(init):
        if isinstance(part, cst.Call) and dotted(part.func) == "super":
            if not part.args or dotted(part.args[0].value) == name:
                return True
    return False


def _on_self(func: cst.BaseExpression) -> bool:
    """Whether a called expression hangs on ``self``: ``self.grad(...)``, ``self.grad(self.net, self.weights)(...)``."""
    node: cst.BaseExpression = func
    while isinstance(node, (cst.Call, cst.Attribute)):
        node = node.func if isinstance(node, cst.Call) else node.value
    return isinstance(node, cst.Name) and node.value == "self"


def _sees(inner: Scope, outer: Scope) -> bool:
    """Whether names of ``outer`` are read from ``inner``."""
    scope: Scope | None = inner
    while scope is not None:
        if scope is outer:
            return scope is inner or scope.kind != "class"
        scope = scope.parent
    return False


def _free(name: str, taken: set[str]) -> str:
    """Return a name that is not taken, numbered if need be."""
    number, found = 2, name
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found
