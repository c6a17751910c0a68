"""The calls that take gradients of weights, and how what they give is made up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import libcst as cst

from ..mindspore import names
from .bindings import literal
from .flow import Flow
from .origin import Origin
from .project import Project
from .roles import argument
from .script import Script

PAIR, PLAIN = "pair", "plain"  # (value, gradients), or the gradients alone


@dataclass(frozen=True)
class Take:
    """A call that takes gradients.

    Attributes:
        script: its file.
        call: the call whose value holds the gradients.
        maker: the call that made the gradient function (``value_and_grad(...)``), with its file.
        weights: the expression of the weights, with its file; None if gradients of inputs are taken.
        shape: PAIR where the value comes with the gradients, PLAIN where they stand alone.
        mixed: the gradients come together with those of inputs.
        trouble: why the value is not what its shape says, or nothing.
    """

    script: Script
    call: cst.Call
    maker: tuple[Script, cst.CSTNode]
    weights: tuple[Script, cst.BaseExpression] | None
    shape: str
    mixed: bool = False
    trouble: str = ""


class Takes:
    """Finds the takes of a program."""

    def __init__(self, project: Project, flow: Flow) -> None:
        self.project, self.flow = project, flow

    def all(self) -> Iterator[Take]:
        """Yield the takes, in the order of files and lines."""
        for script in self.project.scripts():
            for call in script.bindings.calls:
                # None is no gradient function: it stands for one until it is made.
                called = [one for one in self.flow.called(script, call) if not _is_none(one)]
                for origin in called:
                    if origin.kind == "call" and isinstance(origin.node, cst.Call):
                        take = self._take(script, call, origin, origin.node)
                        if take is not None:
                            if len({one.node for one in called}) > 1:
                                take = replace(take, trouble="one of several gradient functions is called here")
                            yield take
                            break

    def _take(self, script: Script, call: cst.Call, origin: Origin, maker: cst.Call) -> Take | None:
        name, home = origin.qualified, origin.script
        if name in names.VALUE_AND_GRAD:
            weights = argument(maker, 2, "weights")
            position = argument(maker, 1, "grad_position")
            mixed = position is None or literal(position) is not None
            return self._made(script, call, home, maker, weights, PAIR, mixed)
        if name in names.GRAD:
            weights = argument(maker, 2, "weights")
            position = argument(maker, 1, "grad_position")
            mixed = position is None or literal(position) is not None
            return self._made(script, call, home, maker, weights, PLAIN, mixed)
        if name == names.FORWARD_VALUE_AND_GRAD:
            weights = argument(maker, 1, "weights")
            by_list = argument(maker, 3, "get_by_list")
            mixed = literal(argument(maker, 2, "get_all")) is True
            chosen = weights if by_list is not None and literal(by_list) is not False else None
            return self._made(script, call, home, maker, chosen, PAIR, mixed)
        if name == names.GRAD_OPERATION + "()":
            weights = argument(maker, 1, "weights")
            operation = self._operation(home, maker)
            mixed = operation is not None and literal(argument(operation, 0, "get_all")) is True
            return self._made(script, call, home, maker, weights, PLAIN, mixed)
        return None

    def _operation(self, script: Script, call: cst.Call) -> cst.Call | None:
        """Return the ``GradOperation(...)`` call behind ``operation(network, weights)``."""
        for origin in self.flow.called(script, call):
            if origin.qualified == names.GRAD_OPERATION and isinstance(origin.node, cst.Call):
                return origin.node
        return None

    def _made(
        self,
        script: Script,
        call: cst.Call,
        home: Script,
        maker: cst.Call,
        weights: cst.BaseExpression | None,
        shape: str,
        mixed: bool,
    ) -> Take:
        known = None if weights is None or literal(weights) is None else (home, weights)
        trouble = ""
        options = (("has_aux", 3), ("return_ids", 4)) if self._has_options(home, maker) else ()
        for option, position in options:
            value = argument(maker, position, option)
            beside = value is not None and literal(value) is not False
            if beside and (option == "return_ids" or shape == PLAIN):
                trouble = f"{option} puts something else beside the gradients"
        return Take(script, call, (home, maker), known, shape, mixed and known is not None, trouble)

    def _has_options(self, script: Script, maker: cst.Call) -> bool:
        """Whether a maker takes ``has_aux`` and ``return_ids``: ``value_and_grad`` and ``grad`` do."""
        return self.flow.qualified(script, maker) in names.GRAD | names.VALUE_AND_GRAD


def _is_none(origin: Origin) -> bool:
    return origin.kind == "literal" and not origin.selectors and literal(origin.node) is None
