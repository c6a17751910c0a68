"""The device id comes from the launcher.

A literal device id (or one from an argument that is the same on every rank) puts all ranks on one card. The
launcher gives each rank its own ``DEVICE_ID``; without a launcher the program's own id stays in force (FACTS
7).

Before::

    ms.set_context(device_target="Ascend", device_id=3)

After::

    ms.set_context(device_target="Ascend", device_id=int(os.getenv("DEVICE_ID", "3")))
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import Decision, Need, Replace
from ..reading.bindings import literal
from ..reading.roles import argument
from ..reading.script import Script
from . import CHANGED, KEPT, NOTED, REFUSED, Context, decide, rule

CODE = "MSD101"


@rule(CODE, "the device id comes from the launcher")
def check(context: Context) -> Iterator[Decision]:
    """Look at every context call."""
    program = context.program
    yield from _environment(context)
    for script, call, name in program.calls(names.SET_CONTEXT, names.SET_DEVICE):
        value = argument(call, 1 if name == names.SET_DEVICE else None, "device_id")
        stars = [arg for arg in call.args if arg.star]
        if value is None and stars and not _without_device(context, script, stars):
            message = "** arguments may carry a device id that would reach every rank; write them out"
            yield decide(CODE, REFUSED, script, call, message)
            continue
        if value is None:
            yield decide(CODE, KEPT, script, call, "no device id here; each rank gets its own from the launcher")
        elif call not in program.timeline.visited:
            yield decide(
                CODE,
                NOTED,
                script,
                call,
                "this call is not reached from the start of the program; left as it is",
            )
        elif program.mentions_rank(script, value):
            yield decide(CODE, KEPT, script, call, "the device id already follows the rank")
        else:
            yield _change(context, script, call, value)


def _environment(context: Context) -> Iterator[Decision]:
    """``os.environ["DEVICE_ID"] = "3"`` would take the launcher's variable away from every rank."""
    program = context.program
    for script in program.scripts:
        for target, value, path in script.bindings.item_assignments:
            index = target.slice[0].slice
            name = literal(index.value) if isinstance(index, cst.Index) else None
            if name not in names.RANK_VARIABLES or path or program.mentions_rank(script, value):
                continue
            if not any(origin.qualified == "os.environ" for origin in program.flow.origins(script, target.value)):
                continue
            given = literal(value)
            if not isinstance(given, str):
                message = f"sets {name} for every rank; leave it to the launcher"
                yield decide(CODE, REFUSED, script, target, message)
                continue
            os_name, needs = context.startup.speller(script).spell("os", target)
            new = f'{os_name}.getenv("{name}", {script.tree.text(value)})'
            message = f"{name} stays what the launcher sets, {given} on one card"
            yield decide(CODE, CHANGED, script, target, message, Replace(script, value, new, needs))


def _change(context: Context, script: Script, call: cst.Call, value: cst.BaseExpression) -> Decision:
    startup = context.startup
    os_name, needs = startup.speller(script).spell("os", call)
    text = script.tree.full_text(value)
    number = literal(value)
    if isinstance(number, int) and not isinstance(number, bool):
        new = f'int({os_name}.getenv("DEVICE_ID", "{number}"))'
        message = f"device_id={text} becomes DEVICE_ID of the launcher, {text} on one card"
    else:
        condition, more = startup.condition(call, script)
        needs = _merge(needs, more)
        new = f'int({os_name}.getenv("DEVICE_ID", "0")) if {condition} else {text}'
        message = f"device_id becomes DEVICE_ID of the launcher, {text} on one card"
    return decide(CODE, CHANGED, script, call, message, Replace(script, value, new, needs))


def _merge(first: tuple[Need, ...], second: tuple[Need, ...]) -> tuple[Need, ...]:
    return tuple(dict.fromkeys([*first, *second]))


def _without_device(context: Context, script: Script, stars: list[cst.Arg]) -> bool:
    """Whether ``**`` arguments are dictionaries written out in the program, without a device id."""
    for arg in stars:
        keys = context.program.dictionary_keys(script, arg.value) if arg.star == "**" else None
        if keys is None or "device_id" in keys:
            return False
    return True
