"""What all ranks must do alike, or their weights part or they wait for each other for ever."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..reading.bindings import dotted, literal
from ..reading.decisions import exits
from ..reading.program import Program
from ..reading.roles import argument
from ..reading.script import Script

# What an optimizer's learning rate is called: an attribute of it, an entry of a group of parameters.
_RATES = frozenset({"learning_rate", "lr"})
# What gives the parameters that a network has now.
_LIVE = frozenset({"parameters_dict", "parameters_and_names"})
# What starts a training on a dataset.
_STARTS = frozenset({"train", "fit"})


def in_step(program: Program) -> Iterator[tuple[Script, cst.CSTNode, str]]:
    """Yield what must be done by all ranks or by none, each with words for it: "the learning rate is set in line 3"."""
    for script, call in program.steps:
        yield script, call, f"the step of line {script.line(call)} is run"
    for sink in program.roles.sinks:
        if sink.role == "train" and isinstance(sink.node, cst.Call) and sink.what.rpartition(".")[2] in _STARTS:
            yield sink.script, sink.node, f"{sink.what} is run"
    for script, call in program.hand_updates:
        yield script, call, f"a parameter is set in line {script.line(call)}"
    for script, target, _ in rates_set(program):
        yield script, target, f"the learning rate is set in line {script.line(target)}"
    for script, call, name in program.library_calls:
        if _loads(call, name):
            yield script, call, f"weights are loaded in line {script.line(call)}"
        elif names.is_optimizer(name) or names.is_train_cell(name):
            yield script, call, f"{name.rpartition('.')[2]} is built anew in line {script.line(call)}"
    for script in program.scripts:
        for call in script.bindings.calls:
            if exits(call):
                yield script, call, f"the program ends in line {script.line(call)}"


def files_loaded(program: Program) -> Iterator[tuple[Script, cst.BaseExpression]]:
    """Yield the expressions that name the checkpoints that are read."""
    for script, call, name in program.library_calls:
        file = argument(call, 0, "ckpt_file_name") if name == names.LOAD_CHECKPOINT else None
        if file is not None:
            yield script, file


def rates_set(program: Program) -> Iterator[tuple[Script, cst.BaseExpression, cst.BaseExpression]]:
    """Yield where a learning rate is set (an attribute of an optimizer, an entry of a group of parameters), and to what."""
    for script in program.scripts:
        for attribute, value, _ in script.bindings.attribute_assignments:
            if attribute.attr.value in _RATES:
                yield script, attribute, value
        for item, value, _ in script.bindings.item_assignments:
            if _key(item) in _RATES:
                yield script, item, value


def time_in(program: Program, script: Script, test: cst.BaseExpression) -> str:
    """Return what time or chance is in a condition, leaving out questions whether something is None."""
    if isinstance(test, cst.BooleanOperation):
        return time_in(program, script, test.left) or time_in(program, script, test.right)
    if isinstance(test, cst.UnaryOperation):
        return time_in(program, script, test.expression)
    if isinstance(test, cst.Comparison) and any(dotted(part.comparator) == "None" for part in test.comparisons):
        return ""
    return program.clock(script, test)


def _key(target: cst.Subscript) -> object:
    index = target.slice[0].slice if len(target.slice) == 1 else None
    return literal(index.value) if isinstance(index, cst.Index) else None


def _loads(call: cst.Call, name: str) -> bool:
    """Whether a call gives a network other weights, and not those that another network has on every rank."""
    if name == names.LOAD_CHECKPOINT:
        return argument(call, 1, "net") is not None
    given = argument(call, 1, "parameter_dict") if name == names.LOAD_PARAM_INTO_NET else None
    live = isinstance(given, cst.Call) and isinstance(given.func, cst.Attribute) and given.func.attr.value in _LIVE
    return given is not None and not live


__all__ = ["files_loaded", "in_step", "rates_set", "time_in"]
