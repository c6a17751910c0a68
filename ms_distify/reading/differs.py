"""What differs between ranks although the weights do not: values of a rank's own rows."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from ..mindspore import names
from .flow import Flow, Origin
from .gradients import PAIR, Gradients
from .operands import operands
from .roles import Roles, Site
from .script import Script

_MAX_DEPTH = 40


class Differs:
    """Finds values of one rank.

    Args:
        flow: where values come from.
        roles: the datasets; those that train are dealt, and their rows are a rank's own.
        gradients: the takes; the value that comes with gradients is of the rank's own rows.
        own_statistics: whether networks keep statistics of their own rank (batch normalisation), so that evaluations
            differ as well.
    """

    def __init__(self, flow: Flow, roles: Roles, gradients: Gradients, *, own_statistics: bool) -> None:
        self._flow, self._takes, self._own_statistics = flow, gradients.takes, own_statistics
        self._sites: dict[cst.CSTNode, Site] = {site.call: site for site in roles.sites}
        self._found: dict[cst.CSTNode, str] = {}

    def value(self, script: Script, node: cst.CSTNode) -> str:
        """Return what part of a value differs between ranks (its own loss, its own rows), or nothing."""
        if node not in self._found:
            self._found[node] = self._value(script, node, set(), 0)
        return self._found[node]

    def mixed(self, script: Script, node: cst.CSTNode) -> str:
        """Return what part of a factor or summand differs between ranks, or nothing.

        Shapes and types of values do not count, nor what is only waited for; gradients of inputs do.
        """
        return self._value(script, node, set(), 0, arithmetic=True)

    def rows(self, script: Script, node: cst.CSTNode) -> set[tuple[cst.CSTNode, tuple[cst.Call, ...]]]:
        """Return the datasets a value is computed from: their constructors, each with the calls on the way to it."""
        found: set[tuple[cst.CSTNode, tuple[cst.Call, ...]]] = set()
        seen: set[cst.CSTNode] = set()
        stack = [(script, node)]
        while stack:
            home, part = stack.pop()
            if part in seen or not isinstance(part, cst.BaseExpression):
                continue
            seen.add(part)
            for origin in self._flow.origins(home, part):
                if origin.node in self._sites:
                    found.add((origin.node, tuple(edge.call for edge in origin.calls)))
                elif origin.kind not in ("function", "class", "external", "module", "instance"):
                    stack += [(origin.script, operand) for operand in operands(origin.node, origin.selectors)]
                    stack += self._put_in.get(origin.node, ())
        return found

    def _value(
        self, script: Script, node: cst.CSTNode, seen: set[cst.CSTNode], depth: int, *, arithmetic: bool = False
    ) -> str:
        if node in seen or depth > _MAX_DEPTH or not isinstance(node, cst.BaseExpression):
            return ""
        seen.add(node)
        for origin in self._flow.origins(script, node):
            take = self._takes.get(origin.node) if isinstance(origin.node, cst.Call) else None
            if take is not None:
                if take.shape == PAIR and origin.selectors[:1] != (("item", 1),):
                    return "the loss of its own rows"
                # of inputs and of weights together: the second are those of weights
                chosen = origin.selectors[1 if take.shape == PAIR else 0 :][:1]
                if arithmetic and (take.weights is None or (take.mixed and chosen != (("item", 1),))):
                    return "gradients by its own rows"
                continue
            if origin.qualified == names.OVER_RANKS:
                continue  # ranks have exchanged it
            what = self._of_rows(origin)
            if what:
                return what
            if origin.kind in ("function", "class", "external", "module", "instance") or origin.qualified == "len":
                continue  # how many there are is another question than what they are
            inside = [(origin.script, part) for part in operands(origin.node, origin.selectors, shapes=not arithmetic)]
            for script_of, part in [*inside, *self._put_in.get(origin.node, ())]:
                what = self._value(script_of, part, seen, depth + 1, arithmetic=arithmetic)
                if what:
                    return what
        return ""

    @cached_property
    def _put_in(self) -> dict[cst.CSTNode, list[tuple[Script, cst.BaseExpression]]]:
        """For each list, dictionary or the like: what the program puts in later."""
        found: dict[cst.CSTNode, list[tuple[Script, cst.BaseExpression]]] = {}
        for script, container, _, value in self._flow.puts():
            for origin in self._flow.origins(script, container):
                found.setdefault(origin.node, []).append((script, value))
        return found

    def _of_rows(self, origin: Origin) -> str:
        """Return what a value is of, if it is of rows: a rank's own, or an evaluation's where ranks evaluate unlike."""
        if origin.kind == "call" and names.is_train_cell(origin.qualified.removesuffix("()")):
            return "the loss of its own rows"
        if isinstance(origin.node, cst.Attribute) and origin.node.attr.value == "net_outputs":
            return "the loss of its own rows"  # what Model.train gives its callbacks
        site = self._sites.get(origin.node)
        if site is not None and origin.selectors:
            if not site.uses or site.uses_as("train"):
                return "its own rows"
            if self._own_statistics:
                return "an evaluation with the statistics that its own BatchNorm keeps"
        if self._own_statistics and origin.qualified.removesuffix("().eval") in names.MODELS:
            return "an evaluation with the statistics that its own BatchNorm keeps"
        return ""


__all__ = ["Differs"]
