"""The batches that train: the call that forms each, and what else reads its size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from ..mindspore import names
from ..reading.bindings import literal, parameters
from ..reading.flow import Edge
from ..reading.pipeline import batching, method_name
from ..reading.program import Program
from ..reading.ranks import RankNumbers
from ..reading.roles import Site, Use, argument
from ..reading.script import Script
from ..reading.tree import walk
from .helpers import calls_helper

BATCHES = frozenset({"batch", "padded_batch"})
Place = tuple[Script, cst.BaseExpression]


@dataclass(eq=False)
class Batch:
    """A call that forms the batches of a training.

    Attributes:
        script: its file.
        call: the call.
        size: the number of rows, None where ``*`` or ``**`` hides it.
        site: the constructor of a dataset that comes here.
        ways: for each training, the calls between it and ``call``, outermost first.
    """

    script: Script
    call: cst.Call
    size: cst.BaseExpression | None
    site: Site
    ways: list[tuple[Edge, ...]] = field(default_factory=list)


class Batches:
    """The batches of a program's training datasets.

    Attributes:
        formed: the calls that form them, by node: the last on each dataset's way.
        inner: calls that come before another on some way; they form the rows of the last.
        missing: trainings that no call forms batches for.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.numbers = RankNumbers(program.flow)
        self.formed: dict[cst.CSTNode, Batch] = {}
        self.inner: set[cst.CSTNode] = set()
        self.missing: list[tuple[Site, Use]] = []
        for site in program.roles.sites:
            for use in site.uses_as("train"):
                self._add(site, use)

    def _add(self, site: Site, use: Use) -> None:
        steps = [(s, n, way) for (s, n), way in zip(use.methods, use.ways) if method_name(s, n) in BATCHES]
        if not steps:
            self.missing.append((site, use))
            return
        script, call, way = steps[0]
        assert isinstance(call, cst.Call)
        told = batching(script, call)  # a loader of a library has its slots elsewhere
        size = told[0] if told is not None else argument(call, 0, "batch_size")
        batch = self.formed.setdefault(call, Batch(script, call, size, site))
        if way not in batch.ways:
            batch.ways.append(way)
        self.inner.update(node for _, node, _ in steps[1:])

    def divided(self, batch: Batch) -> bool:
        """Whether the size of a batch is divided by the number of ranks already."""
        if batch.size is None:
            return False
        return calls_helper("batch", batch.script, batch.size) or self.numbers.divided(batch.script, batch.size)

    @property
    def all_divided(self) -> bool:
        """Whether every training takes its part of a batch that is given for all ranks together."""
        return bool(self.formed) and not self.missing and all(map(self.divided, self.formed.values()))

    def callable_size(self, batch: Batch) -> bool:
        """Whether a size is a function that gives the size of each batch."""
        assert batch.size is not None
        return any(
            origin.kind in ("function", "class") or isinstance(origin.node, (cst.Lambda, cst.FunctionDef))
            for origin in self.program.flow.origins(batch.script, batch.size)
        )

    # -- who else reads a size -----------------------------------------------------------------------------------

    def readers(self, batch: Batch) -> Iterator[Place]:
        """Yield the other places that read the value which is the size of a batch, by its flow."""
        passed = list(self._passed(batch))
        sources = [(script, part) for script, node in passed for part in _names(node)]
        wanted = {key for script, part in sources for key in self._keys(script, part)}
        words, more = set(), {_word(part) for _, part in sources}
        known = {part for _, node in passed for part in walk(node)}
        found: dict[cst.CSTNode, Script] = {}
        while more and wanted:
            for script in self.program.scripts:
                for node in script.tree.nodes(cst.Name, cst.Attribute):
                    assert isinstance(node, (cst.Name, cst.Attribute))
                    if node not in known and _word(node) in more and _is_read(script, node):
                        if wanted & self._keys(script, node):
                            found[node] = script
            words |= more
            more = {word for node, script in found.items() for word in self._handed(script, node)} - words
        for node, script in found.items():
            if isinstance(node, cst.BaseExpression) and not self._harmless(script, node):
                yield script, node

    def same_numbers(self, batch: Batch) -> Iterator[tuple[Script, cst.BaseExpression, str]]:
        """Yield numbers equal to the size of a batch that a Cell of the program's is built with, for a "batch".

        Both are written out, so that only the name of the parameter, which is yielded too, tells that they belong together.
        """
        size = literal(batch.size) if batch.size is not None else ...
        if not isinstance(size, int):
            return
        for script in self.program.scripts:
            for call in script.bindings.calls:
                if not any(literal(arg.value) == size for arg in call.args) or not self.builds_cell(script, call):
                    continue
                for _, function in self.program.flow.targets(script, call):
                    for param in parameters(function):
                        value = self.program.flow.argument(script, call, function, param.name.value)
                        if (
                            isinstance(value, tuple)
                            and literal(value[1]) == size
                            and "batch" in param.name.value.lower()
                        ):
                            yield value[0], value[1], param.name.value

    def _handed(self, script: Script, node: cst.CSTNode) -> Iterator[str]:
        """Yield the parameters and variables that a value is given to as it is."""
        parent = script.tree.parent.get(node)
        call = script.tree.parent.get(parent) if isinstance(parent, cst.Arg) else None
        if isinstance(parent, cst.Assign):
            yield from (_word(target.target) for target in parent.targets)
        elif isinstance(call, cst.Call):
            for _, function in self.program.flow.targets(script, call):
                for param in parameters(function):
                    value = self.program.flow.argument(script, call, function, param.name.value)
                    if isinstance(value, tuple) and value[1] is node:
                        yield param.name.value

    def _passed(self, batch: Batch) -> Iterator[Place]:
        """Yield the expressions through which a size comes to a batch: its own, and the arguments of calls."""
        assert batch.size is not None
        flow = self.program.flow
        for way in batch.ways:
            script, node = batch.script, batch.size
            yield script, node
            for edge in reversed(way):
                if not isinstance(node, cst.Name) or node.value not in {
                    p.name.value for p in parameters(edge.function)
                }:
                    break
                value = flow.argument(edge.script, edge.call, edge.function, node.value)
                if not isinstance(value, tuple):
                    break
                script, node = value
                yield script, node

    def _keys(self, script: Script, node: cst.BaseExpression) -> set[object]:
        """Return what tells one value from another: where it comes from."""
        found: set[object] = set()
        for origin in self.program.flow.origins(script, node):
            if origin.kind == "unknown" and isinstance(origin.node, cst.Attribute):
                owner = origin.node.value
                for base in self.program.flow.origins(origin.script, owner):
                    found.add((origin.node.attr.value, base.node))
            else:
                found.add((origin.node, origin.selectors))
        return found

    def _harmless(self, script: Script, node: cst.CSTNode) -> bool:
        """Whether a value is only shown, handed on to a function that is looked at itself, or forms other batches."""
        below = node
        for parent in script.tree.ancestors(node):
            if isinstance(parent, cst.Call):
                name = self.program.flow.qualified(script, parent) or _called(parent)
                if (
                    name.rpartition(".")[2] in ("print", "info", "debug", "warning", "format")
                    or method_name(script, parent) in BATCHES
                ):
                    return True
                if calls_helper("batch", script, parent):
                    return True
                inside = [f for _, f in self.program.flow.targets(script, parent) if isinstance(f, cst.FunctionDef)]
                return bool(inside) and not self.builds_cell(script, parent)
            if isinstance(parent, cst.FormattedStringExpression):
                return True
            if isinstance(parent, cst.Assign) and parent.value is below and below is node:
                return True  # another name for it: who reads that is found by its flow
            if not isinstance(parent, (cst.Arg, cst.BaseExpression, cst.Assign)):
                return False
            below = parent
        return False

    def builds_cell(self, script: Script, node: cst.CSTNode) -> bool:
        """Whether a value goes into what a Cell is built from."""
        for call in [node, *script.tree.ancestors(node)]:
            if isinstance(call, cst.Call):
                return any(
                    names.is_cell(origin.qualified)
                    or (isinstance(origin.node, cst.ClassDef) and self._is_cell(origin.script, origin.node))
                    for origin in self.program.flow.called(script, call)
                )
        return False

    def _is_cell(self, script: Script, owner: cst.ClassDef) -> bool:
        return any(map(names.is_cell, self.program.flow.library_bases(script, owner)))


def _called(call: cst.Call) -> str:
    func = call.func
    return func.attr.value if isinstance(func, cst.Attribute) else getattr(func, "value", "")


def _names(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """Yield the names and attributes that an expression reads, the whole chain of each."""
    if isinstance(node, (cst.Name, cst.Attribute)):
        if literal(node) is ...:
            yield node
        return
    if isinstance(node, cst.Call):
        for arg in node.args:
            yield from _names(arg.value)
        return
    if isinstance(node, cst.BinaryOperation):
        yield from _names(node.left)
        yield from _names(node.right)


def _word(node: cst.BaseExpression) -> str:
    return node.attr.value if isinstance(node, cst.Attribute) else getattr(node, "value", "")


def _is_read(script: Script, node: cst.BaseExpression) -> bool:
    """Whether an expression is read: no target, keyword, parameter or part of a longer chain."""
    parent = script.tree.parent.get(node)
    if isinstance(parent, cst.Arg):
        return node is parent.value
    if isinstance(
        parent, (cst.AssignTarget, cst.Param, cst.AnnAssign, cst.AugAssign, cst.ImportAlias, cst.FunctionDef)
    ):
        return isinstance(parent, (cst.AnnAssign, cst.AugAssign)) and node is parent.value
    if isinstance(parent, cst.Attribute):
        return node is not parent.attr
    return True


__all__ = ["BATCHES", "Batch", "Batches"]
