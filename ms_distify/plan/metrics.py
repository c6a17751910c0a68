"""Which metrics a model is told, and whether they are sums over batches."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from ..mindspore import names
from ..reading.program import Program
from ..reading.roles import argument
from ..reading.script import Script

Told = tuple[Script, cst.BaseExpression]


class Metrics:
    """Looks up the metrics of models."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def of(self, script: Script, call: cst.Call) -> tuple[list[Told], str]:
        """Return the ``metrics`` arguments of the models that a ``model.eval`` may be called on, and why they cannot be summed.

        Args:
            script: the file.
            call: ``model.eval(...)`` or ``model.fit(...)``.
        """
        if not isinstance(call.func, cst.Attribute):
            return [], "its model cannot be found"
        found: list[Told] = []
        for origin in self.program.flow.origins(script, call.func.value):
            if origin.qualified not in names.MODELS or not isinstance(origin.node, cst.Call):
                return [], "its model cannot be found"
            told = argument(origin.node, 3, "metrics")
            if told is None:
                return [], f"the metrics of the model at {origin.script.where(origin.node)} cannot be found"
            why = self._not_summed(origin.script, told)
            if why:
                return [], why
            found.append((origin.script, told))
            if self._by_hand:
                return [], f"a metric is used by hand as well ({self._by_hand})"
        return found, "" if found else "its model cannot be found"

    @cached_property
    def _by_hand(self) -> str:
        """Where the program itself asks one of its summed metrics, which takes all ranks then; or nothing."""
        for script in self.program.scripts:
            for call in script.bindings.calls:
                func = call.func
                if isinstance(func, cst.Attribute) and func.attr.value in ("clear", "eval", "update"):
                    owners = self.program.flow.origins(script, func.value)
                    if any(o.kind == "call" and names.is_summed_metric(o.qualified) for o in owners):
                        return script.where(call)
        return ""

    def _not_summed(self, script: Script, told: cst.BaseExpression) -> str:
        """Return why metrics are no sums over batches, or nothing."""
        flow = self.program.flow
        if (
            isinstance(told, cst.Call)
            and told.args
            and any(
                isinstance(f, cst.FunctionDef) and f.name.value.startswith(names.METRICS_HELPER)
                for _, f in flow.targets(script, told)
            )
        ):
            return self._not_summed(script, told.args[0].value)
        origins = flow.origins(script, told)
        put = [(s, value) for s, box, _, value in flow.puts()
               if {o.node for o in flow.origins(s, box)} & {o.node for o in origins}]  # fmt: skip
        parts = list(put)
        for origin in origins:
            node = origin.node
            if isinstance(node, (cst.Set, cst.Dict)):
                parts += [(origin.script, element.value) for element in node.elements]
            else:
                return f"metrics that come from {origin.script.where(node)} cannot be told"
        for home, part in parts:
            bad = self._metric(home, part)
            if bad:
                return f"{bad} is not known to be a sum over batches"
        return ""

    def _metric(self, script: Script, part: cst.BaseExpression) -> str:
        """Return a metric's name, if it is not known to be a sum."""
        text = script.tree.text(part)
        value = self.program.flow.constant(script, part)
        if isinstance(value, str):
            return "" if value in names.SUMMED_METRICS else value
        origins = self.program.flow.origins(script, part)
        known = origins and all(o.kind == "call" and names.is_summed_metric(o.qualified) for o in origins)
        return "" if known else text


__all__ = ["Metrics"]
