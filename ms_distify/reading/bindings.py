"""Which assignment, import or definition a name refers to at the place where it is used.

A name is looked up as Python does (local, enclosing functions, module); within its own scope only the
bindings that can reach the use count, so that ``dataset = dataset.batch(8)`` and an import shadowed by a
parameter are told apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Union

import libcst as cst

from .expressions import FunctionNode, dotted, is_main_guard, literal, parameters
from .reaching import Reaching
from .tree import Tree, children

Selector = tuple[str, Union[int, str, None]]


@dataclass(frozen=True, eq=False)
class Binding:
    """One place where a name gets a value.

    Attributes:
        name: the bound name.
        kind: assign, augment, import, function, class, parameter, for, with, except, delete, match.
        node: the statement, parameter or definition that binds.
        value: the expression the value comes from, where there is one (a parameter's default, a loop's
            iterable).
        path: how the value is taken out of ``value``: ("item", index or key), ("element", None), ("enter",
            None), ("rest", None).
        scope: where the name lives.
        at: the character offset of the binding.
        qualified: for imports, the absolute dotted name ("mindspore.dataset"); relative ones keep leading
            dots.
    """

    name: str
    kind: str
    node: cst.CSTNode
    value: cst.BaseExpression | None
    path: tuple[Selector, ...]
    scope: Scope
    at: int
    qualified: str | None = None


@dataclass(eq=False)
class Scope:
    """A module, class, function, lambda or comprehension and the names bound in it."""

    kind: str
    node: cst.CSTNode
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    global_names: set[str] = field(default_factory=set)
    nonlocal_names: set[str] = field(default_factory=set)

    def module(self) -> Scope:
        """Return the module's scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def function(self) -> Scope | None:
        """Return the innermost function or lambda scope this is or stands in, None at module level."""
        scope: Scope | None = self
        while scope is not None and scope.kind not in ("function", "lambda"):
            scope = scope.parent
        return scope


_SCOPES = (
    cst.FunctionDef,
    cst.Lambda,
    cst.ClassDef,
    cst.ListComp,
    cst.SetComp,
    cst.DictComp,
    cst.GeneratorExp,
)
_KINDS = {cst.FunctionDef: "function", cst.Lambda: "lambda", cst.ClassDef: "class"}


class Bindings:
    """The scopes of one file.

    Attributes:
        module: the module's scope.
        calls: every call, in the order of the source.
        returns: the return expressions of each function.
        yields: the yields of each function; what has some is a generator.
        loops: every ``for``, of comprehensions too.
        attribute_assignments, item_assignments: what is assigned to ``x.name`` and ``x[key]``, and how it is
            taken out of the assigned expression.
        stars: star imports, as (import statement, qualified module name).
        names: every name used or bound anywhere (attribute names left out).
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.module = Scope("module", tree.module, None)
        self.scopes: dict[cst.CSTNode, Scope] = {tree.module: self.module}
        self.calls: list[cst.Call] = []
        self.returns: dict[cst.CSTNode, list[cst.BaseExpression]] = {}
        self.yields: dict[cst.CSTNode, list[cst.Yield]] = {}
        self.stars: list[tuple[cst.ImportFrom, str]] = []
        self.loops: list[cst.For | cst.CompFor] = []
        self.attribute_assignments: list[tuple[cst.Attribute, cst.BaseExpression, tuple[Selector, ...]]] = []
        self.item_assignments: list[tuple[cst.Subscript, cst.BaseExpression, tuple[Selector, ...]]] = []
        self.names: set[str] = set()
        self._visit_all(tree.module, self.module)

    # -- reading the tree once -------------------------------------------------------------------------------

    def _visit_all(self, root: cst.CSTNode, scope: Scope) -> None:
        stack: list[tuple[cst.CSTNode, Scope]] = [(root, scope)]
        while stack:
            node, scope = stack.pop()
            below = [(child, scope) for child in children(node)]
            if isinstance(node, _SCOPES):
                below = self._open(node, scope)
            self._bind(node, scope)
            stack.extend(reversed(below))

    def _open(self, node: cst.CSTNode, outer: Scope) -> list[tuple[cst.CSTNode, Scope]]:
        """Make the scope that ``node`` opens and say in which scope each of its parts is evaluated."""
        inner = Scope(_KINDS.get(type(node), "comprehension"), node, outer)
        self.scopes[node] = inner
        below: list[tuple[cst.CSTNode, Scope]] = []
        if isinstance(node, (cst.FunctionDef, cst.Lambda)):
            for part in children(node):
                if part is node.body:
                    below.append((part, inner))
                elif part is not node.params and not (isinstance(node, cst.FunctionDef) and part is node.name):
                    below.append((part, outer))
            for param in parameters(node):
                self._add(inner, param.name.value, "parameter", param, param.default)
                self.names.add(param.name.value)
                below.extend((part, outer) for part in (param.default, param.annotation) if part is not None)
        elif isinstance(node, cst.ClassDef):
            below = [(part, inner if part is node.body else outer) for part in children(node) if part is not node.name]
        else:
            # Only the first iterable of a comprehension is evaluated outside; treating its whole `for` so
            # keeps the targets inside and costs nothing else.
            below = [(part, inner) for part in children(node)]
        return below

    def _bind(self, node: cst.CSTNode, scope: Scope) -> None:
        """Record what ``node`` itself binds, calls, returns or declares."""
        if isinstance(node, cst.Name):
            self.names.add(node.value)
        elif isinstance(node, cst.Call):
            self.calls.append(node)
        elif isinstance(node, cst.Assign):
            for target in node.targets:
                self._target(scope, target.target, "assign", node, node.value, ())
        elif isinstance(node, cst.AnnAssign):
            if node.value is not None:
                self._target(scope, node.target, "assign", node, node.value, ())
        elif isinstance(node, cst.AugAssign):
            self._target(scope, node.target, "augment", node, node.value, ())
        elif isinstance(node, cst.NamedExpr):
            home = scope
            while home.kind == "comprehension" and home.parent is not None:
                home = home.parent
            self._target(home, node.target, "assign", node, node.value, ())
        elif isinstance(node, (cst.For, cst.CompFor)):
            self.loops.append(node)
            self._target(scope, node.target, "for", node, node.iter, (("element", None),))
        elif isinstance(node, cst.WithItem):
            if node.asname is not None:
                self._target(scope, node.asname.name, "with", node, node.item, (("enter", None),))
        elif isinstance(node, cst.Return):
            function = scope.function()
            if function is not None and node.value is not None:
                self.returns.setdefault(function.node, []).append(node.value)
        elif isinstance(node, cst.Yield):
            function = scope.function()
            if function is not None:
                self.yields.setdefault(function.node, []).append(node)
        elif isinstance(node, (cst.Import, cst.ImportFrom)):
            self._imports(scope, node)
        elif isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            kind = "function" if isinstance(node, cst.FunctionDef) else "class"
            self._add(scope, node.name.value, kind, node, None)
            self.names.add(node.name.value)
        elif isinstance(node, cst.ExceptHandler):
            if node.name is not None:
                self._target(scope, node.name.name, "except", node, None, ())
        elif isinstance(node, cst.Global):
            scope.global_names.update(item.name.value for item in node.names)
        elif isinstance(node, cst.Nonlocal):
            scope.nonlocal_names.update(item.name.value for item in node.names)
        elif isinstance(node, cst.Del):
            deleted = node.target
            for item in [e.value for e in deleted.elements] if isinstance(deleted, cst.Tuple) else [deleted]:
                if isinstance(item, cst.Name):
                    self._add(scope, item.value, "delete", node, None)
        elif isinstance(node, (cst.MatchAs, cst.MatchStar)) and node.name is not None:
            self._add(scope, node.name.value, "match", node, None)

    def _target(
        self,
        scope: Scope,
        target: cst.CSTNode,
        kind: str,
        node: cst.CSTNode,
        value: cst.BaseExpression | None,
        path: tuple[Selector, ...],
    ) -> None:
        if isinstance(target, cst.Name):
            self._add(scope, target.value, kind, node, value, path, at=target)
        elif isinstance(target, (cst.Tuple, cst.List)):
            starred = False
            for index, element in enumerate(target.elements):
                starred = starred or isinstance(element, cst.StarredElement)
                step: Selector = ("rest", None) if starred else ("item", index)
                self._target(scope, element.value, kind, node, value, (*path, step))
        elif isinstance(target, cst.StarredElement):
            self._target(scope, target.value, kind, node, value, (*path, ("rest", None)))
        elif isinstance(target, cst.Attribute) and value is not None:
            self.attribute_assignments.append((target, value, path))
        elif isinstance(target, cst.Subscript) and value is not None:
            self.item_assignments.append((target, value, path))

    def _add(
        self,
        scope: Scope,
        name: str,
        kind: str,
        node: cst.CSTNode,
        value: cst.BaseExpression | None,
        path: tuple[Selector, ...] = (),
        *,
        at: cst.CSTNode | None = None,
        qualified: str | None = None,
    ) -> None:
        home = scope
        if name in scope.global_names:
            home = scope.module()
        elif name in scope.nonlocal_names and scope.parent is not None:
            home = scope.parent
        start = self.tree.start(at if at is not None else node)
        binding = Binding(name, kind, node, value, path, home, start, qualified)
        home.bindings.setdefault(name, []).append(binding)

    def _imports(self, scope: Scope, node: cst.Import | cst.ImportFrom) -> None:
        if isinstance(node, cst.Import):
            for alias in node.names:
                full = dotted(alias.name) or ""
                bound = alias.asname.name if alias.asname is not None else None
                if isinstance(bound, cst.Name):
                    self._add(scope, bound.value, "import", node, None, at=bound, qualified=full)
                else:
                    top = full.partition(".")[0]
                    self._add(scope, top, "import", node, None, at=alias.name, qualified=top)
            return
        module = "." * len(node.relative) + (dotted(node.module) or "" if node.module is not None else "")
        if isinstance(node.names, cst.ImportStar):
            self.stars.append((node, module))
            return
        for alias in node.names:
            full = f"{module}.{dotted(alias.name)}" if module.strip(".") else f"{module}{dotted(alias.name)}"
            local = alias.asname.name if alias.asname is not None else alias.name
            if isinstance(local, cst.Name):
                self._add(scope, local.value, "import", node, None, at=local, qualified=full)

    def leave_out_main(self) -> None:
        """Forget the calls, loops and assignments under ``if __name__ == "__main__":``, for a file that is imported."""
        spans = [
            self.tree.span(node.body)
            for node in self.tree.module.body
            if isinstance(node, cst.If) and is_main_guard(node)
        ]

        def runs(node: cst.CSTNode) -> bool:
            return not any(start <= self.tree.start(node) < end for start, end in spans)

        if spans:
            self.calls = [call for call in self.calls if runs(call)]
            self.loops = [loop for loop in self.loops if runs(loop)]
            self.attribute_assignments = [item for item in self.attribute_assignments if runs(item[0])]
            self.item_assignments = [item for item in self.item_assignments if runs(item[0])]

    # -- answering -------------------------------------------------------------------------------------------

    def scope_of(self, node: cst.CSTNode) -> Scope:
        """Return the scope in which ``node`` is evaluated: for a default or decorator the outer one."""
        below = node
        for parent in self.tree.ancestors(node):
            scope = self.scopes.get(parent)
            if scope is not None:
                if isinstance(parent, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
                    if below is parent.body:
                        return scope
                elif isinstance(parent, cst.Module) or not self._first_iterable(parent, node):
                    return scope
            below = parent
        return self.module

    def _first_iterable(self, comprehension: cst.CSTNode, node: cst.CSTNode) -> bool:
        first = getattr(comprehension, "for_in", None)
        if first is None:
            return False
        start, end = self.tree.span(first.iter)
        return start <= self.tree.start(node) < end

    def lookup(self, name: cst.Name) -> list[Binding]:
        """Return the bindings that a use of ``name`` can see; empty for built-ins and unknown names."""
        scope: Scope | None = self.scope_of(name)
        own = scope
        while scope is not None:
            visible = scope is own or scope.kind != "class"
            if visible and name.value in scope.global_names:
                scope = scope.module()
                return scope.bindings.get(name.value, [])
            if visible and name.value in scope.bindings:
                found = scope.bindings[name.value]
                if scope is own or (own is not None and own.kind == "comprehension" and _encloses(scope, own)):
                    return self.reaching(name, scope)
                return found
            scope = scope.parent
        return []

    def reaching(self, node: cst.CSTNode, scope: Scope, name: str | None = None) -> list[Binding]:
        """Return the bindings of a name of ``scope`` in force when ``node`` is evaluated.

        Args:
            node: the place of use; the name itself unless ``name`` is given.
            scope: the scope the name lives in; ``node`` stands in it, not in a function below it.
            name: the name, where ``node`` is not that name.
        """
        key = name if name is not None else getattr(node, "value", "")
        every = scope.bindings.get(key, [])
        if len(every) == 1:
            return every
        return Reaching(self.tree, scope, every).before(node)

    def global_bindings(self, name: str) -> list[Binding]:
        """Return every module-level binding of a name."""
        return self.module.bindings.get(name, [])


def _encloses(scope: Scope, inner: Scope) -> bool:
    """Whether only comprehensions lie between ``scope`` and ``inner``, so that flow order counts."""
    while inner is not scope:
        if inner.kind != "comprehension" or inner.parent is None:
            return False
        inner = inner.parent
    return True


__all__ = ["Binding", "Bindings", "FunctionNode", "Scope", "Selector", "dotted", "literal", "parameters"]
