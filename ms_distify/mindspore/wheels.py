"""Reads released MindSpore wheels: the modules in them, and what a name in one of their modules means.

A wheel is read as a zip file and its Python sources are parsed, never imported: the wheels for Ascend cannot be
imported without the accelerator's libraries. What a name means is found by following imports, star imports and
``__all__`` the way Python would.
"""

from __future__ import annotations

import ast
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional, Union

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
AnyFunction = Union[ast.FunctionDef, ast.AsyncFunctionDef]


class CatalogError(Exception):
    """A wheel is not what the builder needs; the message says which and why."""


@dataclass(frozen=True)
class Definition:
    """A class or function, and the module whose names its body speaks of."""

    module: Module
    node: ast.ClassDef | AnyFunction

    @property
    def identity(self) -> tuple[str, str]:
        """What tells two definitions apart: their home and name."""
        return self.module.name, self.node.name


@dataclass(frozen=True)
class _Alias:
    """A name bound by ``from module import name``, or by ``import module`` (then ``name`` is empty)."""

    module: str
    name: str = ""


_Binding = Union[Definition, _Alias, ast.expr]
_Resolved = Optional[Union[Definition, "Module"]]


class Module:
    """One module of a wheel: its tree, what its top level binds, and its ``__all__`` (None without one)."""

    def __init__(self, wheel: Wheel, name: str, source: str, is_package: bool) -> None:
        self.wheel = wheel
        self.name = name
        self.package = name if is_package else name.rpartition(".")[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in MindSpore's docstrings are not our business
            self.tree = ast.parse(source)
        self.bindings: dict[str, _Binding] = {}
        self.all: list[str] | None = None
        self._not_followed: list[str] = []
        # A star import may come back to a module that is still being read. It then sees what is bound
        # so far, as it would in Python; so the wheel must know the module before its body is walked.
        wheel.modules[name] = self
        self._bind(self.tree.body)

    def exported(self) -> list[str]:
        """The names that ``from module import *`` binds."""
        for text in self._not_followed:  # of no interest in a module that nobody star-imports
            self.wheel.note(f"{self.name}: {text} for __all__ not followed")
        if self.all is not None:
            return self.all
        return [name for name in self.bindings if not name.startswith("_")]

    def _bind(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                self.bindings[statement.name] = Definition(self, statement)
            elif isinstance(statement, ast.ImportFrom):
                self._bind_from(statement)
            elif isinstance(statement, ast.Import):
                for item in statement.names:
                    bound = item.name if item.asname else item.name.partition(".")[0]
                    self.bindings[item.asname or bound] = _Alias(bound)
            elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                self._bind_assignment(statement)
            elif isinstance(statement, ast.Expr):
                self._extend_all(statement.value)
            elif isinstance(statement, ast.Delete):
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        self.bindings.pop(target.id, None)
            elif isinstance(statement, ast.If):
                # Which branch runs is not known here. The first is the usual one: it gets the last word.
                self._bind(statement.orelse)
                self._bind(statement.body)
            elif isinstance(statement, ast.Try):
                for handler in statement.handlers:
                    self._bind(handler.body)
                self._bind(statement.body)
                self._bind(statement.orelse)
                self._bind(statement.finalbody)
            elif isinstance(statement, ast.With):
                self._bind(statement.body)

    def _bind_from(self, statement: ast.ImportFrom) -> None:
        source = statement.module or ""
        if statement.level:
            parts = self.package.split(".")
            base = ".".join(parts[: len(parts) - statement.level + 1])
            source = f"{base}.{source}" if source else base
        for item in statement.names:
            if item.name == "*":
                starred = self.wheel.module(source)
                for name in starred.exported() if starred else ():
                    self.bindings[name] = _Alias(source, name)
            else:
                self.bindings[item.asname or item.name] = _Alias(source, item.name)

    def _bind_assignment(self, statement: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if statement.value is None:
            return
        for target in targets:
            if not isinstance(target, ast.Name):
                continue
            if target.id == "__all__":
                names = self._names(statement.value)
                self.all = (self.all or []) + names if isinstance(statement, ast.AugAssign) else names
            elif not isinstance(statement, ast.AugAssign):
                self.bindings[target.id] = statement.value

    def _extend_all(self, call: ast.expr) -> None:
        """``__all__.extend(...)`` and its relatives."""
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            return
        owner = call.func.value
        if not (isinstance(owner, ast.Name) and owner.id == "__all__") or self.all is None:
            return
        if call.func.attr == "extend":
            self.all = self.all + self._names(call.args[0])
        elif call.func.attr == "append":
            self.all = self.all + self._names(ast.List(elts=[call.args[0]], ctx=ast.Load()))
        elif call.func.attr == "remove":
            removed = self._names(ast.List(elts=[call.args[0]], ctx=ast.Load()))
            self.all = [name for name in self.all if name not in removed]
        elif call.func.attr != "sort":
            self._not_followed.append(call.func.attr)

    def _names(self, value: ast.expr) -> list[str]:
        """The strings of an expression that makes a list of names."""
        if isinstance(value, (ast.List, ast.Tuple)):
            names: list[str] = []
            for element in value.elts:
                if isinstance(element, ast.Constant) and isinstance(element.value, str):
                    names.append(element.value)
                elif isinstance(element, ast.Starred):
                    names.extend(self._names(element.value))
                else:
                    self._not_followed.append(ast.unparse(element))
            return names
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
            return self._names(value.left) + self._names(value.right)
        if isinstance(value, ast.Name):
            if value.id == "__all__":
                return list(self.all or [])
            bound = self.bindings.get(value.id)
            if isinstance(bound, ast.expr):
                return self._names(bound)
        elif isinstance(value, ast.ListComp) and ast.unparse(value.generators[0].iter) in (
            "dir()",
            "globals()",
        ):
            return [name for name in self.bindings if not name.startswith("_")]
        elif isinstance(value, ast.Attribute) and value.attr == "__all__":
            other = self.resolve(value.value)
            if isinstance(other, Module):
                return other.exported()
        self._not_followed.append(ast.unparse(value))
        return []

    def resolve(self, expression: ast.expr) -> _Resolved:
        """The definition or module an expression of this module's top level means."""
        if isinstance(expression, ast.Name):
            return self.lookup(expression.id)
        if isinstance(expression, ast.Attribute):
            owner = self.resolve(expression.value)
            return owner.lookup(expression.attr) if isinstance(owner, Module) else None
        if isinstance(expression, ast.Subscript):  # Generic[T] as a base class
            return self.resolve(expression.value)
        return None

    def is_abstract(self, base: ast.expr) -> bool:
        """Whether a base class is ``object`` or one of the standard library's without an ``__init__``."""
        name = base.value if isinstance(base, ast.Subscript) else base
        bound = self.bindings.get(name.id) if isinstance(name, ast.Name) else None
        if isinstance(bound, _Alias):
            return bound.module in ("abc", "collections.abc", "typing")
        return bound is None and ast.unparse(name) == "object"

    def lookup(self, name: str) -> _Resolved:
        """The definition or module that ``name`` is, as an attribute of this module."""
        seen: set[tuple[str, str]] = set()
        module, binding = self, self.bindings.get(name)
        while True:
            if binding is None or (module.name, name) in seen:
                # Bound to nothing else (or, by `from package import submodule` inside the package, to
                # itself): then it can only be a submodule, whose import binds it in its package.
                return self.wheel.module(f"{module.name}.{name}")
            seen.add((module.name, name))
            if isinstance(binding, Definition):
                return binding
            if isinstance(binding, ast.expr):
                return module.resolve(binding) if isinstance(binding, (ast.Name, ast.Attribute)) else None
            if not binding.name:
                return self.wheel.module(binding.module)
            source = self.wheel.module(binding.module)
            if source is None:
                return None
            module, name = source, binding.name
            binding = module.bindings.get(name)


class Wheel:
    """One release, read from its wheel."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.modules: dict[str, Module | None] = {}
        self._ancestries: dict[tuple[str, str], list[Definition]] = {}
        self.notes: list[str] = []
        try:
            self._archive = zipfile.ZipFile(path)
        except (OSError, zipfile.BadZipFile) as error:
            raise CatalogError(f"{path}: {error}") from error
        self._files = frozenset(self._archive.namelist())
        metadata = next((file for file in self._files if file.endswith(".dist-info/METADATA")), None)
        text = self._archive.read(metadata).decode("utf-8") if metadata else ""
        name = re.search(r"^Name: *(\S+)", text, re.MULTILINE)
        version = re.search(r"^Version: *(\S+)", text, re.MULTILINE)
        if not name or not version:
            raise CatalogError(f"{path}: no name and version in it; is it a wheel?")
        self.distribution = name.group(1)
        self.release = version.group(1)

    def module(self, name: str) -> Module | None:
        """The module ``name``, or None where the wheel holds no Python source for it."""
        if name not in self.modules:
            stem = name.replace(".", "/")
            for file, is_package in ((f"{stem}/__init__.py", True), (f"{stem}.py", False)):
                if file in self._files:
                    return Module(self, name, self._archive.read(file).decode("utf-8-sig"), is_package)
            self.modules[name] = None
        return self.modules[name]

    def note(self, text: str) -> None:
        """Remember what could not be followed; whoever rebuilds the catalog sees it."""
        if text not in self.notes:
            self.notes.append(text)

    def lookup(self, qualified: str) -> _Resolved:
        """What a dotted name of this release is."""
        module, _, name = qualified.rpartition(".")
        home = self.module(module)
        return home.lookup(name) if home else None

    def definitions(self, module: str) -> Iterator[tuple[str, Definition]]:
        """The classes and functions that can be had as ``module.name``, without the private ones."""
        home = self.module(module)
        for name in sorted(home.bindings) if home else ():
            found = home.lookup(name) if home and not name.startswith("_") else None
            if isinstance(found, Definition):
                yield name, found

    def ancestry(self, definition: Definition) -> list[Definition]:
        """A class and its bases in the order in which Python looks things up."""
        if definition.identity not in self._ancestries:
            self._ancestries[definition.identity] = self._linearize(definition, ())
        return self._ancestries[definition.identity]

    def _linearize(self, definition: Definition, above: tuple[tuple[str, str], ...]) -> list[Definition]:
        if definition.identity in above or not isinstance(definition.node, ast.ClassDef):
            return []
        above = (*above, definition.identity)
        found = (definition.module.resolve(base) for base in definition.node.bases)
        bases = [base for base in found if isinstance(base, Definition) and base.identity not in above]
        rows = [self._linearize(base, above) for base in bases]
        rows.append(bases)
        order = [definition]
        while any(rows):
            rows = [row for row in rows if row]
            tails = {entry.identity for row in rows for entry in row[1:]}
            head = next((row[0] for row in rows if row[0].identity not in tails), rows[0][0])
            order.append(head)
            rows = [[entry for entry in row if entry.identity != head.identity] for row in rows]
        return order

    def is_subclass(self, definition: Definition, roots: Iterable[str]) -> bool:
        """Whether a class is one of the roots or derives from one."""
        found = (self.lookup(root) for root in roots)
        wanted = {root.identity for root in found if isinstance(root, Definition)}
        return any(ancestor.identity in wanted for ancestor in self.ancestry(definition))
