"""The variables that hold rank and group size: the user's where they have usable ones, else new ones."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from ..mindspore import names
from ..reading.bindings import Binding, Scope, literal
from ..reading.program import Program
from ..reading.script import Script
from ..reading.timeline import RANK


@dataclass(frozen=True)
class RankNames:
    """The variables that hold rank and group size, None (or 0 and 1) on one card.

    Attributes:
        rank, size: the names.
        scope: where they live.
        script: the file of that scope.
        own: whether we add them; else they are the user's.
        since: the tick of the timeline from which on both are set.
    """

    rank: str
    size: str
    scope: Scope
    script: Script
    own: bool
    since: int

    def readable(self, script: Script, scope: Scope) -> bool:
        """Whether code in a scope of a file sees these variables under their names."""
        if script is not self.script:
            return False
        current: Scope | None = scope
        while current is not None:
            if current is self.scope:
                return True
            if (self.rank in current.bindings or self.size in current.bindings) and current.kind != "class":
                return False  # a parameter or local of the same name
            current = current.parent
        return False


def existing(program: Program) -> RankNames | None:
    """Return the user's variables that surely hold rank and group size wherever the program trains."""
    line = program.timeline
    for script in program.scripts:
        for scope in script.bindings.scopes.values():
            rank = _holder(program, script, scope, names.GET_RANK)
            size = _holder(program, script, scope, names.GET_GROUP_SIZE)
            if rank is not None and size is not None:
                since = max(line.visited[call] for call in (taken(rank), taken(size)) if call is not None)
                return RankNames(rank.name, size.name, scope, script, False, since)
    return None


def taken(binding: Binding) -> cst.CSTNode | None:
    """Return the expression a binding takes, through ``a, b = x, y``."""
    value: cst.CSTNode | None = binding.value
    for kind, key in binding.path:
        if kind != "item" or not isinstance(value, (cst.Tuple, cst.List)) or not isinstance(key, int):
            return None
        value = value.elements[key].value if key < len(value.elements) else None
    return value


def _holder(program: Program, script: Script, scope: Scope, qualified: str) -> Binding | None:
    """Return a variable of a scope that surely holds the rank (or the group size) when trained."""
    if scope.kind == "class":
        return None
    events = {event.node: event for event in program.timeline.of(RANK)}
    for bindings in scope.bindings.values():
        for binding in bindings:
            call = taken(binding)
            event = events.get(call) if isinstance(call, cst.Call) else None
            if event is None or program.flow.qualified(script, event.node) != qualified:
                continue
            others = [taken(other) for other in bindings if other is not binding]
            if all(_rank_or_default(program, script, value, qualified) for value in others) and (
                others or not event.conditional
            ):
                return binding
    return None


def _rank_or_default(program: Program, script: Script, value: cst.CSTNode | None, qualified: str) -> bool:
    """Whether another value of a variable is the same call, or what stands for it on one card."""
    if isinstance(value, cst.Call):
        return program.flow.qualified(script, value) == qualified
    return literal(value) in ((None, 0) if qualified == names.GET_RANK else (None, 1)) if value is not None else False
