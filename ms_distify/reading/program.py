"""Everything that is read about one program, computed when first asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import libcst as cst

from ..mindspore import names, wrappers
from .bindings import literal
from .decisions import Decisions
from .differs import Differs
from .evaluations import Evaluations
from .flow import Flow
from .gradients import Gradients
from .many import ManyRanks
from .origin import Origin
from .project import Project
from .roles import Roles
from .script import Script
from .timeline import INIT, Timeline
from .tree import values, walk

_PRAGMA = re.compile(r"#\s*ms-distify:\s*([a-z]+)\s*(?:\[([A-Z0-9,\s]*)\])?", re.IGNORECASE)


class Program:
    """A started script with the local files it imports, and the facts about them.

    Attributes:
        sums_evaluations: whether evaluations are (to be) dealt over the ranks and summed, so that they are alike.
    """

    def __init__(self, entry: Script, named: frozenset[Path] = frozenset()) -> None:
        self.sums_evaluations = False
        self.entry = entry
        self.project = Project(entry, named)
        self._pragmas: dict[Script, dict[int, list[tuple[str, frozenset[str]]]]] = {}

    @cached_property
    def flow(self) -> Flow:
        """Backward walks over the program."""
        return Flow(self.project)

    @cached_property
    def roles(self) -> Roles:
        """Datasets and what consumes them."""
        return Roles(self.project, self.flow)

    @cached_property
    def timeline(self) -> Timeline:
        """What happens in which order."""
        return Timeline(self.project, self.flow, self.roles)

    @property
    def scripts(self) -> list[Script]:
        """The entry script and every local file it imports."""
        return self.project.scripts()

    @cached_property
    def trains(self) -> bool:
        """Whether the program trains: something consumes a dataset for training, or a step updates weights."""
        return any(sink.role == "train" for sink in self.roles.sinks) or bool(self.steps)

    @cached_property
    def steps(self) -> list[tuple[Script, cst.Call]]:
        """The calls that update weights."""
        return [
            (script, call)
            for script in self.scripts
            for call in script.bindings.calls
            if self.roles.is_step(script, call)
        ]

    def calls(self, *qualified: str) -> Iterator[tuple[Script, cst.Call, str]]:
        """Yield every call of some library functions, with the file and the canonical name."""
        return (found for found in self.library_calls if found[2] in qualified)

    @cached_property
    def library_calls(self) -> list[tuple[Script, cst.Call, str]]:
        """Every call of a library function; nearly every rule asks for some."""
        named = ((s, call, self.flow.qualified(s, call)) for s in self.scripts for call in s.bindings.calls)
        return [found for found in named if found[2]]

    @cached_property
    def gradients(self) -> Gradients:
        """Where gradients are taken by hand, and what applies them."""
        return Gradients(self.project, self.flow)

    @cached_property
    def differs(self) -> Differs:
        """What differs between ranks although their weights do not."""
        own = any(True for _ in self.normalised) and not (self.sums_evaluations and not self.evaluations.looked_at)
        return Differs(self.flow, self.roles, self.gradients, own_statistics=own)

    @property
    def normalised(self) -> Iterator[tuple[Script, cst.Call, str]]:
        """Every call that builds batch normalisation, or a network of mindcv's, as most of them have it."""
        for found in self.library_calls:
            if found[2] in names.BATCH_NORMS or wrappers.may_normalise(found[2]):
                yield found

    @cached_property
    def decisions(self) -> Decisions:
        """Which conditions come out differently on ranks."""
        return Decisions(self.flow, self.differs)

    @cached_property
    def evaluations(self) -> Evaluations:
        """The loops over batches that do not train."""
        return Evaluations(self.flow, self.roles)

    @cached_property
    def many(self) -> ManyRanks:
        """What conditions say on many ranks."""
        return ManyRanks(self)

    @cached_property
    def hand_updates(self) -> list[tuple[Script, cst.Call]]:
        """The calls that look like changing weights without an optimizer, by the name of what is called."""
        found = []
        for script in self.scripts:
            for call in script.bindings.calls:
                func = call.func.func if isinstance(call.func, cst.Call) else call.func
                name = func.attr.value if isinstance(func, cst.Attribute) else getattr(func, "value", "")
                if name in names.UPDATES or (isinstance(name, str) and name.startswith("Apply")):
                    found.append((script, call))
        return found

    def pragma(self, script: Script, node: cst.CSTNode, word: str) -> bool:
        """Whether a line of ``node`` carries ``# ms-distify: word``."""
        return any(name == word for name, _ in self._on(script, node))

    def accepted(self, script: Script, line: int, code: str) -> bool:
        """Whether ``# ms-distify: ignore[code]`` stands on a line."""
        return any(name == "ignore" and code in codes for name, codes in self._lines(script).get(line, ()))

    def mentions_rank(self, script: Script, node: cst.CSTNode) -> bool:
        """Whether a value depends on the rank: get_rank(), get_group_size() or the launcher's variables."""
        return bool(self._sources(script, node, names.RANK_CALLS, names.RANK_VARIABLES))

    def counts_ranks(self, script: Script, node: cst.CSTNode) -> bool:
        """Whether a value depends on how many ranks there are, and not on which one this is."""
        size = self._sources(script, node, names.RANK_CALLS & names.SIZE_SOURCES, names.SIZE_SOURCES)
        rank = (names.RANK_CALLS - names.SIZE_SOURCES, names.RANK_VARIABLES - names.SIZE_SOURCES)
        return bool(size) and not self._sources(script, node, *rank)

    def told(self, script: Script, call: cst.Call) -> bool:
        """Whether a call is told both which rank this is and how many there are."""
        rank = (names.RANK_CALLS - names.SIZE_SOURCES, names.RANK_VARIABLES - names.SIZE_SOURCES)
        size = (names.RANK_CALLS & names.SIZE_SOURCES, names.RANK_VARIABLES & names.SIZE_SOURCES)
        return all(
            any(self._sources(script, arg.value, calls, variables) for arg in call.args)
            for calls, variables in (rank, size)
        )

    def clock(self, script: Script, node: cst.CSTNode) -> str:
        """Return what time or chance a value is made of, or nothing."""
        return self._sources(script, node, names.VARYING_CALLS, frozenset())

    def varies(self, script: Script, node: cst.CSTNode) -> str:
        """Return what makes a value differ from process to process, or nothing."""
        return self._sources(script, node, names.VARYING_CALLS | {names.GET_RANK}, names.RANK_VARIABLES)

    def _sources(
        self,
        script: Script,
        node: cst.CSTNode,
        calls: frozenset[str],
        variables: frozenset[str],
        seen: set[cst.CSTNode] | None = None,
    ) -> str:
        """Return the first of some calls or environment variables that a value is made of, or nothing."""
        seen = set() if seen is None else seen
        if node in seen or len(seen) > 200:
            return ""
        seen.add(node)
        for part in values(node):
            if isinstance(part, cst.Call):
                name = self.flow.qualified(script, part)
                if name in calls:
                    return name
                if name in ("os.getenv", "os.environ.get") and part.args and literal(part.args[0].value) in variables:
                    return str(literal(part.args[0].value))
            elif isinstance(part, cst.Subscript):
                key = part.slice[0].slice
                if isinstance(key, cst.Index) and literal(key.value) in variables:
                    return str(literal(key.value))
            for origin in self._given(script, part, seen):
                if origin.kind in ("call", "unknown", "literal") and origin.node is not part:
                    found = self._sources(origin.script, origin.node, calls, variables, seen)
                    if found:
                        return found
        return ""

    def _given(self, script: Script, node: cst.CSTNode, seen: set[cst.CSTNode]) -> list[Origin]:
        """Return what a name, an attribute or a function of the program gives, one step back."""
        if isinstance(node, cst.Name):
            return self.flow.origins(script, node) if literal(node) is ... else []
        if isinstance(node, cst.Attribute):  # `config.rank`, set by `config.rank = get_rank_id()`
            found = self.flow.origins(script, node)
            sure = {
                origin.node
                for home, target, value, path in self.project.attribute_assignments(node.attr.value)
                if self._surely_set(home, target, value, seen)
                for origin in self.flow.origins(home, value, selectors=path)
            }
            return [origin for origin in found if origin.node in sure]
        if isinstance(node, cst.Call) and not node.args and self.flow.targets(script, node):
            return self.flow.origins(script, node)  # `get_rank_id()` of the program's own
        return []

    def _surely_set(
        self, script: Script, target: cst.Attribute, value: cst.BaseExpression, seen: set[cst.CSTNode]
    ) -> bool:
        """Whether an attribute gets a value on the ranks of a launched program, whatever a configuration says."""
        name, below = target.attr.value, script.tree.statement(target)
        if below not in self.timeline.begun or any(_reads(part, name) for part in walk(value)):
            return False
        inits = {event.node for event in self.timeline.of(INIT)}
        for parent in script.tree.ancestors(below):
            if isinstance(parent, (cst.FunctionDef, cst.Lambda)):
                return True
            if isinstance(parent, cst.If) and below is not parent.test:
                other = parent.orelse if below is parent.body else parent.body
                starts = any(part in inits for part in walk(below))
                both = other is not None and any(_sets(part, name) for part in walk(other))
                ranks = bool(self._sources(script, parent.test, names.RANK_CALLS, names.RANK_VARIABLES, seen))
                if not (starts or both or ranks):
                    return False
            below = parent
        return True

    def guarded_by_rank(self, script: Script, node: cst.CSTNode) -> bool:
        """Whether ``node`` runs only under a condition that depends on the rank."""
        below = node
        for parent in script.tree.ancestors(node):
            if isinstance(parent, (cst.If, cst.IfExp)) and below is not parent.test:
                if self.mentions_rank(script, parent.test):
                    return True
            if isinstance(parent, (cst.FunctionDef, cst.Lambda)):
                return False
            below = parent
        return False

    def dictionary_keys(self, script: Script, node: cst.BaseExpression) -> set[str] | None:
        """Return the keys of a dictionary that the program writes out; None if they cannot be known."""
        keys: set[str] = set()
        for origin in self.flow.origins(script, node):
            if not isinstance(origin.node, cst.Dict):
                return None
            for element in origin.node.elements:
                key = literal(element.key) if isinstance(element, cst.DictElement) else ...
                if not isinstance(key, str):
                    return None
                keys.add(key)
        return keys

    def _on(self, script: Script, node: cst.CSTNode) -> Iterator[tuple[str, frozenset[str]]]:
        start, end = script.tree.span(node)
        lines = self._lines(script)
        if lines:
            for line in range(script.source.line(start), script.source.line(max(start, end - 1)) + 1):
                yield from lines.get(line, ())

    def _lines(self, script: Script) -> dict[int, list[tuple[str, frozenset[str]]]]:
        found = self._pragmas.get(script)
        if found is None:
            found = self._pragmas[script] = {}
            text = script.source.text
            if "ms-distify:" in text:
                for match in _PRAGMA.finditer(text):
                    codes = frozenset(code.strip().upper() for code in (match.group(2) or "").split(","))
                    line = script.source.line(match.start())
                    found.setdefault(line, []).append((match.group(1).lower(), codes))
        return found


def _reads(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value == name


def _sets(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.AssignTarget) and _reads(node.target, name)
