"""The parallel context: data parallel, mean of the gradients, parameters of rank 0 for all.

``gradients_mean`` is False by default, which sums the gradients (FACTS 3). ``parameter_broadcast`` gives all
ranks the parameters of rank 0 where a Cell is compiled for training; it fails in stand-alone mode, so it
stands with init. It is left out where gradients are taken by functions (``value_and_grad``): there it gives nothing, the
seed does, and in graph mode it does harm. Each Cell that is compiled, the optimizer or the network in an evaluation,
then gets its parameters anew, and a gradient function compiled before goes on with the old ones: it trains on the
weights of the start, without an error (measured with 2.10 on CPU, where leaving it out gives one card's weights).

Before::

    init()

After::

    init()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True,
                                 parameter_broadcast=True, device_num=rank_size)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import AddKeywords, Decision, Edit, Insert, Replace
from ..reading.bindings import literal
from ..reading.roles import argument
from ..reading.timeline import Event
from . import CHANGED, KEPT, NOTED, REFUSED, Context, decide, rule
from .msd102_init import STARTED

CODE = "MSD103"
UNKNOWN = "that cannot be followed"


@rule(CODE, "the parallel context")
def check(context: Context) -> Iterator[Decision]:
    """Add the parallel context, or complete the one that is there."""
    startup = context.startup
    modes = [(event, _mode(context, event)) for event in startup.parallels]
    chosen = [event for event, mode in modes if mode == "data_parallel"]
    for event, mode in modes:
        if mode == "data_parallel":
            yield _complete(event, context)
            yield from _harmful(event, context)
        elif mode == "":
            yield _without_mode(event, context)
        elif mode == "stand_alone":
            if startup.inits and chosen:
                yield decide(CODE, KEPT, event.script, event.node, "stand-alone mode beside data parallel: on one card")
            else:
                message = "STAND_ALONE here undoes data parallel; remove this call"
                yield decide(CODE, REFUSED, event.script, event.node, message)
        else:
            message = f"parallel mode {mode}: only data parallel training is converted; take this call out first"
            yield decide(CODE, REFUSED, event.script, event.node, message)
    if chosen or startup.parallel_place is None:
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
            head, _, last = origin.qualified.rpartition(".")
            found.add(last.lower() if head == names.PARALLEL_MODE else UNKNOWN)
    if "data_parallel" in found and found <= {"data_parallel", "stand_alone"}:
        return "data_parallel"  # stand-alone is its value on one card
    return min(found - {"data_parallel"}, default=UNKNOWN)


def _complete(event: Event, context: Context) -> Decision:
    call, script = event.node, event.script
    if any(arg.star for arg in call.args):
        message = "** arguments of the parallel context cannot be read; write them out"
        return decide(CODE, REFUSED, script, call, message)
    mean = argument(call, None, "gradients_mean")
    if mean is not None and context.program.flow.constant(script, mean) is False:
        message = "gradients_mean=False sums the gradients: steps would be N times as long; set it to True"
        return decide(CODE, REFUSED, script, call, message)
    count = _fixed_count(event, context)
    if count is not None and not context.startup.inits:
        message = f"device_num={script.tree.text(count)} is a fixed number; leave it out"
        return decide(CODE, REFUSED, script, call, message)
    wanted = (
        ("gradients_mean",) if context.program.gradients.by_functions else ("gradients_mean", "parameter_broadcast")
    )
    missing = tuple((name, "True") for name in wanted if argument(call, None, name) is None)
    edits: list[Edit] = [AddKeywords(script, call, missing)] if missing else []
    done = [f"{name}=True" for name, _ in missing]
    if count is not None:
        size, needs = context.startup.speller(script).spell(names.GET_GROUP_SIZE, call)
        edits.append(Replace(script, count, f"{size}()", needs))
        done.append(f"device_num={size}()")
    if not edits:
        return decide(CODE, KEPT, script, call, "data parallel is set already")
    return decide(CODE, CHANGED, script, call, "completed with " + ", ".join(done), *edits)


def _harmful(event: Event, context: Context) -> Iterator[Decision]:
    """Report a broadcast that makes gradient functions go on with old weights; it takes graph mode to do so."""
    broadcast = argument(event.node, None, "parameter_broadcast")
    if broadcast is None or context.program.flow.constant(event.script, broadcast) is False:
        return
    if context.program.gradients.by_functions:
        message = (
            "parameter_broadcast=True makes functions that take gradients go on with old weights in graph mode; "
            "leave it out, the seed gives all ranks equal weights"
        )
        status = REFUSED if _graph_mode(context) else NOTED
        yield decide(CODE, status, event.script, broadcast, message)


def _graph_mode(context: Context) -> bool:
    """Whether the program says that it runs in graph mode."""
    modes = [(e.script, argument(e.node, None, "mode")) for e in context.startup.contexts]
    flow = context.program.flow
    return any(
        mode is not None
        and (
            flow.constant(script, mode) == 0
            or any(origin.qualified == names.GRAPH_MODE for origin in flow.origins(script, mode))
        )
        for script, mode in modes
    )


def _fixed_count(event: Event, context: Context) -> cst.BaseExpression | None:
    """Return ``device_num`` where it is a number that does not follow the number of ranks."""
    count = argument(event.node, None, "device_num")
    if count is None:
        return None
    values = [origin.node for origin in context.program.flow.origins(event.script, count)]
    return count if values and all(isinstance(literal(value), int) for value in values) else None


def _without_mode(event: Event, context: Context) -> Decision:
    """A call that sets no mode leaves ours in force, unless it takes back what ours has set."""
    call, script = event.node, event.script
    if any(arg.star for arg in call.args):
        message = "** arguments of the parallel context cannot be read; write them out"
        return decide(CODE, REFUSED, script, call, message)
    mean = argument(call, None, "gradients_mean")
    if mean is not None and context.program.flow.constant(script, mean) is False:
        return decide(CODE, REFUSED, script, call, "gradients_mean=False sums the gradients; set it to True")
    count = _fixed_count(event, context)
    if count is not None:
        message = f"device_num={script.tree.text(count)} is a fixed number of devices; remove it"
        return decide(CODE, REFUSED, script, call, message)
    return decide(CODE, KEPT, script, call, "sets no parallel mode")


def _add(context: Context) -> Decision:
    startup = context.startup
    place = startup.parallel_place
    assert place is not None
    script, anchor = place.script, place.statement
    speller = startup.speller(script)
    setter, needs = speller.spell(names.SET_PARALLEL, anchor)
    mode, more = speller.spell(names.PARALLEL_MODE, anchor)
    needs += more
    under = ""
    if startup.parallel_guarded:
        condition, more = startup.condition(anchor, script)
        needs += more
        under = condition + ":" + STARTED
    if startup.rank_names.own and place == startup.place:
        size = startup.rank_names.size
    else:
        call, more = speller.spell(names.GET_GROUP_SIZE, anchor)
        size, needs = f"{call}()", needs + more
    head = f"{setter}("
    functional = context.program.gradients.by_functions
    broadcast = "" if functional else "parameter_broadcast=True, "
    lines = (
        f"{head}parallel_mode={mode}.DATA_PARALLEL, gradients_mean=True,",
        f"{' ' * len(head)}{broadcast}device_num={size})",
    )
    edit = Insert(script, anchor, place.where, lines, 30, under, tuple(dict.fromkeys(needs)))
    equal = "equal weights by the seed" if functional else "parameters of rank 0 for all"
    message = f"data parallel, gradients averaged, {equal}"
    return decide(CODE, CHANGED, script, anchor, message, edit)
