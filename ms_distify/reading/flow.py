"""Where does this value come from? One mechanism, used by every rule that asks.

A walk starts at an expression and goes backwards: through assignments, tuple slots, attributes of ``self``,
parameters to their call sites, calls into what the called function returns, imports into their files. It ends at
origins: a call into a library, a class of the program, a literal, or a place it cannot pass, which is named.
The calls walked *into* on the way are the origin's context: they tell which call sites an edit must go through.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import libcst as cst

from ..mindspore import catalog, names
from .bindings import Binding, Scope, Selector, dotted, literal, parameters
from .script import Script

if TYPE_CHECKING:
    from .project import Project

Selectors = tuple[Selector, ...]
_Key = tuple[cst.CSTNode, Selectors, tuple[cst.Call, ...]]
ELEMENT: Selector = ("element", None)
# Walks within walks; far more than any program needs, far less than Python's stack holds.
_MAX_LEVEL = 150
_MAX_STEPS = 20_000
_MAX_CALLS = 8
# Built-ins and wrappers that hand on what they are given: name -> None for "the first argument, same shape".
_TRANSPARENT = frozenset(
    {"iter", "next", "list", "tuple", "reversed", "sorted", "tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm",
     "tqdm.trange", "copy.copy", "copy.deepcopy", "rich.progress.track", "itertools.islice", "itertools.cycle"}
)  # fmt: skip


@dataclass(frozen=True)
class Edge:
    """A call that the walk went into: at ``call`` (in ``script``) the program enters ``function``."""

    script: Script
    call: cst.Call
    home: Script
    function: cst.FunctionDef | cst.Lambda


@dataclass(frozen=True)
class Origin:
    """Where a walk ended.

    Attributes:
        kind: "call" (of something outside the program), "external" (such a thing itself), "function", "class",
            "instance" (of a class of the program), "method" (called on something outside), "literal", "unknown".
        script: the file of ``node``.
        node: the expression or definition.
        qualified: for call, external and method: the dotted name, in the form of ``names.canonical``.
        calls: the calls walked into, outermost first.
        selectors: what was still to be taken out of the value, e.g. its elements.
        methods: dataset methods passed on the way back, last applied first.
        reason: for unknown: why the walk ended.
    """

    kind: str
    script: Script
    node: cst.CSTNode
    qualified: str = ""
    calls: tuple[Edge, ...] = ()
    selectors: Selectors = ()
    methods: tuple[tuple[Script, cst.CSTNode], ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class _At:
    """A state of the walk."""

    script: Script
    calls: tuple[Edge, ...]
    selectors: Selectors
    methods: tuple[tuple[Script, cst.CSTNode], ...] = ()

    def origin(self, kind: str, node: cst.CSTNode, qualified: str = "", reason: str = "") -> Origin:
        return Origin(kind, self.script, node, qualified, self.calls, self.selectors, self.methods, reason)


class Flow:
    """Backward walks over the files of a project."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._sites: dict[cst.CSTNode, list[tuple[Script, cst.Call]]] | None = None
        self._known: dict[_Key, list[Origin]] = {}
        self._open: set[_Key] = set()
        self._cuts = 0  # how often a walk was cut short because it led back to itself
        self._level = 0
        self._steps = _MAX_STEPS

    # -- what rules ask ----------------------------------------------------------------------------------------

    def origins(
        self, script: Script, node: cst.BaseExpression, calls: tuple[Edge, ...] = (), selectors: Selectors = ()
    ) -> list[Origin]:
        """Return every place the value of an expression can come from.

        Args:
            script: the file ``node`` stands in.
            node: the expression.
            calls: the context in which it is evaluated, as an ``Origin`` of an earlier walk gave it.
            selectors: what to take out of the value first.
        """
        key = (node, selectors, tuple(edge.call for edge in calls))
        known = self._known.get(key)
        if known is not None:
            return known
        if key in self._open:
            # A value that depends on itself: the other ways into it say where it comes from.
            self._cuts += 1
            return []
        if self._level >= _MAX_LEVEL or self._steps <= 0:
            return [Origin("unknown", script, node, calls=calls, selectors=selectors, reason="too many ways lead here")]
        self._open.add(key)
        self._level += 1
        self._steps -= 1
        cuts = self._cuts
        try:
            walked = list(self._step(node, _At(script, calls, selectors)))
        finally:
            self._open.discard(key)
            self._level -= 1
            if self._level == 0:
                self._steps = _MAX_STEPS
        found = list({(o.node, o.kind, o.qualified, o.calls, o.selectors, o.methods): o for o in walked}.values())
        if cuts == self._cuts or not self._open:
            self._known[key] = found
        return found

    def _walk(self, node: cst.BaseExpression, at: _At) -> Iterator[Origin]:
        """Go on at another expression."""
        if len(at.calls) > _MAX_CALLS:
            yield at.origin("unknown", node, reason="calls nest too deeply to be followed")
            return
        for origin in self.origins(at.script, node, at.calls, at.selectors):
            yield replace(origin, methods=at.methods + origin.methods) if at.methods else origin

    def called(self, script: Script, call: cst.Call) -> list[Origin]:
        """Return what a call calls: functions, classes and instances of the program, or library names."""
        return self._callees(script, call.func, ())

    def _callees(self, script: Script, func: cst.BaseExpression, calls: tuple[Edge, ...]) -> list[Origin]:
        if isinstance(func, cst.Attribute) and not self._may_lead_on(script, func):
            return [Origin("unknown", script, func, calls=calls, reason=f"what {func.attr.value}() gives")]
        return self._through_partials(self.origins(script, func, calls))

    def _may_lead_on(self, script: Script, func: cst.Attribute) -> bool:
        """Whether a method can be anything that is asked for; tensor arithmetic is not worth following."""
        if func.attr.value in names.METHODS or func.attr.value in self.project.attribute_names:
            return True
        root: cst.BaseExpression = func
        while isinstance(root, cst.Attribute):
            root = root.value
        if not isinstance(root, cst.Name):
            return False
        bindings = script.bindings.lookup(root)
        return not bindings or any(binding.kind in ("import", "class") for binding in bindings)

    def _through_partials(self, callees: list[Origin]) -> list[Origin]:
        """Replace ``functools.partial(f, ...)`` by what ``f`` is."""
        found: list[Origin] = []
        for origin in callees:
            call = origin.node
            if origin.kind == "call" and origin.qualified == "functools.partial" and isinstance(call, cst.Call):
                found.extend(self._through_partials(self.origins(origin.script, call.args[0].value, origin.calls)))
            else:
                found.append(origin)
        return found

    def qualified(self, script: Script, call: cst.Call) -> str:
        """Return the canonical dotted name of the library function a call calls, or nothing."""
        found = {o.qualified for o in self.called(script, call) if o.kind == "external"}
        return found.pop() if len(found) == 1 else ""

    def call_sites(self, function: cst.CSTNode) -> list[tuple[Script, cst.Call]]:
        """Return the calls that can enter a function, a method (``construct`` through its instance) or lambda."""
        if self._sites is None:
            self._sites = {}
            for script in self.project.scripts():
                for call in script.bindings.calls:
                    for _, target in self.targets(script, call):
                        self._sites.setdefault(target, []).append((script, call))
        return self._sites.get(function, [])

    def targets(self, script: Script, call: cst.Call) -> list[tuple[Script, cst.FunctionDef | cst.Lambda]]:
        """Return the functions of the program that a call can enter."""
        found: list[tuple[Script, cst.FunctionDef | cst.Lambda]] = []
        for origin in self.called(script, call):
            function = self._entered(origin)
            if function is not None and function not in found:
                found.append(function)
        return found

    def _entered(self, origin: Origin) -> tuple[Script, cst.FunctionDef | cst.Lambda] | None:
        node = origin.node
        if isinstance(node, (cst.FunctionDef, cst.Lambda)):
            return origin.script, node
        if origin.kind == "class" and isinstance(node, cst.ClassDef):
            return self.method(origin.script, node, "__init__")
        if origin.kind == "instance" and isinstance(node, cst.ClassDef):
            return self.method(origin.script, node, "construct") or self.method(origin.script, node, "__call__")
        return None

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
                for origin in self.origins(home, base.value):
                    if origin.kind == "class" and isinstance(origin.node, cst.ClassDef):
                        stack.append((origin.script, origin.node))

    def library_bases(self, script: Script, owner: cst.ClassDef) -> set[str]:
        """Return the canonical names of the library classes that a class inherits from, directly or not."""
        found: set[str] = set()
        for home, cls in self.ancestry(script, owner):
            for base in cls.bases:
                found.update(o.qualified for o in self.origins(home, base.value) if o.kind == "external")
        return found

    def constant(self, script: Script, node: cst.CSTNode | None, calls: tuple[Edge, ...] = ()) -> object:
        """Return the value of an expression where it is a literal in this context, ``...`` where it is not."""
        value = literal(node)
        if value is not ... or not isinstance(node, cst.BaseExpression):
            return value
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            inner = self.constant(script, node.expression, calls)
            return ... if inner is ... else not inner
        if isinstance(node, cst.BooleanOperation):
            return self._boolean(script, node, calls)
        if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
            return self._compare(script, node, calls)
        if isinstance(node, (cst.Name, cst.Attribute)):
            found = self.origins(script, node, calls)
            if found and all(o.kind == "literal" and not o.selectors for o in found):
                values = [literal(o.node) for o in found]
                if all(type(v) is type(values[0]) and v == values[0] for v in values):
                    return values[0]
        return ...

    def _boolean(self, script: Script, node: cst.BooleanOperation, calls: tuple[Edge, ...]) -> object:
        left = self.constant(script, node.left, calls)
        right = self.constant(script, node.right, calls)
        decides = isinstance(node.operator, cst.Or)
        for value in (left, right):
            if value is not ... and bool(value) is decides:
                return decides
        return ... if left is ... or right is ... else right

    def _compare(self, script: Script, node: cst.Comparison, calls: tuple[Edge, ...]) -> object:
        target = node.comparisons[0]
        left = self.constant(script, node.left, calls)
        operator = target.operator
        if isinstance(operator, (cst.In, cst.NotIn)):
            if left is ... or not isinstance(target.comparator, (cst.Tuple, cst.List, cst.Set)):
                return ...
            options = [literal(element.value) for element in target.comparator.elements]
            if ... in options:
                return ...
            return (left in options) is isinstance(operator, cst.In)
        right = self.constant(script, target.comparator, calls)
        if left is ... or right is ...:
            return ...
        if isinstance(operator, (cst.Equal, cst.Is)):
            return left == right
        if isinstance(operator, (cst.NotEqual, cst.IsNot)):
            return left != right
        return ...

    def possible(self, script: Script, node: cst.CSTNode, calls: tuple[Edge, ...]) -> bool:
        """Whether ``node`` can be reached in a context: no ``if`` around it tests a constant that says no."""
        if not calls:
            return True
        tree, below = script.tree, node
        for parent in tree.ancestors(node):
            if isinstance(parent, (cst.If, cst.IfExp)) and below is not parent.test:
                value = self.constant(script, parent.test, calls)
                if value is not ... and bool(value) is not (below is parent.body):
                    return False
            if isinstance(parent, (cst.FunctionDef, cst.Lambda)):
                break
            below = parent
        return True

    # -- the walk ------------------------------------------------------------------------------------------------

    def _step(self, node: cst.CSTNode, at: _At) -> Iterator[Origin]:
        """Go one step back from an expression."""
        if isinstance(node, cst.Name):
            yield from self._name(node, at)
        elif isinstance(node, cst.Attribute):
            yield from self._attribute(node, at)
        elif isinstance(node, cst.Call):
            yield from self._call(node, at)
        elif isinstance(node, (cst.Tuple, cst.List, cst.Set)):
            yield from self._sequence(node, at)
        elif isinstance(node, cst.Dict):
            yield from self._dict(node, at)
        elif isinstance(node, cst.Subscript):
            yield from self._subscript(node, at)
        elif isinstance(node, cst.IfExp):
            value = self.constant(at.script, node.test, at.calls)
            if value is ... or value:
                yield from self._walk(node.body, at)
            if value is ... or not value:
                yield from self._walk(node.orelse, at)
        elif isinstance(node, cst.BooleanOperation):
            yield from self._walk(node.left, at)
            yield from self._walk(node.right, at)
        elif isinstance(node, cst.NamedExpr):
            yield from self._walk(node.value, at)
        elif isinstance(node, cst.BinaryOperation):
            yield from self._binary(node, at)
        elif isinstance(node, (cst.ListComp, cst.GeneratorExp, cst.SetComp)):
            if at.selectors and at.selectors[0][0] in ("element", "item", "rest"):
                yield from self._walk(node.elt, replace(at, selectors=at.selectors[1:]))
            else:
                yield at.origin("unknown", node, reason="a comprehension as a whole")
        elif isinstance(node, cst.Lambda):
            yield at.origin("function", node)
        elif literal(node) is not ...:
            yield at.origin("literal", node)
        else:
            yield at.origin("unknown", node, reason="an expression that cannot be followed")

    def _binary(self, node: cst.BinaryOperation, at: _At) -> Iterator[Origin]:
        if literal(node.left) is not ... or literal(node.right) is not ... or not isinstance(node.operator, cst.Add):
            yield at.origin("unknown", node, reason="a computed value")
            return
        at = replace(at, methods=(*at.methods, (at.script, node)))
        yield from self._walk(node.left, at)
        yield from self._walk(node.right, at)

    def _name(self, node: cst.Name, at: _At) -> Iterator[Origin]:
        bindings = at.script.bindings.lookup(node)
        if not bindings:
            if literal(node) is not ...:
                yield at.origin("literal", node)
                return
            for home, found in self.project.star_names(at.script, node.value):
                for binding in found:
                    yield from self._binding(binding, replace(at, script=home), node)
                return
            yield at.origin("external", node, node.value)
            return
        feasible = [b for b in bindings if self.possible(at.script, b.node, at.calls)]
        for binding in feasible or bindings:
            yield from self._binding(binding, at, node)

    def _binding(
        self, binding: Binding, at: _At, use: cst.CSTNode
    ) -> Iterator[Origin]:
        node = binding.node
        if binding.kind == "import":
            yield from self._import(binding, at)
        elif binding.kind in ("function", "class"):
            yield at.origin(binding.kind, node)
        elif binding.kind == "parameter" and isinstance(node, cst.Param):
            yield from self._parameter(binding.scope, node, at)
        elif binding.kind == "augment" and isinstance(node, cst.AugAssign):
            yield from self._augment(node, binding, at)
        elif binding.value is not None and binding.kind in ("assign", "for", "with"):
            path = tuple(step for step in binding.path if step[0] != "enter")
            # A `for` over `range(...)` or the like ends in an unknown, which is right.
            yield from self._walk(binding.value, replace(at, selectors=(*path, *at.selectors)))
        else:
            yield at.origin("unknown", node, reason=f"bound by {binding.kind}")

    def _augment(
        self, node: cst.AugAssign, binding: Binding, at: _At
    ) -> Iterator[Origin]:
        """``x += y``: what x was before, and y."""
        if not isinstance(node.operator, cst.AddAssign):
            yield at.origin("unknown", node, reason="a computed value")
            return
        # Several `x += ...` in a loop reach each other: gather them all before going on.
        pending, gathered = [node], [node]
        while pending:
            current = pending.pop()
            yield from self._walk(current.value, at)
            for earlier in at.script.bindings.reaching(current, binding.scope, binding.name):
                if not isinstance(earlier.node, cst.AugAssign):
                    yield from self._binding(earlier, at, current)
                elif earlier.node not in gathered:
                    gathered.append(earlier.node)
                    pending.append(earlier.node)

    def _import(
        self, binding: Binding, at: _At
    ) -> Iterator[Origin]:
        qualified = binding.qualified or ""
        found = self.project.resolve(at.script, binding)
        if found is None:
            yield at.origin("external", binding.node, names.canonical(qualified))
            return
        home, attribute = found
        if attribute is None:
            yield replace(at, script=home).origin("module", home.tree.module, qualified)
            return
        yield from self._member(home, attribute, at, binding.node)

    def _member(
        self,
        home: Script,
        attribute: str,
        at: _At,
        node: cst.CSTNode,
    ) -> Iterator[Origin]:
        """Go on at a module-level name of another file."""
        inner = replace(at, script=home)
        bindings = home.bindings.global_bindings(attribute)
        if not bindings:
            for script, found in self.project.star_names(home, attribute):
                home, bindings = script, found
                inner = replace(at, script=home)
        for binding in bindings:
            yield from self._binding(binding, inner, node)
        if not bindings:
            yield at.origin("unknown", node, reason=f"{attribute} is not found in {home.path}")

    def _parameter(
        self, scope: Scope, param: cst.Param, at: _At
    ) -> Iterator[Origin]:
        function = scope.node
        owner = self._owner(at.script, function)
        if owner is not None and parameters(function)[0] is param and not _static(function):  # type: ignore[arg-type]
            kind = "class" if _decorated(function, "classmethod") else "instance"
            yield at.origin(kind, owner)
            return
        for index in range(len(at.calls) - 1, -1, -1):
            edge = at.calls[index]
            if edge.function is function:
                yield from self._argument(edge.script, edge.call, function, param, replace(at, calls=at.calls[:index]))
                return
        sites = self.call_sites(function)
        for script, call in sites:
            yield from self._argument(script, call, function, param, replace(at, calls=()))
        if not sites:
            name = getattr(getattr(function, "name", None), "value", "a lambda")
            yield at.origin("unknown", param, reason=f"parameter {param.name.value} of {name}, which is not called here")

    def _argument(
        self,
        script: Script,
        call: cst.Call,
        function: cst.CSTNode,
        param: cst.Param,
        at: _At,
    ) -> Iterator[Origin]:
        """Go on at what a call passes for a parameter."""
        at = replace(at, script=script)
        value = self.argument(script, call, function, param.name.value)
        if value is ...:
            yield at.origin("unknown", call, reason=f"{param.name.value} comes from * or ** arguments")
        elif isinstance(value, cst.BaseExpression):
            yield from self._walk(value, at)
        elif param.default is not None:
            home = self.project.home(function) or script
            yield from self._walk(param.default, replace(at, script=home))
        else:
            yield at.origin("unknown", call, reason=f"{param.name.value} is not passed")

    def argument(self, script: Script, call: cst.Call, function: cst.CSTNode, name: str) -> object:
        """Return the expression a call passes for a parameter: an expression, None (not passed) or ``...``."""
        assert isinstance(function, (cst.FunctionDef, cst.Lambda))
        params = [*function.params.posonly_params, *function.params.params]
        home = self.project.home(function) or script
        bound = self._owner(home, function) is not None and not _static(function)
        names_in_order = [param.name.value for param in params][1 if bound else 0 :]
        position = 0
        unsure = False
        args = call.args
        for arg in args:
            if arg.star == "*":
                unsure = True
            elif arg.star == "**":
                unsure = True
            elif arg.keyword is not None:
                if arg.keyword.value == name:
                    return arg.value
            else:
                if position < len(names_in_order) and names_in_order[position] == name and not unsure:
                    return arg.value
                position += 1
        return ... if unsure else None

    def _owner(self, script: Script, function: cst.CSTNode) -> cst.ClassDef | None:
        """Return the class whose body a function stands in directly."""
        home = self.project.home(function) or script
        block = home.tree.parent.get(function)
        owner = home.tree.parent.get(block) if block is not None else None
        while isinstance(owner, cst.If):  # methods under `if` in a class body
            block = home.tree.parent.get(owner)
            owner = home.tree.parent.get(block) if block is not None else None
        return owner if isinstance(owner, cst.ClassDef) else None

    def _attribute(
        self, node: cst.Attribute, at: _At
    ) -> Iterator[Origin]:
        name = node.attr.value
        for origin in self.origins(at.script, node.value, at.calls):
            inner = replace(at, script=origin.script, calls=origin.calls)
            if origin.kind == "external":
                joined = names.canonical(f"{origin.qualified}.{name}")
                local = self.project.module_attribute(at.script, joined)
                if local is not None:
                    home, attribute = local
                    if attribute is None:
                        yield replace(at, script=home).origin("module", home.tree.module, joined)
                    else:
                        yield from self._member(home, attribute, at, node)
                else:
                    yield at.origin("external", node, joined)
            elif origin.kind == "module":
                yield from self._member(origin.script, name, at, node)
            elif origin.kind in ("instance", "class") and isinstance(origin.node, cst.ClassDef):
                yield from self._class_attribute(origin, name, at, inner, node)
            elif origin.kind == "call":
                yield at.origin("external", node, f"{origin.qualified}().{name}")
            else:
                yield at.origin("unknown", node, reason=f"attribute {name} of something that cannot be followed")

    def _class_attribute(
        self,
        origin: Origin,
        name: str,
        at: _At,
        inner: _At,
        node: cst.CSTNode,
    ) -> Iterator[Origin]:
        assert isinstance(origin.node, cst.ClassDef)
        method = self.method(origin.script, origin.node, name)
        if method is not None:
            home, function = method
            if _decorated(function, "property"):
                for value in home.bindings.returns.get(function, []):
                    yield from self._walk(value, replace(inner, script=home))
                return
            yield replace(inner, script=home).origin("function", function)
            return
        found = False
        for home, cls in self.ancestry(origin.script, origin.node):
            for binding in home.bindings.scopes[cls].bindings.get(name, []):
                found = True
                yield from self._binding(binding, replace(inner, script=home), node)
        family = [cls for _, cls in self.ancestry(origin.script, origin.node)]
        for script, target, value, path in self.project.attribute_assignments(name):
            if self._assigns_to(script, target, family):
                found = True
                yield from self._walk(value, replace(inner, script=script, selectors=(*path, *at.selectors)))
        if not found:
            yield at.origin("unknown", node, reason=f"attribute {name} of {origin.node.name.value} is set nowhere here")

    def _assigns_to(self, script: Script, target: cst.Attribute, family: list[cst.ClassDef]) -> bool:
        """Whether ``target`` (``something.name = ...``) sets an attribute on an instance of one of these classes."""
        for origin in self.origins(script, target.value):
            if origin.node in family and origin.kind in ("instance", "class"):
                return True
            if origin.kind == "instance" and isinstance(origin.node, cst.ClassDef):
                # set in a subclass, read in its base
                if any(cls in family for _, cls in self.ancestry(origin.script, origin.node)):
                    return True
        return False

    def _sequence(
        self, node: cst.Tuple | cst.List | cst.Set, at: _At
    ) -> Iterator[Origin]:
        if not at.selectors:
            yield at.origin("literal", node)
            return
        kind, key = at.selectors[0]
        rest = replace(at, selectors=at.selectors[1:])
        starred = any(isinstance(element, cst.StarredElement) for element in node.elements)
        if kind == "item" and isinstance(key, int) and not starred:
            if -len(node.elements) <= key < len(node.elements):
                yield from self._walk(node.elements[key].value, rest)
            return
        for element in node.elements:
            yield from self._walk(element.value, rest)

    def _dict(
        self, node: cst.Dict, at: _At
    ) -> Iterator[Origin]:
        if not at.selectors:
            yield at.origin("literal", node)
            return
        kind, key = at.selectors[0]
        rest = replace(at, selectors=at.selectors[1:])
        entries = [e for e in node.elements if isinstance(e, cst.DictElement)]
        wanted = [e for e in entries if kind == "item" and key is not None and literal(e.key) == key]
        if kind == "item" and key is not None and not wanted:
            yield at.origin("unknown", node, reason=f"no entry {key!r} in this dictionary")
        for entry in wanted or ([] if kind == "item" and key is not None else entries):
            yield from self._walk(entry.value, rest)

    def _subscript(
        self, node: cst.Subscript, at: _At
    ) -> Iterator[Origin]:
        key: object = ...
        if len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
            key = self.constant(at.script, node.slice[0].slice.value, at.calls)
        step: Selector = ("item", key) if isinstance(key, (int, str)) else ELEMENT
        yield from self._walk(node.value, replace(at, selectors=(step, *at.selectors)))

    def _call(self, node: cst.Call, at: _At) -> Iterator[Origin]:
        for origin in self._callees(at.script, node.func, at.calls):
            yield from self._result(node, origin, at)

    def _result(
        self, node: cst.Call, callee: Origin, at: _At
    ) -> Iterator[Origin]:
        """Go on at what calling ``callee`` gives."""
        if callee.kind == "class" and isinstance(callee.node, cst.ClassDef):
            yield replace(at, script=callee.script).origin("instance", callee.node)
            return
        entered = self._entered(callee)
        if entered is not None:
            home, function = entered
            edge = Edge(at.script, node, home, function)
            if any(known.call is node for known in at.calls):
                return
            inner = replace(at, script=home, calls=(*at.calls, edge))
            values = [function.body] if isinstance(function, cst.Lambda) else home.bindings.returns.get(function, [])
            feasible = [v for v in values if self.possible(home, v, inner.calls)]
            for value in feasible or values:
                yield from self._walk(value, inner)
            if not values:
                yield at.origin("unknown", node, reason="the called function returns nothing")
            return
        if isinstance(node.func, cst.Attribute) and callee.kind in ("external", "unknown"):
            method = catalog.method(node.func.attr.value)
            own = callee.qualified.startswith("mindspore.dataset.") and "()" not in callee.qualified
            if method is not None and not own and (method.returns or method.name in names.ITERATORS):
                inner = replace(at, methods=(*at.methods, (at.script, node)))
                if method.returns == "datasets":  # split(): whichever part, it comes from here
                    inner = replace(inner, selectors=at.selectors[1:])
                yield from self._walk(node.func.value, inner)
                if method.name in ("zip", "concat"):
                    for arg in node.args:
                        yield from self._parts(arg.value, inner)
                return
        if callee.kind == "external":
            yield from self._library(node, callee, at)
        else:
            yield at.origin("unknown", node, reason=callee.reason or "a call that cannot be followed")

    def _parts(
        self, value: cst.BaseExpression, at: _At
    ) -> Iterator[Origin]:
        """Walk a dataset, or each of a tuple of datasets."""
        for origin in self.origins(at.script, value, at.calls):
            if isinstance(origin.node, (cst.Tuple, cst.List)) and origin.kind == "literal":
                inner = replace(at, script=origin.script, calls=origin.calls)
                for element in origin.node.elements:
                    yield from self._walk(element.value, inner)
            else:
                yield from self._walk(value, at)
                return

    def _library(
        self, node: cst.Call, callee: Origin, at: _At
    ) -> Iterator[Origin]:
        """Go on at, or end in, a call of something outside the program."""
        qualified = callee.qualified
        args = [arg for arg in node.args if arg.keyword is None and not arg.star]
        if qualified == "enumerate" and args:
            if at.selectors[:2] == (ELEMENT, ("item", 0)):
                yield at.origin("unknown", node, reason="a counter")
                return
            kept = at.selectors
            if at.selectors[:2] == (ELEMENT, ("item", 1)):
                kept = (ELEMENT, *at.selectors[2:])
            yield from self._walk(args[0].value, replace(at, selectors=kept))
        elif qualified == "zip" and args:
            chosen = args
            kept = at.selectors
            if len(at.selectors) > 1 and at.selectors[0] == ELEMENT and at.selectors[1][0] == "item":
                index = at.selectors[1][1]
                chosen = args[index : index + 1] if isinstance(index, int) else args
                kept = (ELEMENT, *at.selectors[2:])
            for arg in chosen:
                yield from self._walk(arg.value, replace(at, selectors=kept))
        elif qualified in _TRANSPARENT and args:
            kept = at.selectors
            if qualified == "next":
                kept = (ELEMENT, *at.selectors)
            yield from self._walk(args[0].value, replace(at, selectors=kept))
        elif qualified in names.DATASET_ZIP and (args or node.args):
            inner = replace(at, methods=(*at.methods, (at.script, node)))
            yield from self._parts((args or list(node.args))[0].value, inner)
        else:
            yield at.origin("call", node, qualified)


def _decorated(function: cst.CSTNode, name: str) -> bool:
    return isinstance(function, cst.FunctionDef) and any(
        (dotted(decorator.decorator) or "").split(".")[-1] == name for decorator in function.decorators
    )


def _static(function: cst.CSTNode) -> bool:
    return _decorated(function, "staticmethod") or isinstance(function, cst.Lambda)
