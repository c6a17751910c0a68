"""What leaves a loop: names that it adds to, and all else that is seen behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ..mindspore import names
from .bindings import Binding, literal
from .flow import Flow
from .fresh import fresh, root
from .reaching import Reaching
from .roles import parts
from .script import Script
from .tree import walk

# Calls whose value nobody needs, and that show something or set up something else than a result.
_SHOWS = frozenset({"print", "info", "debug", "warning", "error", "log", "set_description", "set_postfix",
                    "set_description_str", "set_postfix_str", "flush", "set_train", "sleep", "collect"})  # fmt: skip
# Methods that put something into what they are called on.
_PUTS = frozenset({"append", "extend", "insert", "put", "setdefault", "update", "write"})
_MAX_DEPTH = 6


@dataclass(frozen=True)
class Trouble:
    """Something that leaves a loop and is no sum.

    Attributes:
        node: where.
        why: what it is.
    """

    node: cst.CSTNode
    why: str


class Leaving:
    """Finds what leaves one loop.

    Attributes:
        sums: the names that the loop only adds to, from zero on, and that are read behind it.
        adds: whether it adds to any name, read behind it or not.
        trouble: what else leaves it.
    """

    def __init__(self, flow: Flow, script: Script, loop: cst.For) -> None:
        self._flow, self._script, self._loop = flow, script, loop
        self._start, self._end = script.tree.span(loop)
        self.sums: list[str] = []
        self.adds = False
        self.trouble: list[Trouble] = [*self._jumps(), *self._shared(), *self._side_effects()]
        for name, inside in self._bound().items():
            self._name(name, inside)

    def _within(self, node: cst.CSTNode) -> bool:
        return self._start <= self._script.tree.start(node) < self._end

    def _bound(self) -> dict[str, list[Binding]]:
        """Return the names that the loop binds, in its own scope or beyond."""
        found: dict[str, list[Binding]] = {}
        scopes = self._script.bindings
        for scope in dict.fromkeys((scopes.scope_of(self._loop), scopes.module)):
            for name, bindings in scope.bindings.items():
                inside = [b for b in bindings if b.node is self._loop or self._within(b.node)]
                if inside:
                    found.setdefault(name, []).extend(inside)
        return found

    # -- names -------------------------------------------------------------------------------------------------------

    def _name(self, name: str, inside: list[Binding]) -> None:
        added = all(_adds(binding) for binding in inside)
        reads = [node for node in self._reads(name) if set(self._script.bindings.lookup(node)) & set(inside)]
        behind = [node for node in reads if not self._within(node)]
        if not added:
            carried = next((node for node in reads if self._within(node) and self._carried(node, inside)), None)
            if behind or carried is not None:
                node = inside[0].node if inside[0].node is not self._loop else self._loop.target
                why = "is read behind the loop" if behind else "is carried from batch to batch"
                self.trouble.append(Trouble(node, f"{name} {why} and is not only added to"))
            return
        self.adds = True
        looked = next(
            (n for n in reads if self._within(n) and not self._shown(n) and not self._updates(n, inside)), None
        )
        if looked is not None:
            self.trouble.append(Trouble(looked, f"{name} is a sum over batches, and is read before it is complete"))
        elif behind:
            scope = inside[0].scope
            before = self._script.bindings.reaching(self._loop, scope, name)
            if not before or not all(b not in inside and self._zero(b) for b in before):
                self.trouble.append(Trouble(inside[0].node, f"{name} does not start at 0 right before the loop"))
            else:
                self.sums.append(name)

    def _reads(self, name: str) -> Iterator[cst.Name]:
        function = self._script.bindings.scope_of(self._loop).function()
        top = function.node if function is not None else self._script.tree.module
        for node in walk(top):
            if isinstance(node, cst.Name) and node.value == name and self._is_read(node):
                yield node

    def _is_read(self, name: cst.Name) -> bool:
        tree = self._script.tree
        below: cst.CSTNode = name
        parent = tree.parent[name]
        while isinstance(parent, (cst.Element, cst.StarredElement, cst.Tuple, cst.List)):
            below, parent = parent, tree.parent[parent]
        if isinstance(parent, (cst.AssignTarget, cst.AsName, cst.NameItem)):
            return False
        if isinstance(parent, (cst.For, cst.CompFor, cst.NamedExpr, cst.AnnAssign)) and below is parent.target:
            return False
        if isinstance(parent, cst.Attribute):
            return below is parent.value
        if isinstance(parent, cst.Arg):
            return below is parent.value
        return not isinstance(parent, (cst.Param, cst.FunctionDef, cst.ClassDef, cst.ImportAlias)) or (
            below is getattr(parent, "default", None)
        )

    def _carried(self, node: cst.Name, inside: list[Binding]) -> bool:
        """Whether a read may see what an earlier round of the loop left: nothing surely sets the name before it."""
        tree, scope = self._script.tree, inside[0].scope
        known = Reaching(tree, scope, scope.bindings[node.value])
        setters = {binding.node for binding in inside}
        below: cst.CSTNode = node
        for parent in tree.ancestors(node):
            body = getattr(parent, "body", None)
            if isinstance(body, (list, tuple)):
                before = body[: next(i for i, item in enumerate(body) if item is below)]
                if any(known.effect(statement)[1] for statement in before):
                    return False
            elif below is body and (parent in setters or setters & set(getattr(parent, "items", ()))):
                return False  # for name in ..., with ... as name, except ... as name
            if parent is self._loop:
                return True
            below = parent
        return True

    def _updates(self, node: cst.Name, inside: list[Binding]) -> bool:
        """Whether a read is the left side of ``n += x`` or ``n = n + x``."""
        parent = self._script.tree.parent[node]
        if isinstance(parent, cst.AugAssign):
            return parent.target is node
        return isinstance(parent, cst.BinaryOperation) and any(
            b.value is parent and parent.left is node for b in inside
        )

    def _shown(self, node: cst.CSTNode) -> bool:
        """Whether a read only shows something."""
        for parent in self._script.tree.ancestors(node):
            if isinstance(parent, cst.Expr):
                return isinstance(parent.value, cst.Call) and self._shows(parent.value)
            if isinstance(parent, cst.BaseStatement):
                return False
        return False

    def _shows(self, call: cst.Call) -> bool:
        func = call.func
        name = func.attr.value if isinstance(func, cst.Attribute) else getattr(func, "value", "")
        if self._flow.targets(self._script, call):
            return False
        if name == "update" and isinstance(func, cst.Attribute):
            origins = self._flow.origins(self._script, func.value)
            return bool(origins) and all(o.qualified.startswith("tqdm") for o in origins)
        return name in _SHOWS

    def _zero(self, binding: Binding) -> bool:
        """Whether a binding gives a name a zero: ``0``, ``0.0``, ``Tensor(0, ...)``, also of a tuple."""
        value: cst.CSTNode | None = binding.value
        for kind, key in binding.path:
            if kind != "item" or not isinstance(value, (cst.Tuple, cst.List)) or not isinstance(key, int):
                return False
            value = value.elements[key].value if key < len(value.elements) else None
        if (
            isinstance(value, cst.Call)
            and self._flow.qualified(self._script, value) == "mindspore.Tensor"
            and value.args
        ):
            value = value.args[0].value
        number = literal(value) if value is not None else ...
        return binding.kind == "assign" and isinstance(number, (int, float)) and number == 0

    # -- the rest ----------------------------------------------------------------------------------------------------

    def _jumps(self) -> Iterator[Trouble]:
        if self._loop.orelse is not None:
            yield Trouble(self._loop.orelse, "the loop has an else")
        for part in parts(self._loop.body):
            if isinstance(part, (cst.Return, cst.Yield, cst.Await)):
                yield Trouble(part, "it leaves the loop in the middle")
            elif isinstance(part, cst.Break):
                around = next(p for p in self._script.tree.ancestors(part) if isinstance(p, (cst.For, cst.While)))
                if around is self._loop:
                    yield Trouble(part, "it leaves the loop in the middle")

    def _shared(self) -> Iterator[Trouble]:
        """Yield what the loop sets that other functions have as well, by ``global`` and ``nonlocal``."""
        function = self._script.bindings.scope_of(self._loop).function()
        if function is None:
            return
        items = [p for p in parts(function.node) if isinstance(p, (cst.Global, cst.Nonlocal))]
        told = {item.name.value for statement in items for item in statement.names}
        for part in parts(self._loop):
            if isinstance(part, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr, cst.For)):
                for name in walk(part.target):
                    if isinstance(name, cst.Name) and name.value in told:
                        yield Trouble(part, f"{name.value} is set for other functions, too (global or nonlocal)")

    def _side_effects(self) -> Iterator[Trouble]:
        """Yield what the loop changes that is no name: containers, attributes, files, generators, iterators."""
        own = fresh(self._flow, self._script, self._loop, self._bound())
        text = self._script.tree.text
        for part in parts(self._loop.body):
            yield from self._stored(part, own)
            if isinstance(part, cst.Expr) and isinstance(part.value, cst.Call) and not self._shows(part.value):
                if not (isinstance(part.value.func, cst.Attribute) and root(part.value.func) in own):
                    why = f"{text(part.value.func)}() is called for each batch, and what it leaves is no sum"
                    yield Trouble(part, why)
            elif isinstance(part, cst.Call):
                why = self._reaches_out(self._script, part, own)
                if why:
                    yield Trouble(part, why)
            if isinstance(part, cst.Call):
                what = self._changes(self._script, part, 0, set())
                if what:
                    yield Trouble(part, f"{text(part.func)}() {what} for each batch")

    def _reaches_out(self, script: Script, call: cst.Call, own: set[str]) -> str:
        """Return why the value of a library call depends on, or changes, what all batches have in common."""
        name = self._flow.qualified(script, call)
        if name in names.PYTHON_DRAWS or name in names.NUMPY_DRAWS or name.startswith("numpy.random.default_rng()."):
            return f"it draws ({name}), and ranks would go on with other numbers"
        func = call.func
        attribute = func.attr.value if isinstance(func, cst.Attribute) else ""
        takes = call.args[0].value if name == "next" and call.args else None
        if attribute == "__next__":
            takes = func.value  # type: ignore[attr-defined]
        if takes is not None and root(takes) not in own:
            return f"it takes from {script.tree.text(takes)} for each batch"
        if attribute in _PUTS and (not name or "()." in name) and root(func) not in own:
            return f"{script.tree.text(func)}() is called for each batch, and what it leaves is no sum"
        return ""

    def _stored(self, part: cst.CSTNode, own: set[str]) -> Iterator[Trouble]:
        targets: list[cst.CSTNode] = []
        if isinstance(part, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign)):
            targets = [part.target]
        for target in targets:
            for node in walk(target):
                if isinstance(node, (cst.Attribute, cst.Subscript)) and root(node) not in own:
                    text = self._script.tree.text(node)
                    yield Trouble(part, f"{text} is set for each batch")
                    break

    def _changes(self, script: Script, call: cst.Call, depth: int, seen: set[cst.CSTNode]) -> str:
        """Return what the functions of the program that a call enters do to others' things, or nothing.

        What a network's ``construct`` sets is its parameters, which evaluation leaves alone; what it adds to counts.
        """
        for home, function in self._flow.targets(script, call):
            if function in seen or depth > _MAX_DEPTH or not isinstance(function, cst.FunctionDef):
                continue
            seen.add(function)
            name = function.name.value
            bound = home.bindings.scopes[function].bindings if function in home.bindings.scopes else {}
            own = {n for n, bs in bound.items() if all(b.kind != "parameter" for b in bs)}
            own |= {"self"} if name == "__init__" else set()
            for part in parts(function.body):
                what = self._change(home, part, own, compiled=name == "construct")
                if not what and isinstance(part, cst.Call):
                    what = self._changes(home, part, depth + 1, seen)
                if what:
                    return what
        return ""

    def _change(self, home: Script, part: cst.CSTNode, own: set[str], *, compiled: bool) -> str:
        """Return what one part of a function does to others' things, or nothing."""
        if isinstance(part, (cst.Global, cst.Nonlocal)):
            return f"sets {home.tree.text(part)}"
        kinds = cst.AugAssign if compiled else (cst.AssignTarget, cst.AugAssign)
        if isinstance(part, kinds) and isinstance(part.target, (cst.Attribute, cst.Subscript)):
            target = part.target
            return "" if root(target) in own else f"sets {home.tree.text(target)}"
        if not isinstance(part, cst.Call):
            return ""
        func = part.func
        if isinstance(func, cst.Attribute) and func.attr.value in ("append", "extend", "add", "write"):
            if not compiled and root(func.value) not in own:
                return f"sets {home.tree.text(func.value)}"
        why = self._reaches_out(home, part, own) if not compiled else ""
        return f"has something in common with other batches ({why})" if why else ""


def _adds(binding: Binding) -> bool:
    """Whether a binding only adds to what a name held: ``n += x``, ``n -= x``, ``n = n + x``."""
    if binding.kind == "augment":
        operator = getattr(binding.node, "operator", None)
        return isinstance(operator, (cst.AddAssign, cst.SubtractAssign))
    value = binding.value
    return (
        binding.kind == "assign"
        and not binding.path
        and isinstance(value, cst.BinaryOperation)
        and isinstance(value.operator, cst.Add)
        and isinstance(value.left, cst.Name)
        and value.left.value == binding.name
    )


def peeks(loop: cst.For) -> bool:
    """Whether a loop surely ends in its first round, so that it only looks at a batch."""
    body = loop.body
    last = body.body[-1] if isinstance(body, cst.IndentedBlock) and body.body else None
    return isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], (cst.Break, cst.Return))


__all__ = ["Leaving", "Trouble", "peeks"]
