"""Which dataset trains, which evaluates, and how that is known.

Roles come from where a dataset flows: the walk starts at what consumes it (``model.train``, a loop whose body
steps an optimizer, ``model.eval``) and goes back to the constructor. Names are not asked while the flow can
tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Union

import libcst as cst

from ..mindspore import names
from .flow import Edge, Flow, Origin
from .origin import Entry, Part
from .project import Project
from .script import Script
from .sinks import Sink, Sinks, argument
from .tree import children

# What tells datasets of one constructor apart: calls on the way, parts of splits, entries of containers.
Way = tuple[tuple[cst.CSTNode, Union[int, str, None]], ...]


@dataclass(frozen=True)
class Use:
    """One consumer that a dataset reaches.

    Attributes:
        role: "train", "eval" (a metric or a plain look at the rows), or "read" (rows looked at, nothing
            computed from them that the program could learn from).
        script: the file of the consumer.
        node: the consuming call or loop.
        how: what it is, for messages: "model.train at train.py:88".
        calls: the calls between the consumer and the constructor, outermost first.
        methods: the dataset methods between them, last applied first.
        parts: the parts of ``split`` calls between them, last split first.
        entries: what containers are asked for between them, last asked first.
        ways: for each of ``methods``, the calls between the consumer and it, outermost first.
    """

    role: str
    script: Script
    node: cst.CSTNode
    how: str
    calls: tuple[Edge, ...]
    methods: tuple[tuple[Script, cst.CSTNode], ...]
    parts: tuple[Part, ...] = ()
    entries: tuple[Entry, ...] = ()
    ways: tuple[tuple[Edge, ...], ...] = ()

    @property
    def way(self) -> Way:
        """What tells datasets of one constructor apart: the calls to it, and which parts and entries are taken."""
        return (
            *((edge.call, None) for edge in self.calls),
            *((part.call, part.index) for part in self.parts),
            *((entry.slot, entry.key) for entry in self.entries),
        )


@dataclass(eq=False)
class Site:
    """A dataset constructor of the program.

    Attributes:
        script: its file.
        call: the constructor call.
        name: the class of ``mindspore.dataset``.
        uses: the consumers it reaches.
    """

    script: Script
    call: cst.Call
    name: str
    uses: list[Use] = field(default_factory=list)

    def uses_as(self, role: str) -> list[Use]:
        """Return the uses in one role."""
        return [use for use in self.uses if use.role == role]


class Roles:
    """The dataset constructors and consumers of a program.

    Attributes:
        sites: the constructors.
        sinks: the consumers.
        lost: the consumers that a walk back from did not lead to a constructor, with the place where it
            ended.
    """

    def __init__(self, project: Project, flow: Flow) -> None:
        self.project = project
        self.flow = flow
        self._steps: dict[cst.CSTNode, bool] = {}
        self.lost: list[tuple[Sink, Origin]] = []
        self.sites = self._constructors()
        self.sinks = list(Sinks(project, flow, self).all())
        self._by_call: dict[cst.CSTNode, Site] = {site.call: site for site in self.sites}
        self._fed: set[cst.CSTNode] = set()  # consumers for training that a constructor reaches
        self._loops: set[cst.CSTNode] = {sink.node for sink in self.sinks if sink.selectors and sink.must}
        ends = [(sink, self._follow(sink)) for sink in self.sinks]
        for sink, lost in ends:
            self._lose(sink, lost)

    # -- constructors ----------------------------------------------------------------------------------------

    def _constructors(self) -> list[Site]:
        found = []
        for script in self.project.scripts():
            for call in script.bindings.calls:
                name = names.dataset_class(self.flow.qualified(script, call))
                if name is not None:
                    found.append(Site(script, call, name))
        return found

    # -- steps -----------------------------------------------------------------------------------------------

    def steps(self, script: Script, node: cst.CSTNode | Iterable[cst.CSTNode]) -> bool:
        """Whether running ``node`` (a block or body) updates weights, in it or in what it calls."""
        if not isinstance(node, cst.CSTNode):
            return any(self.steps(script, part) for part in node)
        known = self._steps.get(node)
        if known is not None:
            return known
        self._steps[node] = False
        found = any(
            self.is_step(script, call)
            or any(self.steps(home, body_of(f)) for home, f in self.flow.targets(script, call))
            for call in calls_in(node)
        )
        self._steps[node] = found
        return found

    def is_step(self, script: Script, call: cst.Call) -> bool:
        """Whether a call applies an optimizer or runs a train cell."""
        return any(
            (origin.kind == "call" and _is(origin.qualified))
            or (origin.kind == "external" and _applies(origin.qualified))
            or (origin.kind == "instance" and any(map(_is, self._bases(origin))))
            for origin in self.flow.called(script, call)
        )

    def _bases(self, origin: Origin) -> set[str]:
        assert isinstance(origin.node, cst.ClassDef)
        return self.flow.library_bases(origin.script, origin.node)

    # -- the way back ----------------------------------------------------------------------------------------

    def _follow(self, sink: Sink) -> list[Origin]:
        """Give the constructors that reach a sink their use, and return the ends that are none."""
        if sink.dataset is None:
            return [Origin("unknown", sink.script, sink.node, reason="it comes from * or ** arguments")]
        how = f"{sink.what} at {sink.script.where(sink.node)}"
        lost = []
        found = self.flow.origins(sink.script, sink.dataset, (), sink.selectors)
        for origin in found:
            site = self._by_call.get(origin.node)
            if site is None:
                lost.append(origin)
                continue
            passed = (origin.calls, origin.methods, origin.parts, origin.entries, origin.ways)
            site.uses.append(Use(sink.role, sink.script, sink.node, how, *passed))
            if sink.role == "train":
                self._fed.add(sink.node)
        if not found:
            lost.append(Origin("unknown", sink.script, sink.node, reason="it depends on itself alone"))
        return lost

    def _lose(self, sink: Sink, lost: list[Origin]) -> None:
        if not sink.must:
            return
        if sink.selectors:
            if sink.node in self._fed:  # by a dataset here and by something else there
                self.lost.extend((sink, origin) for origin in lost if origin.kind == "unknown")
                return
            # Of loops one in a nest is fed by a dataset: that over the epochs is not, and need not be.
            if self._is_fed(sink) or self._runs(sink.script, body_of(sink.node), self._loops, set()):
                return
            lost = lost[:1]
        self.lost.extend((sink, origin) for origin in lost)

    def _is_fed(self, sink: Sink) -> bool:
        """Whether a training loop, one around it or one that it runs consumes a dataset."""
        return (
            sink.node in self._fed
            or any(parent in self._fed for parent in sink.script.tree.ancestors(sink.node))
            or self._runs(sink.script, sink.node, self._fed, set())
            or self._run_by_fed(sink.script, sink.node, set())
        )

    def _runs(self, script: Script, node: cst.CSTNode, wanted: set[cst.CSTNode], seen: set[cst.CSTNode]) -> bool:
        """Whether one of some nodes is in ``node`` or in what it calls."""
        if node in seen:
            return False
        seen.add(node)
        for part in parts(node):
            if part in wanted:
                return True
            if isinstance(part, cst.Call):
                if isinstance(part.func, cst.Name) and any(
                    origin.node in wanted for origin in self.flow.origins(script, part.func)
                ):
                    return True  # what data_sink() gave
                for home, function in self.flow.targets(script, part):
                    if self._runs(home, body_of(function), wanted, seen):
                        return True
        return False

    def _run_by_fed(self, script: Script, node: cst.CSTNode, seen: set[cst.CSTNode]) -> bool:
        """Whether ``node`` runs in the body of a fed loop, through calls."""
        scope = script.bindings.scope_of(node).function()
        if scope is None or scope.node in seen:
            return False
        seen.add(scope.node)
        for home, call in self.flow.call_sites(scope.node):
            if any(parent in self._fed for parent in home.tree.ancestors(call)):
                return True
            if self._run_by_fed(home, call, seen):
                return True
        return False


def _is(qualified: str) -> bool:
    """Whether calling an instance of this class steps."""
    return names.is_optimizer(qualified) or names.is_train_cell(qualified) or qualified in names.BUILDS_TRAIN_CELL


def _applies(qualified: str) -> bool:
    owner, _, method = qualified.rpartition("().")
    return method in ("step", "construct") and names.is_optimizer(owner)


# Functions that give a train cell.


def parts(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield what running a block runs by itself, leaving out bodies of functions defined in it."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, (cst.FunctionDef, cst.Lambda, cst.ClassDef)) and current is not node:
            continue
        yield current
        stack.extend(children(current))


def calls_in(node: cst.CSTNode) -> Iterator[cst.Call]:
    """Yield the calls that running a block makes by itself, leaving out bodies of functions defined in it."""
    return (part for part in parts(node) if isinstance(part, cst.Call))


def body_of(node: cst.CSTNode) -> cst.CSTNode:
    """Return the body of a function, lambda or loop; anything else unchanged."""
    body = getattr(node, "body", None)
    return body if isinstance(body, cst.CSTNode) else node


__all__ = ["Roles", "Sink", "Site", "Use", "Way", "argument", "body_of", "calls_in"]
