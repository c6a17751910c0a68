"""What is converted at all: programs that start a training, and files that the user named."""

from __future__ import annotations

import libcst as cst

from ..mindspore import names
from ..model import KEPT, REFUSED, Decision, Finding
from ..reading.expressions import is_main_guard
from ..reading.program import Program
from ..reading.script import Script


def idle(program: Program) -> Finding | None:
    """Return why there is nothing to convert, if so: no training, or none that this file starts."""
    entry = program.entry
    star = next(
        (s for s in program.scripts for _, module in s.bindings.stars if module.partition(".")[0] == "mindspore"), None
    )
    if star is not None:
        return None
    if not program.trains:
        takes = [take for take in program.gradients.takes.values() if take.weights is not None]
        if takes and program.hand_updates:
            line = takes[0].script.line(takes[0].call)
            message = (
                "gradients of weights are taken and weights changed by hand; apply them with an optimizer of MindSpore"
            )
            return Finding("MSD302", REFUSED, takes[0].script.path, line, 1, message)
        for script in program.scripts:
            for call in script.bindings.calls:
                name = program.flow.qualified(script, call)
                if names.is_optimizer(name) and call in program.timeline.visited and not _only_in_model(program, call):
                    line = script.line(call)
                    message = (
                        f"{name.rpartition('.')[2]} is built, but no training that uses it is found; "
                        "use Model.train or a loop that calls the optimizer"
                    )
                    return Finding("MSD305", REFUSED, script.path, line, 1, message)
        return Finding(
            "MSD607", KEPT, entry.path, 1, 1, "not a training program: no Model.train, train cell or optimizer step"
        )
    if not program.timeline.of("train"):
        if program.timeline.handed_over or any(is_main_guard(statement) for statement in entry.tree.module.body):
            message = (
                "it trains somewhere, but how the start of the file leads there cannot be followed; call it directly"
            )
            return Finding("MSD608", REFUSED, entry.path, 1, 1, message)
        return Finding("MSD607", KEPT, entry.path, 1, 1, "a module: it defines a training but does not start one")
    return None


def _only_in_model(program: Program, optimizer: cst.CSTNode) -> bool:
    """Whether an optimizer goes into a ``Model``, which trains only where its ``train`` or ``fit`` is called."""
    for script, call, _ in program.calls(*names.MODELS):
        for arg in call.args:
            if any(origin.node is optimizer for origin in program.flow.origins(script, arg.value)):
                return True
    return False


def unnamed(program: Program, touched: set[Script]) -> list[Decision]:
    """Refuse edits to files that the user did not name (DESIGN 4)."""
    missing = [script for script in program.scripts if script in touched and not script.named]
    if not missing:
        return []
    paths = " ".join(script.path for script in missing)
    command = f"this file needs changes too and was not named: ms-distify --in-place {program.entry.path} {paths}"
    again = f"this file needs changes too and was not named, as {missing[0].path}"
    return [
        Decision(Finding("MSD609", REFUSED, script.path, 1, 1, command if script is missing[0] else again))
        for script in missing
    ]
