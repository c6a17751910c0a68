"""What a call enters: functions, classes and instances of the program, and what it passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ..mindspore import names
from .bindings import dotted
from .origin import Edge, Function, Origin
from .script import Script

if TYPE_CHECKING:
    from .flow import Flow

_MAX_ROUNDS = 5


class Calls:
    """The calls of a program and what they enter."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._project = flow.project
        self._heirs: dict[cst.ClassDef, list[tuple[Script, cst.ClassDef]]] | None = None
        self._sites: dict[cst.CSTNode, list[tuple[Script, cst.Call]]] = {}
        # The partials through which a call enters a function; None where it is not always the same ones.
        self._partials: dict[tuple[cst.Call, cst.CSTNode], tuple[tuple[Script, cst.Call], ...] | None] = {}

    # -- what is called --------------------------------------------------------------------------------------

    def callees(self, script: Script, func: cst.BaseExpression, calls: tuple[Edge, ...]) -> list[Origin]:
        """Return what an expression that is called can be."""
        inherited = self._inherited(script, func)
        if inherited is not None:
            return [Origin("function", *inherited, calls=calls)]
        if isinstance(func, cst.Attribute) and not self._may_lead_on(script, func):
            return [Origin("unknown", script, func, calls=calls, reason=f"what {func.attr.value}() gives")]
        return self._unwrapped(self._flow.origins(script, func, calls))

    def _inherited(self, script: Script, func: cst.BaseExpression) -> tuple[Script, cst.FunctionDef] | None:
        """Return the method of the program that ``super().method`` is, if it is one."""
        if not isinstance(func, cst.Attribute) or not isinstance(func.value, cst.Call):
            return None
        if not isinstance(func.value.func, cst.Name) or func.value.func.value != "super":
            return None
        owner = next((node for node in script.tree.ancestors(func) if isinstance(node, cst.ClassDef)), None)
        if owner is None:
            return None
        for home, cls in list(self.ancestry(script, owner))[1:]:
            for binding in home.bindings.scopes[cls].bindings.get(func.attr.value, []):
                if isinstance(binding.node, cst.FunctionDef):
                    return home, binding.node
        return None

    def _may_lead_on(self, script: Script, func: cst.Attribute) -> bool:
        """Whether a method can be anything that is asked for; tensor arithmetic is not worth following."""
        if (
            func.attr.value in names.METHODS
            or func.attr.value in names.INHERITED
            or func.attr.value in self._project.attribute_names
        ):
            return True
        root: cst.BaseExpression = func
        while isinstance(root, cst.Attribute):
            root = root.value
        if not isinstance(root, cst.Name):
            return False
        bindings = script.bindings.lookup(root)
        return not bindings or any(binding.kind in ("import", "class") for binding in bindings)

    def _unwrapped(self, callees: list[Origin], depth: int = 0) -> list[Origin]:
        """Replace ``functools.partial(f, ...)`` and ``ms.jit(f)`` by what ``f`` is."""
        found: list[Origin] = []
        for origin in callees:
            call = origin.node
            if (
                origin.kind != "call"
                or origin.qualified not in names.COMPILED | {names.PARTIAL}
                or not isinstance(call, cst.Call)
            ):
                found.append(origin)
                continue
            inner = next((arg for arg in call.args if arg.keyword is None and not arg.star), None)
            if inner is None or depth > 10:
                found.append(origin)
                continue
            binds = ((origin.script, call),) if origin.qualified == names.PARTIAL else ()
            for one in self._unwrapped(self._flow.origins(origin.script, inner.value, origin.calls), depth + 1):
                found.append(replace(one, partials=(*origin.partials, *binds, *one.partials)))
        return found

    def entered(self, origin: Origin) -> tuple[Script, Function] | None:
        """Return the function of the program that a call of ``origin`` runs, if it is one."""
        node = origin.node
        if origin.kind == "generator":
            return None
        if isinstance(node, (cst.FunctionDef, cst.Lambda)):
            return origin.script, node
        if origin.kind == "class" and isinstance(node, cst.ClassDef):
            return self.method(origin.script, node, "__init__")
        if origin.kind == "instance" and isinstance(node, cst.ClassDef):
            return self.method(origin.script, node, "construct") or self.method(origin.script, node, "__call__")
        return None

    def targets(self, script: Script, call: cst.Call) -> list[tuple[Script, Function]]:
        """Return the functions of the program that a call can enter."""
        found: list[tuple[Script, Function]] = []
        for origin in self.callees(script, call.func, ()):
            function = self.entered(origin)
            if function is not None:
                self.note(call, function[1], origin)
                if function not in found:
                    found.append(function)
        return found

    def note(self, call: cst.Call, function: Function, callee: Origin) -> None:
        """Remember through which partials a call enters a function."""
        known = self._partials.setdefault((call, function), callee.partials)
        if known != callee.partials:
            self._partials[call, function] = None

    def call_sites(self, function: cst.CSTNode) -> list[tuple[Script, cst.Call]]:
        """Return the calls that can enter a function, a lambda or a method (``construct`` too)."""
        return self._sites.get(function, [])

    def gather(self) -> None:
        """Find all call sites, before anything is asked.

        What a parameter holds depends on the calls of its function, and what a call through a parameter
        enters depends on what it holds. So the first round knows only calls by name, and each further one the
        sites of the round before, until nothing is added.
        """
        for _ in range(_MAX_ROUNDS):
            found: dict[cst.CSTNode, list[tuple[Script, cst.Call]]] = {}
            for script in self._project.scripts():
                for call in script.bindings.calls:
                    for _, target in self.targets(script, call):
                        found.setdefault(target, []).append((script, call))
            if {f: len(s) for f, s in found.items()} == {f: len(s) for f, s in self._sites.items()}:
                return
            self._sites = found
            self._flow.forget()

    # -- classes ---------------------------------------------------------------------------------------------

    def method(self, script: Script, owner: cst.ClassDef, name: str) -> tuple[Script, cst.FunctionDef] | None:
        """Return the definition of a method in a class or the program's classes it inherits from."""
        for home, cls in self.ancestry(script, owner):
            for binding in home.bindings.scopes[cls].bindings.get(name, []):
                if isinstance(binding.node, cst.FunctionDef):
                    return home, binding.node
        return None

    def ancestry(self, script: Script, owner: cst.ClassDef) -> Iterator[tuple[Script, cst.ClassDef]]:
        """Yield a class and the program's own classes it inherits from, nearest first."""
        stack, seen = [(script, owner)], set()
        while stack:
            home, cls = stack.pop(0)
            if cls in seen:
                continue
            seen.add(cls)
            yield home, cls
            for base in cls.bases:
                for origin in self._flow.origins(home, base.value):
                    if origin.kind == "class" and isinstance(origin.node, cst.ClassDef):
                        stack.append((origin.script, origin.node))

    def family(self, script: Script, owner: cst.ClassDef) -> list[tuple[Script, cst.ClassDef]]:
        """Return a class and its heirs in the program: what ``self`` can be in its methods."""
        if self._heirs is None:
            self._heirs = {}
            for home in self._project.scripts():
                for scope in home.bindings.scopes.values():
                    if isinstance(scope.node, cst.ClassDef) and scope.node.bases:
                        for _, base in list(self.ancestry(home, scope.node))[1:]:
                            self._heirs.setdefault(base, []).append((home, scope.node))
        return [(self._project.home(owner) or script, owner), *self._heirs.get(owner, [])]

    def library_bases(self, script: Script, owner: cst.ClassDef) -> set[str]:
        """Return the canonical names of the library classes that a class inherits from, directly or not."""
        found: set[str] = set()
        for home, cls in self.ancestry(script, owner):
            for base in cls.bases:
                found.update(o.qualified for o in self._flow.origins(home, base.value) if o.kind == "external")
        return found

    def owner(self, script: Script, function: cst.CSTNode) -> cst.ClassDef | None:
        """Return the class whose body a function stands in directly."""
        home = self._project.home(function) or script
        block = home.tree.parent.get(function)
        owner = home.tree.parent.get(block) if block is not None else None
        while isinstance(owner, cst.If):  # methods under `if` in a class body
            block = home.tree.parent.get(owner)
            owner = home.tree.parent.get(block) if block is not None else None
        return owner if isinstance(owner, cst.ClassDef) else None

    # -- arguments -------------------------------------------------------------------------------------------

    def argument(self, script: Script, call: cst.Call, function: Function, name: str) -> object:
        """Return what a call passes for a parameter: (file, expression), None (not passed) or ``...``."""
        partials = self._partials.get((call, function), ())
        if partials is None:
            return ...
        in_order = self._positional(script, function)
        passes = [(home, list(partial.args[1:])) for home, partial in partials] + [(script, list(call.args))]
        for home, args in reversed(passes):  # a later keyword overrides an earlier one
            for arg in args:
                if arg.keyword is not None and arg.keyword.value == name:
                    return home, arg.value
        position = 0
        for home, args in passes:
            for arg in args:
                if arg.star == "*":
                    return ...
                if arg.keyword is None and not arg.star:
                    if position < len(in_order) and in_order[position] == name:
                        return home, arg.value
                    position += 1
        return ... if any(arg.star for _, args in passes for arg in args) else None

    def starred(self, script: Script, call: cst.Call, function: Function, name: str) -> tuple[cst.Arg, int] | None:
        """Return the ``*`` argument that fills a parameter, and with which of its elements; None if that is not sure."""
        in_order = self._positional(script, function)
        if self._partials.get((call, function), ()) or name not in in_order:
            return None
        for index, arg in enumerate(call.args):
            behind = call.args[index + 1 :]
            if arg.star == "*" and not any(other.star or other.keyword is None for other in behind):
                element = in_order.index(name) - index
                return (arg, element) if element >= 0 else None
            if arg.star or arg.keyword is not None:
                return None
        return None

    def _positional(self, script: Script, function: Function) -> list[str]:
        """Return the parameters that positional arguments of a call fill, in order."""
        params = [*function.params.posonly_params, *function.params.params]
        home = self._project.home(function) or script
        bound = self.owner(home, function) is not None and not is_static(function)
        return [param.name.value for param in params][1 if bound else 0 :]


def is_stub(function: cst.CSTNode) -> bool:
    """Whether a function does nothing but say that others have to: ``pass``, ``raise NotImplementedError``."""
    if not isinstance(function, cst.FunctionDef):
        return False
    lines: list[cst.CSTNode] = []
    for line in function.body.body:
        lines += line.body if isinstance(line, cst.SimpleStatementLine) else [line]
    return all(
        isinstance(line, (cst.Pass, cst.Raise))
        or (
            isinstance(line, cst.Expr)
            and isinstance(line.value, (cst.SimpleString, cst.ConcatenatedString, cst.Ellipsis))
        )
        or (
            isinstance(line, cst.Return)
            and (line.value is None or dotted(line.value) in ("None", "NotImplementedError"))
        )
        for line in lines
    )


def decorated(function: cst.CSTNode, name: str) -> bool:
    """Whether a function carries a decorator of this last name."""
    return isinstance(function, cst.FunctionDef) and any(
        (dotted(decorator.decorator) or "").split(".")[-1] == name for decorator in function.decorators
    )


def is_static(function: cst.CSTNode) -> bool:
    """Whether a function in a class body gets no ``self``."""
    return decorated(function, "staticmethod") or isinstance(function, cst.Lambda)
