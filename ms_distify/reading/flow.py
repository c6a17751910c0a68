"""Where does this value come from? One mechanism, used by every rule that asks.

A walk starts at an expression and goes backwards: through assignments, tuple slots, attributes of ``self``,
parameters to their call sites, calls into what the called function returns, imports into their files. It ends
at origins: a call into a library, a class of the program, a literal, or a place it cannot pass, which is
named. The calls walked *into* on the way are the origin's context: they tell which call sites an edit must go
through.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ..mindspore import names
from . import constants, handed_on, members, named
from .bindings import Binding, Scope, Selector, literal, parameters
from .calls import Calls, decorated, is_static, is_stub
from .containers import Containers
from .members import OF_NOTHING
from .origin import ELEMENT, At, Edge, Function, Origin, Selectors
from .script import Script
from .tree import walk

if TYPE_CHECKING:
    from .project import Project

_Key = tuple[cst.CSTNode, Selectors, tuple[cst.Call, ...]]
# Walks within walks; far more than any program needs, far less than Python's stack holds.
_MAX_LEVEL = 150
_MAX_STEPS = 20_000
_MAX_CALLS = 8


class Flow:
    """Backward walks over the files of a project."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._calls = Calls(self)
        self._containers = Containers(self)
        self._known: dict[_Key, list[Origin]] = {}
        self._open: set[_Key] = set()
        self._partly: dict[_Key, list[Origin]] = {}  # found within the walk under way, cut short somewhere below
        self.importing: set[Binding] = set()
        self._cuts = 0  # how often a walk was cut short because it led back to itself
        self._level = 0
        self._steps = _MAX_STEPS
        self._ready = False

    def cut(self) -> None:
        """Note that a walk led back to itself, so that what is found on the way is not all there is."""
        self._cuts += 1

    def forget(self) -> None:
        """Forget what was found with fewer call sites known."""
        self._known.clear()

    # -- what rules ask --------------------------------------------------------------------------------------

    def origins(
        self,
        script: Script,
        node: cst.BaseExpression,
        calls: tuple[Edge, ...] = (),
        selectors: Selectors = (),
    ) -> list[Origin]:
        """Return every place the value of an expression can come from.

        Args:
            script: the file ``node`` stands in.
            node: the expression.
            calls: the context in which it is evaluated, as an ``Origin`` of an earlier walk gave it.
            selectors: what to take out of the value first.
        """
        if not self._ready:
            self._ready = True
            self._calls.gather()
        key = (node, selectors, tuple(edge.call for edge in calls))
        known = self._known.get(key)
        if known is not None:
            return known
        if key in self._open:
            # A value that depends on itself: the other ways into it say where it comes from.
            self._cuts += 1
            return []
        partly = self._partly.get(key)
        if partly is not None:
            # What this one misses comes to light where the walk it is part of was cut, so once is enough.
            self._cuts += 1
            return partly
        if self._level >= _MAX_LEVEL or self._steps <= 0:
            self._cuts += 1
            return [
                Origin(
                    "unknown",
                    script,
                    node,
                    calls=calls,
                    selectors=selectors,
                    reason="too many ways lead here",
                )
            ]
        self._open.add(key)
        self._level += 1
        self._steps -= 1
        cuts = self._cuts
        try:
            walked = list(self._step(node, At(script, calls, selectors)))
        finally:
            self._open.discard(key)
            self._level -= 1
            if self._level == 0:
                self._steps = _MAX_STEPS
                self._partly.clear()
        unique = {
            (o.node, o.kind, o.qualified, o.calls, o.selectors, o.methods, o.parts, o.entries, o.partials, o.ways): o
            for o in walked
        }
        found = list(unique.values())
        if cuts == self._cuts or not self._open:
            self._known[key] = found
        else:
            self._partly[key] = found
        return found

    def called(self, script: Script, call: cst.Call) -> list[Origin]:
        """Return what a call calls: functions, classes and instances of the program, or library names."""
        return self._calls.callees(script, call.func, ())

    def qualified(self, script: Script, call: cst.Call) -> str:
        """Return the canonical dotted name of the library function a call calls, or nothing."""
        found = {o.qualified for o in self.called(script, call) if o.kind == "external"}
        return found.pop() if len(found) == 1 else ""

    def call_sites(self, function: cst.CSTNode) -> list[tuple[Script, cst.Call]]:
        """Return the calls that can enter a function, a lambda or a method (``construct`` too)."""
        return self._calls.call_sites(function)

    def targets(self, script: Script, call: cst.Call) -> list[tuple[Script, Function]]:
        """Return the functions of the program that a call can enter."""
        return self._calls.targets(script, call)

    def method(self, script: Script, owner: cst.ClassDef, name: str) -> tuple[Script, cst.FunctionDef] | None:
        """Return the definition of a method in a class or the program's classes it inherits from."""
        return self._calls.method(script, owner, name)

    def ancestry(self, script: Script, owner: cst.ClassDef) -> Iterator[tuple[Script, cst.ClassDef]]:
        """Yield a class and the program's own classes it inherits from, nearest first."""
        return self._calls.ancestry(script, owner)

    def library_bases(self, script: Script, owner: cst.ClassDef) -> set[str]:
        """Return the canonical names of the library classes that a class inherits from, directly or not."""
        return self._calls.library_bases(script, owner)

    def argument(self, script: Script, call: cst.Call, function: Function, name: str) -> object:
        """Return what a call passes for a parameter: (file, expression), None (not passed) or ``...``."""
        return self._calls.argument(script, call, function, name)

    def constant(self, script: Script, node: cst.CSTNode | None, calls: tuple[Edge, ...] = ()) -> object:
        """Return the value of an expression if it is a literal in this context, else ``...``."""
        return constants.constant(self, script, node, calls)

    def possible(self, script: Script, node: cst.CSTNode, calls: tuple[Edge, ...]) -> bool:
        """Whether ``node`` can be reached in a context: no ``if`` around it tests a constant that says no."""
        return constants.possible(self, script, node, calls)

    # -- the walk --------------------------------------------------------------------------------------------

    def walk(self, node: cst.BaseExpression, at: At) -> Iterator[Origin]:
        """Go on at another expression."""
        if len(at.calls) > _MAX_CALLS:
            yield at.origin("unknown", node, reason="calls nest too deeply to be followed")
            return
        for origin in self.origins(at.script, node, at.calls, at.selectors):
            if at.methods or at.parts or at.entries:
                entries, ways = at.entries + origin.entries, at.ways + origin.ways
                origin = replace(
                    origin,
                    methods=at.methods + origin.methods,
                    parts=at.parts + origin.parts,
                    entries=entries,
                    ways=ways,
                )
            yield origin

    def _step(self, node: cst.CSTNode, at: At) -> Iterator[Origin]:
        """Go one step back from an expression."""
        if isinstance(node, cst.Name):
            yield from named.name(self, node, at)
        elif isinstance(node, cst.Attribute):
            yield from members.attribute(self, node.value, node.attr.value, node, at)
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "__next__":
            yield from self.walk(node.func.value, at.taking(ELEMENT, *at.selectors))
        elif isinstance(node, cst.Call):
            callees = self._calls.callees(at.script, node.func, at.calls)
            # What a base class leaves to its heirs gives nothing.
            defined = [origin for origin in callees if origin.kind != "function" or not is_stub(origin.node)]
            for origin in defined or callees:
                yield from self._result(node, origin, at)
        elif isinstance(node, (cst.Tuple, cst.List, cst.Set)):
            yield from self._containers.sequence(node, at)
        elif isinstance(node, cst.Dict):
            yield from self._containers.dictionary(node, at)
        elif isinstance(node, cst.BaseComp):
            yield from self._containers.comprehension(node, at)
        elif isinstance(node, cst.Subscript):
            yield from self._subscript(node, at)
        elif isinstance(node, cst.IfExp):
            value = self.constant(at.script, node.test, at.calls) if at.calls else ...
            if value is ... or value:
                yield from self.walk(node.body, at)
            if value is ... or not value:
                yield from self.walk(node.orelse, at)
        elif isinstance(node, cst.BooleanOperation):
            yield from self.walk(node.left, at)
            yield from self.walk(node.right, at)
        elif isinstance(node, cst.NamedExpr):
            yield from self.walk(node.value, at)
        elif isinstance(node, cst.BinaryOperation):
            yield from self._binary(node, at)
        elif isinstance(node, cst.Lambda):
            yield at.origin("function", node)
        elif literal(node) is not ...:
            yield at.origin("literal", node)
        else:
            yield at.origin("unknown", node, reason="an expression that cannot be followed")

    def _binary(self, node: cst.BinaryOperation, at: At) -> Iterator[Origin]:
        if literal(node.left) is not ... or literal(node.right) is not ... or not isinstance(node.operator, cst.Add):
            yield at.origin("unknown", node, reason="a computed value")
            return
        at = at.through(node)
        yield from self.walk(node.left, at)
        yield from self.walk(node.right, at)

    def _subscript(self, node: cst.Subscript, at: At) -> Iterator[Origin]:
        index = node.slice[0].slice if len(node.slice) == 1 else None
        if isinstance(index, cst.Slice):
            yield from self.walk(node.value, at)
            return
        key = self.constant(at.script, index.value, at.calls) if isinstance(index, cst.Index) else ...
        step: Selector = ("item", key) if isinstance(key, (int, str)) else ELEMENT
        taking = at.taking(step, *at.selectors)
        put = list(self._containers.put_under(node.value, taking)) if step is not ELEMENT else []
        yield from put
        for origin in self.walk(node.value, taking):
            if not put or not origin.reason.startswith("no entry"):
                yield origin

    def put_in(self, container: cst.CSTNode, at: At) -> Iterator[Origin]:
        """Go on at what is put into a container later."""
        return self._containers.put_in(container, at)

    def puts(self) -> Iterator[tuple[Script, cst.BaseExpression, object, cst.BaseExpression]]:
        """Yield what is put into containers: file, container, key (``...`` where not literal), value."""
        return self._containers.puts()

    # -- parameters and calls --------------------------------------------------------------------------------

    def parameter(self, scope: Scope, param: cst.Param, at: At) -> Iterator[Origin]:
        """Go on at what the callers of a function pass for a parameter."""
        function = scope.node
        assert isinstance(function, (cst.FunctionDef, cst.Lambda))
        owner = self._calls.owner(at.script, function)
        if owner is not None and parameters(function)[0] is param and not is_static(function):
            kind = "class" if decorated(function, "classmethod") else "instance"
            for home, cls in self._calls.family(at.script, owner):
                yield replace(at, script=home).origin(kind, cls)
            return
        for index in range(len(at.calls) - 1, -1, -1):
            edge = at.calls[index]
            if edge.function is function:
                outer = replace(at, calls=at.calls[:index])
                yield from self._argument(edge.script, edge.call, function, param, outer)
                return
        sites = self.call_sites(function)
        for script, call in sites:
            yield from self._argument(script, call, function, param, replace(at, calls=()))
        if not sites:
            name = getattr(getattr(function, "name", None), "value", "a lambda")
            yield at.origin(
                "unknown", param, reason=f"parameter {param.name.value} of {name}, which is not called here"
            )

    def _argument(
        self, script: Script, call: cst.Call, function: Function, param: cst.Param, at: At
    ) -> Iterator[Origin]:
        """Go on at what a call passes for a parameter."""
        value = self.argument(script, call, function, param.name.value)
        starred = self._calls.starred(script, call, function, param.name.value) if value is ... else None
        if starred is not None and not param.star:
            arg, element = starred
            yield from self.walk(arg.value, replace(at, script=script).taking(("item", element), *at.selectors))
        elif value is ... or param.star:
            at = replace(at, script=script)
            yield at.origin("unknown", call, reason=f"{param.name.value} comes from * or ** arguments")
        elif isinstance(value, tuple):
            yield from self.walk(value[1], replace(at, script=value[0]))
        elif param.default is not None:
            home = self.project.home(function) or script
            yield from self.walk(param.default, replace(at, script=home))
        else:
            yield replace(at, script=script).origin("unknown", call, reason=f"{param.name.value} is not passed")

    def _result(self, node: cst.Call, callee: Origin, at: At) -> Iterator[Origin]:
        """Go on at what calling ``callee`` gives."""
        if callee.kind == "class" and isinstance(callee.node, cst.ClassDef):
            yield from members.instance(self, callee, at)
            return
        entered = self._calls.entered(callee)
        if entered is not None:
            self._calls.note(node, entered[1], callee)
            if over_ranks(entered[1]):
                yield at.origin("call", node, names.OVER_RANKS)
                return
            if not any(known.call is node for known in at.calls):
                yield from self._returned(node, *entered, at)
            return
        stepped = handed_on.dataset_step(self, node, callee, at)
        if stepped is not None:
            yield from stepped
        elif callee.kind == "external":
            yield from handed_on.library_call(self, node, callee, at)
        elif callee.kind == "call":
            # What a library gave is called: a gradient function, an optimizer, a cell.
            yield at.origin("call", node, f"{callee.qualified}()")
        else:
            yield at.origin("unknown", node, reason=callee.reason or "a call that cannot be followed")

    def _returned(self, node: cst.Call, home: Script, function: Function, at: At) -> Iterator[Origin]:
        """Go on at what a function of the program returns or yields."""
        inner = replace(at, script=home, calls=(*at.calls, Edge(at.script, node, home, function)))
        yields = home.bindings.yields.get(function)
        if yields and not at.selectors:
            yield replace(at, script=home).origin("generator", function)
        elif yields:
            for item in yields:
                if isinstance(item.value, cst.From):
                    yield from self.walk(item.value.item, inner)
                elif item.value is not None:
                    yield from self.walk(item.value, inner.taking(*at.selectors[1:]))
        else:
            values = [function.body] if isinstance(function, cst.Lambda) else home.bindings.returns.get(function, [])
            feasible = [v for v in values if self.possible(home, v, inner.calls)]
            for value in feasible or values:
                yield from self.walk(value, inner)
            if not values:
                yield at.origin("unknown", node, reason="the called function returns nothing")


def over_ranks(function: cst.CSTNode) -> bool:
    """Whether a function is the one that sums over the ranks, put in by an earlier run."""
    named = isinstance(function, cst.FunctionDef) and function.name.value.startswith(names.SUM_HELPER)
    gather = names.ALL_GATHER.rpartition(".")[2]
    return named and any(isinstance(part, cst.Name) and gather in part.value for part in walk(function))


__all__ = ["ELEMENT", "OF_NOTHING", "Edge", "Flow", "Origin", "Selectors"]
