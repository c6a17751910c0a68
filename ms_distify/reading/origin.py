"""What a walk backwards through a program ends in, and the calls it went into on the way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Union

import libcst as cst

from .bindings import Selector
from .script import Script

Selectors = tuple[Selector, ...]
Function = Union[cst.FunctionDef, cst.Lambda]
# A dataset method or function on a dataset's way, with its file.
Step = tuple[Script, cst.CSTNode]
ELEMENT: Selector = ("element", None)


@dataclass(frozen=True)
class Edge:
    """A call that the walk went into: at ``call`` (in ``script``) the program enters ``function``."""

    script: Script
    call: cst.Call
    home: Script
    function: Function


@dataclass(frozen=True)
class Part:
    """One of the parts that a ``split`` gives.

    Attributes:
        script: the file of ``call``.
        call: the ``split`` call.
        index: which part; None where that is not told.
        calls: the calls walked into on the way to it, outermost first.
    """

    script: Script
    call: cst.Call
    index: int | None
    calls: tuple[Edge, ...] = ()


@dataclass(frozen=True)
class Entry:
    """What a container is asked for, where the key under which it was put in is no literal.

    Attributes:
        script: the file of ``slot``.
        slot: the ``container[key]`` that is assigned to.
        key: the literal key that is asked for.
    """

    script: Script
    slot: cst.Subscript
    key: str


@dataclass(frozen=True)
class Origin:
    """Where a walk ended.

    Attributes:
        kind: "call" (of something outside the program), "external" (such a thing itself), "function",
            "class", "instance" (of a class of the program), "generator" (what calling a generator function
            gives), "module", "literal", "unknown".
        script: the file of ``node``.
        node: the expression or definition.
        qualified: for call and external: the dotted name, in the form of ``names.canonical``.
        calls: the calls walked into, outermost first.
        selectors: what was still to be taken out of the value, e.g. its elements.
        methods: dataset methods passed on the way back, last applied first.
        reason: for unknown: why the walk ended.
        parts: parts of ``split`` calls passed on the way back, last split first.
        entries: what containers are asked for on the way back, last asked first.
        partials: calls of ``functools.partial`` passed on the way back, outermost first; for functions.
        ways: for each of ``methods``, the calls walked into on the way to it, outermost first.
    """

    kind: str
    script: Script
    node: cst.CSTNode
    qualified: str = ""
    calls: tuple[Edge, ...] = ()
    selectors: Selectors = ()
    methods: tuple[Step, ...] = ()
    reason: str = ""
    parts: tuple[Part, ...] = ()
    entries: tuple[Entry, ...] = ()
    partials: tuple[tuple[Script, cst.Call], ...] = ()
    ways: tuple[tuple[Edge, ...], ...] = ()


@dataclass(frozen=True)
class At:
    """A state of the walk: the file, the calls gone into, what to take out of the value, what was passed."""

    script: Script
    calls: tuple[Edge, ...] = ()
    selectors: Selectors = ()
    methods: tuple[Step, ...] = ()
    parts: tuple[Part, ...] = ()
    entries: tuple[Entry, ...] = ()
    ways: tuple[tuple[Edge, ...], ...] = ()

    def through(self, node: cst.CSTNode) -> At:
        """Return the state behind a dataset method or function."""
        return replace(self, methods=(*self.methods, (self.script, node)), ways=(*self.ways, self.calls))

    def origin(self, kind: str, node: cst.CSTNode, qualified: str = "", reason: str = "") -> Origin:
        """Return the origin in which the walk ends here."""
        passed = (self.calls, self.selectors, self.methods, reason, self.parts, self.entries)
        return Origin(kind, self.script, node, qualified, *passed, ways=self.ways)

    def taking(self, *selectors: Selector) -> At:
        """Return the state with these selectors to take instead."""
        return replace(self, selectors=selectors)
