"""Loops over datasets that no step is taken in, and what runs for each of their batches."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from .flow import Flow
from .leaving import peeks
from .roles import Roles, body_of
from .script import Script

_MAX_CALLERS = 8


class Evaluations:
    """The loops of a program that read batches and do not train."""

    def __init__(self, flow: Flow, roles: Roles) -> None:
        self._flow, self._roles = flow, roles

    @cached_property
    def loops(self) -> dict[cst.CSTNode, Script]:
        """The loops (and comprehensions) over batches, with their files; those over the rows of a batch are none."""
        sites = {site.call for site in self._roles.sites}
        found: dict[cst.CSTNode, Script] = {}
        for sink in self._roles.sinks:
            if sink.role == "read" and isinstance(sink.node, (cst.For, cst.CompFor)) and sink.dataset is not None:
                ends = self._flow.origins(sink.script, sink.dataset, (), sink.selectors)
                if any(end.node in sites and len(end.selectors) == 1 for end in ends):
                    found[sink.node] = sink.script
        return found

    @property
    def looked_at(self) -> bool:
        """Whether a batch is taken by itself, by ``next`` or by a loop that ends at once: each rank computes with it."""
        taken = {sink.node for sink in self._roles.sinks if sink.what == "next()" and sink.role != "train"}
        if any(use.node in taken for site in self._roles.sites for use in site.uses):
            return True
        return any(isinstance(loop, cst.For) and peeks(loop) for loop in self.loops)

    def within(self, script: Script, node: cst.CSTNode) -> tuple[Script, cst.For, bool] | None:
        """Return a loop over batches for each of whose batches a node runs, and whether it stands there itself."""
        seen: set[cst.CSTNode] = set()
        stack: list[tuple[Script, cst.CSTNode, int]] = [(script, node, 0)]
        while stack:
            home, here, depth = stack.pop()
            below = here
            for parent in home.tree.ancestors(here):
                if parent in self.loops and isinstance(parent, cst.For) and below is body_of(parent):
                    if not peeks(parent):
                        return home, parent, depth == 0
                if isinstance(parent, (cst.FunctionDef, cst.Lambda)):
                    break
                below = parent
            scope = home.bindings.scope_of(here).function()
            if scope is not None and scope.node not in seen and depth < _MAX_CALLERS:
                seen.add(scope.node)
                stack += [(where, call, depth + 1) for where, call in self._flow.call_sites(scope.node)]
        return None


__all__ = ["Evaluations"]
