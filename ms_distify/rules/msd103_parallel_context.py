'''The parallel context: data parallel, mean of the gradients, parameters of rank 0 for all.

``gradients_mean`` is False by default, which sums the gradients (FACTS 3). ``parameter_broadcast`` gives all ranks the
parameters of rank 0 where a Cell is compiled for training; it fails in stand-alone mode, so it stands with init.

Before::

    init()

After::

    init()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True,
                                 parameter_broadcast=True, device_num=rank_size)
'''

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import AddKeywords, Decision, Insert
from ..reading.roles import argument
from ..reading.timeline import Event
from . import CHANGED, KEPT, REFUSED, Context, decide, rule
from .msd102_init import STARTED

CODE = "MSD103"


@rule(CODE, "the parallel context")
def check(context: Context) -> Iterator[Decision]:
    """Add the parallel context, or complete the one that is there."""
    startup = context.startup
    modes = [(event, _mode(context, event)) for event in startup.parallels]
    chosen = [event for event, mode in modes if mode == "data_parallel"]
    for event, mode in modes:
        if mode == "data_parallel":
            yield _complete(event, context)
        elif mode == "":
            yield decide(CODE, KEPT, event.script, event.node, "sets no parallel mode")
        elif mode == "stand_alone":
            if startup.inits and chosen:
                yield decide(CODE, KEPT, event.script, event.node, "stand-alone mode beside data parallel: on one card")
            else:
                message = "STAND_ALONE here undoes data parallel; remove this call"
                yield decide(CODE, REFUSED, event.script, event.node, message)
        else:
            message = f"parallel mode {mode}: only data parallel training is converted; take this call out first"
            yield decide(CODE, REFUSED, event.script, event.node, message)
    if chosen or startup.place is None:
        return
    yield _add(context)


def _mode(context: Context, event: Event) -> str:
    """Return the parallel mode of a call: "data_parallel", "stand_alone", another's name, or nothing."""
    value = argument(event.node, None, "parallel_mode")
    if value is None:
        return ""
    found: set[str] = set()
    for origin in context.program.flow.origins(event.script, value):
        if origin.kind == "literal":
            found.add(str(context.program.flow.constant(origin.script, origin.node)).lower())
        else:
            found.add(origin.qualified.rpartition(".")[2].lower() or "that cannot be followed")
    return "data_parallel" if "data_parallel" in found else min(found, default="that cannot be followed")


def _complete(event: Event, context: Context) -> Decision:
    call, script = event.node, event.script
    if any(arg.star for arg in call.args):
        return decide(CODE, REFUSED, script, call, "** arguments of the parallel context cannot be read; write them out")
    mean = argument(call, None, "gradients_mean")
    if mean is not None and context.program.flow.constant(script, mean) is False:
        message = "gradients_mean=False sums the gradients: N ranks would take steps N times as long; set it to True"
        return decide(CODE, REFUSED, script, call, message)
    missing = [
        (name, "True")
        for name in ("gradients_mean", "parameter_broadcast")
        if argument(call, None, name) is None
    ]
    if not missing:
        return decide(CODE, KEPT, script, call, "data parallel is set already")
    message = "completed with " + ", ".join(f"{name}=True" for name, _ in missing)
    return decide(CODE, CHANGED, script, call, message, AddKeywords(script, call, tuple(missing)))


def _add(context: Context) -> Decision:
    startup = context.startup
    place = startup.place
    assert place is not None
    script, anchor = place.script, place.statement
    speller = startup.speller(script)
    setter, needs = speller.spell(names.SET_PARALLEL, anchor)
    mode, more = speller.spell(names.PARALLEL_MODE, anchor)
    needs += more
    under = ""
    if startup.guarded:
        condition, more = startup.condition(anchor, script)
        needs += more
        under = condition + ":" + STARTED
    head = f"{setter}("
    lines = (
        f"{head}parallel_mode={mode}.DATA_PARALLEL, gradients_mean=True,",
        f"{' ' * len(head)}parameter_broadcast=True, device_num={_size(context, anchor)})",
    )
    edit = Insert(script, anchor, place.where, lines, 30, under, tuple(dict.fromkeys(needs)))
    return decide(CODE, CHANGED, script, anchor, "data parallel, gradients averaged, parameters of rank 0 for all", edit)


def _size(context: Context, anchor: cst.CSTNode) -> str:
    known = context.startup.rank_names
    if known.own or _bound_before(context, anchor):
        return known.size
    return context.startup.speller(known.script).spell(names.GET_GROUP_SIZE, anchor)[0] + "()"


def _bound_before(context: Context, anchor: cst.CSTNode) -> bool:
    known = context.startup.rank_names
    start = known.script.tree.start(anchor)
    return any(binding.at < start for binding in known.scope.bindings.get(known.size, []))
