"""Where a gradient reducer is built and where gradients pass through it.

Gradients are reduced where they come into being, so before anything looks at their values, and once for each
contribution whatever happens to them afterwards (accumulation, clipping, a finite check). The reducer is built once: in
``__init__`` of a cell, else where the optimizer is built, else where the gradient function is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from ..mindspore import names
from ..model import Edit, Insert, Need, Wrap
from ..reading.bindings import Scope, dotted, literal
from ..reading.gradients import PAIR, Application, Take
from ..reading.program import Program
from ..reading.script import Script
from ..reading.tree import walk
from .startup import Startup

Condition = Callable[[Script, cst.CSTNode], "tuple[str, tuple[Need, ...]]"]


class CannotReduce(Exception):
    """No place for a reducer; the message says why."""


@dataclass(frozen=True)
class _Builder:
    """Where a reducer is built: after a statement, under a name."""

    script: Script
    statement: cst.CSTNode
    name: str
    weights: str


class Reducers:
    """Plans reducers; one for each set of weights and place where gradient functions are made."""

    def __init__(self, program: Program, startup: Startup, condition: Condition) -> None:
        self.program, self.startup, self.condition = program, startup, condition
        self._built: dict[tuple[cst.CSTNode, str], _Builder] = {}

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
        if take.mixed:
            raise CannotReduce("gradients of inputs and of weights come together; pass grad_position=None")
        if self._inherits(take):
            name = "self.grad_reducer"
            return name, [self._pass(take, name)]
        builder = self._at_optimizer(take, application)
        if builder is None:
            places = [self._in_cell, self._at_maker] if self._each_step(take) else [self._at_maker, self._in_cell]
            builder = next((found for place in places if (found := place(take)) is not None), None)
        if builder is None:
            raise CannotReduce("there is no place for a reducer that is reached once and seen from here")
        return builder.name, [self._build(builder), self._pass(take, builder.name)]

    # -- building ----------------------------------------------------------------------------------------------------

    def _build(self, builder: _Builder) -> Edit:
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
        owner = self._owner(take.script, take.call)
        if owner is None:
            return False
        flow = self.program.flow
        if not any(names.is_train_cell(base) for base in flow.library_bases(take.script, owner)):
            return False
        own = take.script.bindings.scopes[owner].bindings.get("__init__", [])
        return all(_starts_base(binding.node, owner.name.value) for binding in own)

    def _in_cell(self, take: Take) -> _Builder | None:
        """Build at the end of ``__init__`` where the gradient operation and the weights hang on ``self`` from there."""
        owner = self._owner(take.script, take.call)
        if owner is None or not _on_self(take.call.func):
            return None
        found = self.program.flow.method(take.script, owner, "__init__")
        if found is None or found[0] is not take.script or take.weights is None or take.weights[0] is not found[0]:
            return None
        script, init = found
        source = self._self_only(script, take.weights[1])
        if source is None:
            return None
        if any(isinstance(part, cst.Return) for part in walk(init.body)) or not self._set_in(script, init, source):
            return None
        statement, text = init.body.body[-1], script.tree.text(source)
        return _Builder(script, statement, f"self.{self._attribute(script, owner, statement, text)}", text)

    def _set_in(self, script: Script, init: cst.FunctionDef, weights: cst.BaseExpression) -> bool:
        """Whether every attribute of ``self`` in an expression is set by a statement of ``__init__`` itself."""
        tree, wanted, top = script.tree, set(), set()
        for part in walk(weights):
            if isinstance(part, cst.Attribute) and isinstance(part.value, cst.Name) and part.value.value == "self":
                wanted.add(part.attr.value)
        for target, value, _ in script.bindings.attribute_assignments:
            line = tree.statement(target)
            if tree.parent.get(line) is init.body and literal(value) is not None:
                top.add(target.attr.value)
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

    def _attribute(self, script: Script, owner: cst.ClassDef, statement: cst.CSTNode, weights: str) -> str:
        taken = {target.attr.value for target, _, _ in script.bindings.attribute_assignments}
        taken |= set(script.bindings.scopes[owner].bindings)
        taken |= {builder.name for builder in self._built.values() if builder.script is script}
        return self._name((owner, weights), statement, lambda: _free("grad_reducer", taken), script, weights)

    def _at_optimizer(self, take: Take, application: Application) -> _Builder | None:
        """Build behind the optimizer, where that is surely passed before the gradients are taken."""
        if len(application.optimizers) != 1 or len(self.program.flow.called(application.script, application.call)) != 1:
            return None
        built = application.optimizers[0]
        call = built.node
        if built.script is not take.script or not isinstance(call, cst.Call):
            return None
        found = self._beside(take, call)
        return found if found is not None and self._passed_first(found, take) else None

    def _passed_first(self, builder: _Builder, take: Take) -> bool:
        """Whether a statement lies on every way to a take, and before it."""
        tree, line = take.script.tree, self.program.timeline
        block = tree.parent.get(builder.statement)
        scope = take.script.bindings.scope_of(builder.statement)
        outermost = getattr(scope.node, "body", None) if scope.kind != "module" else tree.module
        around = block is outermost or any(parent is block for parent in tree.ancestors(take.call))
        begun, taken = line.begun.get(builder.statement), line.visited.get(take.call)
        return around and (begun is None or taken is None or begun < taken)

    def _at_maker(self, take: Take) -> _Builder | None:
        """Build behind the statement that makes the gradient function: whatever calls that has passed there."""
        script, maker = take.maker
        if script is not take.script or take.weights is None:
            return None
        statement = script.tree.parent.get(maker)
        line = script.tree.parent.get(statement) if statement is not None else None
        if isinstance(statement, cst.Assign) and isinstance(line, cst.SimpleStatementLine) and _on_self(take.call.func):
            owner = self._owner(script, take.call)
            target = statement.targets[0].target
            on_self = isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name)
            if owner is None or not on_self or not isinstance(script.tree.parent.get(line), cst.IndentedBlock):
                return None
            if self._owner(script, maker) is not owner or self._compiled(script.bindings.scope_of(line)):
                return None
            text = script.tree.text(take.weights[1])
            return _Builder(script, line, f"self.{self._attribute(script, owner, line, text)}", text)
        return self._beside(take, maker)

    def _beside(self, take: Take, call: cst.CSTNode) -> _Builder | None:
        """Build after the assignment that ``call`` stands in, if its scope is seen from the take."""
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
        if not self._known_there(script, weights, scope, line):
            return None
        text = script.tree.text(weights)
        speller = self.startup.speller(script)
        name = self._name((line, text), line, lambda: speller.fresh("grad_reducer"), script, text)
        return _Builder(script, line, name, text)

    def _name(
        self,
        key: tuple[cst.CSTNode, str],
        statement: cst.CSTNode,
        make: Callable[[], str],
        script: Script,
        weights: str,
    ) -> str:
        if key not in self._built:
            self._built[key] = _Builder(script, statement, make(), weights)
        return self._built[key].name

    def _known_there(self, script: Script, weights: cst.BaseExpression, scope: Scope, line: cst.CSTNode) -> bool:
        """Whether every name in the weights' expression has, after a line, the value it has where it stands."""
        end = script.tree.span(line)[1]
        for part in walk(weights):
            if isinstance(part, cst.Attribute) or not isinstance(part, cst.Name):
                continue
            if isinstance(script.tree.parent.get(part), cst.Attribute) and script.tree.parent[part].attr is part:  # type: ignore[attr-defined]
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

    # -- passing -----------------------------------------------------------------------------------------------------

    def _pass(self, take: Take, name: str) -> Edit:
        """Return the edit that passes a take's gradients through a reducer."""
        tree, call = take.script.tree, take.call
        if take.shape != PAIR:
            return Wrap(take.script, call, f"{name}(", ")")
        parent = tree.parent.get(call)
        if isinstance(parent, cst.Subscript):
            index = parent.slice[0].slice
            if isinstance(index, cst.Index) and literal(index.value) in (1, -1):
                return Wrap(take.script, parent, f"{name}(", ")")
        if isinstance(parent, cst.Assign) and len(parent.targets) == 1:
            target = parent.targets[0].target
            if isinstance(target, (cst.Tuple, cst.List)) and len(target.elements) == 2:
                gradients = target.elements[1].value
                line = tree.parent.get(parent)
                block = tree.parent.get(line) if line is not None else None
                if isinstance(gradients, (cst.Name, cst.Attribute)) and isinstance(
                    block, (cst.Module, cst.IndentedBlock)
                ):
                    if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
                        text = tree.text(gradients)
                        return Insert(take.script, line, "after", (f"{text} = {name}({text})",), 60)
        raise CannotReduce(
            "value and gradients are not taken apart here; write 'loss, grads = ...' on a line of its own"
        )

    # -- reading -----------------------------------------------------------------------------------------------------

    def _owner(self, script: Script, node: cst.CSTNode) -> cst.ClassDef | None:
        """Return the class in whose method a node stands."""
        scope: Scope | None = script.bindings.scope_of(node)
        while scope is not None:
            if scope.kind == "class" and isinstance(scope.node, cst.ClassDef):
                return scope.node
            scope = scope.parent
        return None

    def _self_only(self, script: Script, weights: cst.BaseExpression) -> cst.BaseExpression | None:
        """Return the weights' expression if it is made of ``self``, through one local name; else None."""
        if isinstance(weights, cst.Name):
            found = script.bindings.lookup(weights)
            if len(found) != 1 or found[0].value is None or found[0].path:
                return None
            weights = found[0].value
        roots = [
            part
            for part in walk(weights)
            if isinstance(part, cst.Name)
            and not (isinstance(parent := script.tree.parent.get(part), cst.Attribute) and parent.attr is part)
        ]
        local = [part for part in roots if part.value != "self" and self._is_local(script, part)]
        return None if local or not any(part.value == "self" for part in roots) else weights

    def _is_local(self, script: Script, name: cst.Name) -> bool:
        return any(binding.scope.kind != "module" for binding in script.bindings.lookup(name))


def _within(parents: Iterable[cst.CSTNode], function: Scope | None) -> Iterator[cst.CSTNode]:
    """Yield parents up to the function they stand in."""
    for parent in parents:
        if function is not None and parent is function.node:
            return
        yield parent


def _starts_base(init: cst.CSTNode, name: str) -> bool:
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
