"""How rank and size reach a dataset constructor: as variables in sight, or from call to call."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Optional

import libcst as cst

from ..model import AddKeywords, AddParameters, Edit, Replace
from ..reading.bindings import literal, parameters
from ..reading.flow import Edge
from ..reading.program import Program
from ..reading.roles import Site, Use
from ..reading.script import Script
from .startup import Startup

SIZE_PARAMETER, RANK_PARAMETER = "num_shards", "shard_id"
# What a call passes for size and rank.
Given = tuple[Optional[cst.BaseExpression], Optional[cst.BaseExpression]]
# What stands for "all rows, on one card" where someone wrote it out.
_ONE_CARD = (None, 0, 1)


class CannotReachError(Exception):
    """Rank and size cannot be brought to a place; the message says where the way ends."""


class _ConflictError(Exception):
    """A call would have to pass two different things; the message says where."""


@dataclass
class Supply:
    """The expressions for size and rank at a constructor, and the edits that bring them there.

    Attributes:
        size: the expression for ``num_shards``.
        rank: the expression for ``shard_id``.
        edits: parameters and arguments added on the way.
        through: the functions that gained parameters.
    """

    size: str
    rank: str
    edits: list[Edit] = field(default_factory=list)
    through: list[str] = field(default_factory=list)

    def join(self, other: Supply) -> None:
        """Take in the edits of another way to the same place."""
        self.edits.extend(edit for edit in other.edits if edit not in self.edits)
        self.through.extend(name for name in other.through if name not in self.through)


@dataclass(frozen=True)
class Carriers:
    """The parameters under which size and rank come into a function."""

    size: str
    rank: str


class Shards:
    """Brings rank and size to the constructors that train."""

    def __init__(self, program: Program, startup: Startup) -> None:
        self.program, self.startup = program, startup
        self._training = {
            edge.call for site in program.roles.sites for use in site.uses_as("train") for edge in use.calls
        }
        self._given: dict[tuple[cst.CSTNode, str], str] = {}
        self._all_the_way = False

    def supply(self, site: Site, given: Given = (None, None)) -> Supply:
        """Return what to pass to the constructor of a training dataset.

        Args:
            site: the constructor.
            given: what it passes for ``num_shards`` and ``shard_id`` now, e.g. parameters that nobody fills.

        Raises:
            CannotReachError: somewhere on the way nothing can be passed on.
        """
        ways = [use.calls for use in site.uses_as("train")] or [()]
        supply = self.supply_at(site.script, site.call, ways, given)
        self._keep_numbers(site.script, supply, given, ways[0])
        return supply

    def supply_at(
        self, script: Script, call: cst.Call, ways: list[tuple[Edge, ...]], given: Given = (None, None)
    ) -> Supply:
        """Return what rank and size are called at any call on the way of a training dataset.

        Args:
            script: the file of ``call``.
            call: the call.
            ways: for each training, the calls between it and ``call``, outermost first.
            given: what the call passes for size and rank now.

        Raises:
            CannotReachError: somewhere on the way nothing can be passed on.
        """
        try:
            return self._agreed(self._supply(script, call, ways, given))
        except _ConflictError:
            self._all_the_way = True  # two ways meet in one call, and one of them must pass through it
        try:
            return self._agreed(self._supply(script, call, ways, given))
        except _ConflictError as conflict:
            raise CannotReachError(f"two ways that need different ranks meet at {conflict}") from None
        finally:
            self._all_the_way = False

    def supply_step(
        self, script: Script, call: cst.Call, ways: list[tuple[Edge, ...]], given: Given = (None, None)
    ) -> Supply:
        """Return what size and rank are called at a dataset method on the way of a training dataset.

        Args:
            script: the file of ``call``.
            call: the call of the method.
            ways: for each training, the calls between it and ``call``, outermost first.
            given: what the constructor in the same function passes for size and rank.

        Raises:
            CannotReachError: somewhere on the way nothing can be passed on.
        """
        supply = self.supply_at(script, call, ways, given)
        self._keep_numbers(script, supply, given, ways[0])
        return supply

    def fill(self, site: Site, given: Given) -> Supply:
        """Pass rank and size through the parameters that the constructor's function has for them, and nobody fills.

        Args:
            site: the constructor.
            given: the parameters for size and rank, as names.

        Raises:
            CannotReachError: somewhere on the way nothing can be passed on.
        """
        ways = [use.calls for use in site.uses_as("train")]
        if not ways or not all(ways):
            raise CannotReachError("no call could pass rank and size")
        try:
            supply = self._agreed(self._supply(site.script, site.call, ways, given, fill=True))
        except _ConflictError as conflict:
            raise CannotReachError(f"two ways that need different ranks meet at {conflict}") from None
        self._keep_numbers(site.script, supply, given, ways[0])
        return supply

    def _keep_numbers(self, script: Script, supply: Supply, given: Given, way: tuple[Edge, ...]) -> None:
        """Where functions on the way take 1 and 0 for one card, they do not get our None."""
        numbers = given[0] is not None and self.program.flow.constant(script, given[0], way) == 1
        if numbers and self.startup.rank_names.own:
            supply.edits = [self._as_number(edit) for edit in supply.edits]

    def _as_number(self, edit: Edit) -> Edit:
        known = self.startup.rank_names
        texts = {known.size: f"{known.size} or 1", known.rank: f"{known.rank} or 0"}
        if isinstance(edit, AddKeywords):
            return replace(edit, keywords=tuple((name, texts.get(text, text)) for name, text in edit.keywords))
        if isinstance(edit, Replace):
            return replace(edit, text=texts.get(edit.text, edit.text))
        return edit

    def _supply(
        self, script: Script, call: cst.Call, ways: list[tuple[Edge, ...]], given: Given, *, fill: bool = False
    ) -> Supply:
        direct = not fill and all(self._in_sight(script, call, edges) for edges in ways)
        result: Supply | None = None
        for edges in ways:
            found = self._bring(script, call, edges, given, direct=direct)
            if result is None:
                result = found
            elif (result.size, result.rank) != (found.size, found.rank):
                raise _ConflictError(script.where(call))
            else:
                result.join(found)
        assert result is not None
        return result

    def _agreed(self, supply: Supply) -> Supply:
        """Check that no call is to pass two different things for one parameter."""
        given: dict[tuple[cst.CSTNode, str], str] = {}
        for edit in supply.edits:
            if isinstance(edit, AddKeywords):
                items: list[tuple[tuple[cst.CSTNode, str], str]]
                items = [((edit.call, name), text) for name, text in edit.keywords]
            elif isinstance(edit, Replace):
                items = [((edit.node, ""), edit.text)]
            else:
                continue
            for key, text in items:
                if given.setdefault(key, text) != text or self._given.get(key, text) != text:
                    raise _ConflictError(edit.script.where(key[0]))
        self._given.update(given)
        return supply

    def _in_sight(self, script: Script, node: cst.Call, edges: tuple[Edge, ...]) -> bool:
        if edges and self._all_the_way:
            return False
        return self.startup.visible(script, node) and all(self._only_trains(edge) for edge in edges)

    def _bring(
        self,
        script: Script,
        node: cst.Call,
        edges: tuple[Edge, ...],
        given: Given,
        *,
        direct: bool = False,
        depth: int = 0,
    ) -> Supply:
        names = self.startup.rank_names
        if direct or (depth and self._in_sight(script, node, edges)):
            return Supply(names.size, names.rank)
        function = self._enclosing(script, node)
        if function is None or depth > 20:
            raise CannotReachError(
                f"rank and size are not known at {script.where(node)}, before or outside the start-up"
            )
        carriers = self._carriers(script, function, given)
        supply = Supply(
            carriers.size, carriers.rank, self._parameters(script, function, carriers), [function.name.value]
        )
        for home, call, rest in self._entries(script, function, edges):
            supply.join(self._pass(home, call, rest, function, carriers, depth))
        return supply

    def _entries(
        self, script: Script, function: cst.FunctionDef, edges: tuple[Edge, ...]
    ) -> list[tuple[Script, cst.Call, tuple[Edge, ...]]]:
        """Return the calls through which rank and size come into a function, and what lies around each."""
        name, where = function.name.value, script.where(function)
        if edges:
            if edges[-1].function is not function:
                raise CannotReachError(f"{name} at {where} is not what the program calls")
            return [(edges[-1].script, edges[-1].call, edges[:-1])]
        sites: list[tuple[Script, cst.Call, tuple[Edge, ...]]]
        sites = [(home, call, ()) for home, call in self.program.flow.call_sites(function)]
        if not sites:
            raise CannotReachError(f"no call of {name} ({where}) is found")
        return sites

    def _pass(
        self,
        home: Script,
        call: cst.Call,
        rest: tuple[Edge, ...],
        function: cst.FunctionDef,
        carriers: Carriers,
        depth: int,
    ) -> Supply:
        """Let one call pass rank and size to a function."""
        flow = self.program.flow
        passed = [flow.argument(home, call, function, name) for name in (carriers.size, carriers.rank)]
        if any(value is ... for value in passed) and carriers.size in {p.name.value for p in parameters(function)}:
            raise CannotReachError(f"the call at {home.where(call)} hides its arguments in * or **")
        values = [value[1] if isinstance(value, tuple) else None for value in passed]
        if any(isinstance(value, tuple) and value[0] is not home for value in passed):
            raise CannotReachError(f"the call at {home.where(call)} passes on what a partial in another file gives")
        supply = self._bring(home, call, rest, (values[0], values[1]), depth=depth + 1)
        supply.edits.extend(self._others(home, call, function, carriers))
        supply.edits.extend(
            give(home, call, (carriers.size, values[0], supply.size), (carriers.rank, values[1], supply.rank))
        )
        return supply

    def _others(self, home: Script, call: cst.Call, function: cst.FunctionDef, carriers: Carriers) -> list[Edit]:
        """Whatever else a call can enter (an override, another function) must take the new arguments too."""
        edits: list[Edit] = []
        for script, other in self.program.flow.targets(home, call):
            if other is function:
                continue
            if not isinstance(other, cst.FunctionDef):
                raise CannotReachError(f"the call at {home.where(call)} can enter a lambda as well")
            edits.extend(self._parameters(script, other, carriers))
        for origin in self.program.flow.called(home, call):
            if origin.kind in ("external", "call"):
                raise CannotReachError(f"the call at {home.where(call)} can enter {origin.qualified} as well")
        return edits

    def _carriers(
        self,
        script: Script,
        function: cst.FunctionDef,
        given: Given,
    ) -> Carriers:
        """Return the parameters that carry size and rank into a function: its own, or new ones."""
        found = [
            value.value
            for value in given
            if isinstance(value, cst.Name)
            and any(b.kind == "parameter" and b.scope.node is function for b in script.bindings.lookup(value))
        ]
        return Carriers(*found) if len(found) == 2 else Carriers(SIZE_PARAMETER, RANK_PARAMETER)

    def _parameters(self, script: Script, function: cst.FunctionDef, carriers: Carriers) -> list[Edit]:
        """Return the edits that give a function the parameters it lacks."""
        have = {param.name.value for param in parameters(function)}
        missing = tuple(name for name in (carriers.size, carriers.rank) if name not in have)
        used = script.bindings.scopes[function].bindings
        for name in missing:
            if name in used:
                raise CannotReachError(f"{function.name.value} at {script.where(function)} uses the name {name}")
        return [AddParameters(script, function, missing)] if missing else []

    def _only_trains(self, edge: Edge) -> bool:
        """Whether every call that enters a function builds training data, and nothing else."""
        sites = self.program.flow.call_sites(edge.function)
        return bool(sites) and all(call in self._training and not self._evaluates(call) for _, call in sites)

    def _evaluates(self, call: cst.Call) -> bool:
        """Whether what a call builds also reaches an evaluation by a different way through the same call."""
        for site in self.program.roles.sites:
            through = [use for use in site.uses if _through(use, call)]
            trains = {_way(use) for use in through if use.role == "train"}
            if any(use.role != "train" and _way(use) not in trains for use in through):
                return True
        return False

    def _enclosing(self, script: Script, node: cst.CSTNode) -> cst.FunctionDef | None:
        scope = script.bindings.scope_of(node).function()
        while scope is not None and not isinstance(scope.node, cst.FunctionDef):
            scope = scope.parent.function() if scope.parent is not None else None
        return scope.node if scope is not None and isinstance(scope.node, cst.FunctionDef) else None


def give(script: Script, call: cst.Call, *items: tuple[str, cst.BaseExpression | None, str]) -> list[Edit]:
    """Return the edits that make a call pass values: (parameter, what it passes now, what it shall pass)."""
    edits: list[Edit] = []
    added = []
    for name, now, text in items:
        if now is None:
            added.append((name, text))
        elif script.tree.text(now) != text:
            if literal(now) not in _ONE_CARD and not isinstance(now, cst.Name):
                raise CannotReachError(f"{script.tree.text(now)} is passed for {name} at {script.where(call)}")
            edits.append(Replace(script, now, text))
    if added:
        edits.append(AddKeywords(script, call, tuple(added)))
    return edits


def _through(use: Use, call: cst.Call) -> bool:
    return any(edge.call is call for edge in use.calls)


def _way(use: Use) -> tuple[cst.Call, ...]:
    return tuple(edge.call for edge in use.calls)
