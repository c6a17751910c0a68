"""How rank and size reach a dataset constructor: as variables in sight, or as parameters from call to call."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from ..model import AddKeywords, AddParameters, Edit
from ..reading.bindings import parameters
from ..reading.flow import Edge
from ..reading.program import Program
from ..reading.roles import Site
from ..reading.script import Script
from .startup import Startup

SIZE_PARAMETER, RANK_PARAMETER = "num_shards", "shard_id"


class CannotReach(Exception):
    """Rank and size cannot be brought to a place; the message says where the way ends."""


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


class Shards:
    """Brings rank and size to the constructors that train."""

    def __init__(self, program: Program, startup: Startup) -> None:
        self.program, self.startup = program, startup
        self._training = {
            edge.call for site in program.roles.sites for use in site.uses_as("train") for edge in use.calls
        }

    def supply(self, site: Site) -> Supply:
        """Return what to pass to the constructor of a training dataset.

        Raises:
            CannotReach: somewhere on the way nothing can be passed on.
        """
        result: Supply | None = None
        for edges in [use.calls for use in site.uses_as("train")] or [()]:
            found = self._bring(site.script, site.call, edges)
            if result is None:
                result = found
            else:
                result.edits.extend(edit for edit in found.edits if edit not in result.edits)
                result.through.extend(name for name in found.through if name not in result.through)
        assert result is not None
        return result

    def _bring(self, script: Script, node: cst.Call, edges: tuple[Edge, ...], depth: int = 0) -> Supply:
        names = self.startup.rank_names
        if self.startup.visible(script, node) and all(self._only_trains(edge) for edge in edges):
            return Supply(names.size, names.rank)
        function = self._enclosing(script, node)
        if function is None or depth > 20:
            raise CannotReach(f"rank and size are not known at {script.where(node)}, before or outside the start-up")
        size, rank, edit = self._parameters(script, function)
        sites: list[tuple[Script, cst.Call, tuple[Edge, ...]]]
        if edges:
            if edges[-1].function is not function:
                raise CannotReach(f"{function.name.value} at {script.where(function)} is not what the program calls")
            sites = [(edges[-1].script, edges[-1].call, edges[:-1])]
        else:
            sites = [(home, call, ()) for home, call in self.program.flow.call_sites(function)]
            if not sites:
                raise CannotReach(f"no call of {function.name.value} ({script.where(function)}) is found")
        supply = Supply(size, rank, [edit] if edit is not None else [], [function.name.value])
        for home, call, rest in sites:
            outer = self._bring(home, call, rest, depth + 1)
            supply.edits.extend(outer.edits)
            supply.through.extend(outer.through)
            passed = tuple(
                (name, value)
                for name, value in ((size, outer.size), (rank, outer.rank))
                if not any(arg.keyword is not None and arg.keyword.value == name for arg in call.args)
            )
            if passed:
                supply.edits.append(AddKeywords(home, call, passed))
        return supply

    def _parameters(self, script: Script, function: cst.FunctionDef) -> tuple[str, str, Edit | None]:
        """Return the parameter names that carry size and rank into a function, and the edit that adds them."""
        have = {param.name.value for param in parameters(function)}
        if SIZE_PARAMETER in have and RANK_PARAMETER in have:
            return SIZE_PARAMETER, RANK_PARAMETER, None
        used = script.bindings.scopes[function].bindings
        if SIZE_PARAMETER in used or RANK_PARAMETER in used:
            raise CannotReach(f"{function.name.value} at {script.where(function)} uses the name num_shards or shard_id")
        return SIZE_PARAMETER, RANK_PARAMETER, AddParameters(script, function, (SIZE_PARAMETER, RANK_PARAMETER))

    def _only_trains(self, edge: Edge) -> bool:
        """Whether every call that enters a function builds training data."""
        sites = self.program.flow.call_sites(edge.function)
        return bool(sites) and all(call in self._training for _, call in sites) and not self._evaluates(edge.call)

    def _evaluates(self, call: cst.Call) -> bool:
        """Whether what a call builds also reaches an evaluation by a different way through the same call."""
        for site in self.program.roles.sites:
            inner = {
                tuple(e.call for e in use.calls) for use in site.uses if use.role == "train" and _through(use.calls, call)
            }
            for use in site.uses:
                if use.role == "eval" and _through(use.calls, call) and tuple(e.call for e in use.calls) not in inner:
                    return True
        return False

    def _enclosing(self, script: Script, node: cst.CSTNode) -> cst.FunctionDef | None:
        scope = script.bindings.scope_of(node).function()
        while scope is not None and not isinstance(scope.node, cst.FunctionDef):
            scope = scope.parent.function() if scope.parent is not None else None
        return scope.node if scope is not None and isinstance(scope.node, cst.FunctionDef) else None


def _through(edges: tuple[Edge, ...], call: cst.Call) -> bool:
    return any(edge.call is call for edge in edges)
