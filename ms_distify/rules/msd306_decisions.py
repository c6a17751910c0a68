"""Whether gradients are applied is decided alike on every rank.

A condition on the loss of a rank's own rows lets one rank apply the gradients and another skip them: from then on weights
differ, and nothing says so. Decisions on the gradients themselves are alike once they are averaged, and step counters
are alike anyway; but not what is counted or kept from such losses, as the patience of an early stop. An evaluation of whole
data is alike, unless batch normalisation keeps statistics on each rank. A parameter that is set by hand from such a
value would be another one on each rank, and so would averaged gradients, or a learning rate, that such a value is
multiplied into.

Before (refused)::

    loss, grads = grad_fn(x, y)
    if loss < limit:
        optimizer(grads)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import Decision
from ..reading.bindings import literal
from ..reading.differs import jumps
from ..reading.gradients import Application
from ..reading.roles import parts
from . import REFUSED, Context, decide, rule

CODE = "MSD306"
# What an optimizer's learning rate is called: an attribute of it, an entry of a group of parameters.
_RATES = frozenset({"learning_rate", "lr"})


@rule(CODE, "decisions that every rank takes alike")
def check(context: Context) -> Iterator[Decision]:
    """Refuse applications under a condition on values of one rank."""
    for application in context.program.gradients.applications:
        for test, what in context.program.differs.decides(application):
            line = application.script.line(application.call)
            message = (
                f"this decides from {what} whether the gradients of line {line} are applied, so ranks would part; "
                "decide on the gradients, or on a value reduced over the ranks"
            )
            yield decide(CODE, REFUSED, application.script, test, message)
        yield from _mixed(context, application)
    yield from _loops(context)
    yield from _schedulers(context)
    yield from _set_by_hand(context)


def _mixed(context: Context, application: Application) -> Iterator[Decision]:
    """Refuse gradients that values of one rank change on their way to the optimizer, or decide about."""
    seen: set[str] = set()
    line = application.script.line(application.call)
    for script, test in application.tests:
        what = context.program.differs.mixed(script, test)
        if what and what not in seen:
            seen.add(what)
            message = (
                f"this decides from {what} which gradients line {line} applies, so ranks would part; decide on the averaged "
                "gradients, or on a value reduced over the ranks"
            )
            yield decide(CODE, REFUSED, script, test, message)
    for script, node in application.beside:
        what = context.program.differs.mixed(script, node)
        if what and what not in seen:
            seen.add(what)
            message = (
                f"this mixes {what} into the gradients that line {line} applies, so each rank would apply others; average "
                "the value over the ranks first, or put it into the loss"
            )
            yield decide(CODE, REFUSED, script, node, message)


def _set_by_hand(context: Context) -> Iterator[Decision]:
    """Refuse parameters that are set from values of one rank, beside gradients that are averaged."""
    program = context.program
    for script, call in program.hand_updates:
        if call not in program.timeline.visited and script.bindings.scope_of(call).kind == "module":
            continue
        for arg in call.args:
            what = program.differs.mixed(script, arg.value)
            if what:
                message = (
                    f"this sets a parameter from {what}, so each rank would have another; average the value over the "
                    "ranks first"
                )
                yield decide(CODE, REFUSED, script, call, message)
                break
    for script in program.scripts:
        rates = [(t, v) for t, v, _ in script.bindings.attribute_assignments if t.attr.value in _RATES]
        items = [(t, v) for t, v, _ in script.bindings.item_assignments if _key(t) in _RATES]
        for target, value in [*rates, *items]:
            what = program.differs.mixed(script, value)
            if what:
                message = (
                    f"this sets a learning rate from {what}, so each rank would have another; average the value first"
                )
                yield decide(CODE, REFUSED, script, target, message)


def _key(target: cst.Subscript) -> object:
    index = target.slice[0].slice if len(target.slice) == 1 else None
    return literal(index.value) if isinstance(index, cst.Index) else None


def _loops(context: Context) -> Iterator[Decision]:
    """Refuse loops that train and end, or skip, on a value of one rank: the others would wait for ever."""
    program = context.program
    trained = {sink.node for sink in program.roles.sinks if sink.role == "train"}
    for script in program.scripts:
        for loop in script.tree.nodes(cst.For, cst.While):
            body = loop.body  # type: ignore[attr-defined]
            if not program.roles.steps(script, body) and not trained & set(parts(body)):
                continue
            tests = [loop.test] if isinstance(loop, cst.While) else []
            tests += [part.test for part in parts(body) if isinstance(part, cst.If) and jumps(part)]
            for test in tests:
                what = program.differs.decision(script, test) or program.clock(script, test)
                if what:
                    message = (
                        f"this ends or skips training on {what}, which differs between ranks: the others would wait for "
                        "ever; decide on a value that is the same everywhere"
                    )
                    yield decide(CODE, REFUSED, script, test, message)


def _schedulers(context: Context) -> Iterator[Decision]:
    """Refuse learning rates that drop on a value of one rank."""
    program = context.program
    for script in program.scripts:
        for call in script.bindings.calls:
            if call.args and program.flow.qualified(script, call) == names.PLATEAU + "().step":
                what = program.differs.value(script, call.args[0].value)
                if what:
                    message = f"the learning rate would drop on {what}, on one rank and not on another; step on whole evaluation data"
                    yield decide(CODE, REFUSED, script, call, message)
