"""What may run on rank 0 alone: statements that the rest of the program, and the other ranks, do not miss."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..reading.bindings import Binding
from ..reading.roles import body_of
from ..reading.script import Script
from ..reading.tree import walk
from .files import Files

# Methods that change the object they are called on.
_CHANGES = frozenset({"append", "extend", "insert", "update", "add", "pop", "setdefault", "remove", "clear", "popitem",
                      "add_argument", "set_defaults", "register"})  # fmt: skip
_LOOPS = (cst.For, cst.While)


def misses(files: Files, script: Script, *nodes: cst.CSTNode) -> str:
    """Return why ranks could not go without statements that rank 0 runs, or nothing."""
    used = _used_outside(script, nodes)
    if used:
        return f"{used} is used later"
    own = {binding.name for node in nodes for binding in _bound(script, node)}
    return next((reason for node in nodes for reason in [_misses(files, script, node, own)] if reason), "")


def _misses(files: Files, script: Script, node: cst.CSTNode, bound: set[str]) -> str:
    reason = files.needs_all(script, node)
    if reason:
        return reason
    for part in walk(node):
        if isinstance(part, (cst.Return, cst.Global, cst.Nonlocal, cst.Yield, cst.Await)):
            return "it leaves or changes what is around it"
        if isinstance(part, (cst.Break, cst.Continue)) and not _within(script, part, node):
            return "it leaves the loop around it"
    changed = _changed(script, node, bound)
    if changed:
        return f"it changes {changed}"
    made = {function for _, function in _entered(files, script, node)}
    for home, function in _entered(files, script, node):
        body = body_of(function)
        own = {binding.name for binding in _bound(home, function)}
        parameters = home.bindings.scopes[function].bindings if function in home.bindings.scopes else {}
        own -= {name for name, every in parameters.items() if any(b.kind == "parameter" for b in every)}
        owner = next((p for p in home.tree.ancestors(function) if isinstance(p, cst.ClassDef)), None)
        if owner is not None and _makes(made, owner):
            own.add("self")  # an object that rank 0 alone makes
        if any(isinstance(part, (cst.Global, cst.Nonlocal)) for part in walk(body)):
            return f"{_name(function)} sets what is outside of it"
        changed = _changed(home, body, own)
        if changed:
            return f"{_name(function)} changes {changed}"
    return ""


def _within(script: Script, node: cst.CSTNode, top: cst.CSTNode) -> bool:
    """Whether a loop that ``break`` in ``node`` ends lies in ``top``."""
    for parent in script.tree.ancestors(node):
        if isinstance(parent, _LOOPS):
            return True
        if parent is top:
            return False
    return False


def _bound(script: Script, node: cst.CSTNode) -> list[Binding]:
    start, end = script.tree.span(node)
    return [
        binding
        for scope in script.bindings.scopes.values()
        for every in scope.bindings.values()
        for binding in every
        if start <= binding.at < end
    ]


def _used_outside(script: Script, nodes: tuple[cst.CSTNode, ...]) -> str:
    """Return a name that is bound in some nodes and may be read outside of them."""
    spans = [script.tree.span(node) for node in nodes]
    found = [binding for node in nodes for binding in _bound(script, node)]
    names = {binding.name for binding in found}
    for part in script.tree.nodes(cst.Name):
        assert isinstance(part, cst.Name)
        at = script.tree.start(part)
        if part.value in names and not any(start <= at < end for start, end in spans):
            parent = script.tree.parent.get(part)
            if isinstance(parent, cst.Attribute) and part is parent.attr:
                continue
            if any(binding in found for binding in script.bindings.lookup(part)):
                return part.value
    return ""


def _changed(script: Script, node: cst.CSTNode, own: set[str]) -> str:
    """Return what a node changes that is not its own, or nothing."""
    for part in walk(node):
        targets: list[cst.BaseExpression] = []
        if isinstance(part, cst.Assign):
            targets = [target.target for target in part.targets]
        elif isinstance(part, (cst.AugAssign, cst.AnnAssign)):
            targets = [part.target]
        elif isinstance(part, cst.Call) and isinstance(part.func, cst.Attribute) and part.func.attr.value in _CHANGES:
            targets = [part.func]
        for target in _flat(targets):
            if isinstance(target, (cst.Attribute, cst.Subscript)):
                root: cst.BaseExpression = target
                while isinstance(root, (cst.Attribute, cst.Subscript, cst.Call)):
                    root = root.func if isinstance(root, cst.Call) else root.value
                module = isinstance(root, cst.Name) and _module(script, root)
                if isinstance(root, cst.Name) and root.value not in own and not (module and target is _called(part)):
                    return script.tree.text(target.value)
    return ""


def _called(node: cst.CSTNode) -> cst.BaseExpression | None:
    """Return a function of a module that is called: ``os.remove`` changes no object, ``sys.path.append`` does."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and isinstance(node.func.value, cst.Name):
        return node.func
    return None


def _module(script: Script, root: cst.Name) -> bool:
    """Whether a name is an import."""
    found = script.bindings.lookup(root)
    return bool(found) and all(binding.kind == "import" for binding in found)


def _flat(targets: list[cst.BaseExpression]) -> Iterator[cst.BaseExpression]:
    for target in targets:
        if isinstance(target, (cst.Tuple, cst.List)):
            yield from _flat([element.value for element in target.elements])
        else:
            yield target


def _entered(files: Files, script: Script, node: cst.CSTNode) -> list[tuple[Script, cst.CSTNode]]:
    found: dict[cst.CSTNode, Script] = {}
    for home, call in files.closure(script, node):
        for where, function in files.program.flow.targets(home, call):
            found[function] = where
    return [(home, function) for function, home in found.items()]


def _makes(made: set[cst.CSTNode], owner: cst.ClassDef) -> bool:
    return any(
        isinstance(part, cst.FunctionDef) and part.name.value == "__init__" and part in made
        for part in walk(owner.body)
    )


def _name(function: cst.CSTNode) -> str:
    name = getattr(getattr(function, "name", None), "value", "a lambda")
    return f"{name}()"


__all__ = ["misses"]
