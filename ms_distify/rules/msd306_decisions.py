"""Whether gradients are applied, and training goes on, is decided alike on every rank.

A condition on the loss of a rank's own rows lets one rank apply the gradients, or stop, and another not: from then on
weights differ and nothing says so, or ranks wait for ever. So is it with what is counted or kept from such losses (the
patience of an early stop, also in an object or a callback of the program's own), and with an evaluation where batch
normalisation keeps statistics on each rank. Where the way from the loss to the decision is plain, the number is averaged
over the ranks where it comes into being, which gives the loss of one card at N times the batch; a loss that is NaN on one
rank is so on all. Where it is not plain, the decision is refused. A parameter that is set by hand from such a value would
be another one on each rank, and so would averaged gradients, or a learning rate, that such a value is multiplied into:
refused. Decisions on the gradients themselves are alike once they are averaged, and step counters are alike anyway; so are
evaluations of whole data, and with ``--shard-eval`` those with batch normalisation, whose sums ranks exchange.

The same goes for all else that ranks must do alike: running a step or a training, setting a learning rate, loading weights
and choosing the file they are loaded from, building an optimizer anew, ending the program, and ending the training from a
callback (``request_stop``). A failure (``raise``, ``sys.exit(1)``) is none of these: the launcher ends the other ranks.

Before::

    average = total / steps
    if average < best:
        best, waited = average, 0
    else:
        waited += 1
        if waited > 5:
            break

After::

    average = total / steps
    average = sum_over_ranks(average, mean=True)
    if average < best:
        best, waited = average, 0
    else:
        waited += 1
        if waited > 5:
            break
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import Decision, Wrap
from ..plan.alike import Alike, CannotAlike
from ..plan.in_step import files_loaded, in_step, rates_set, time_in
from ..reading.decisions import jumps
from ..reading.gradients import Application
from ..reading.roles import parts
from ..reading.script import Script
from . import CHANGED, REFUSED, Context, decide, rule

CODE = "MSD306"


@rule(CODE, "decisions that every rank takes alike")
def check(context: Context) -> Iterator[Decision]:
    """Make decisions on values of one rank alike, or refuse them."""
    alike = Alike(context.program, context.helpers)
    told: set[cst.CSTNode] = set()  # conditions
    for application in context.program.gradients.applications:
        line = application.script.line(application.call)
        for script, test in context.program.decisions.tests_before(application.script, application.call):
            if not isinstance(script.tree.parent.get(test), cst.While):  # of loops that train: below
                yield from _asked(context, alike, script, test, f"the gradients of line {line} are applied", told)
        yield from _mixed(context, application)
    yield from _loops(context, alike, told)
    yield from _callbacks(context, alike, told)
    for script, node, what_for in in_step(context.program):
        for home, test in context.program.decisions.reached_by(script, node):
            yield from _asked(context, alike, home, test, what_for, told)
    yield from _files_loaded(context, alike, told)
    yield from _schedulers(context)
    yield from _set_by_hand(context)


def _asked(
    context: Context, alike: Alike, script: Script, test: cst.BaseExpression, what_for: str, told: set[cst.CSTNode]
) -> Iterator[Decision]:
    """Make a condition alike that decides whether something is done that all ranks must do alike, or refuse it."""
    what = context.program.decisions.what(script, test)
    if what and test not in told:
        told.add(test)
        message = (
            f"this decides from {what} whether {what_for}, so ranks would part; decide on the gradients, or on a value "
            "reduced over the ranks"
        )
        yield _decided(context, alike, script, test, what, message)


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
    for script, target, value in rates_set(program):
        what = program.differs.mixed(script, value)
        if what:
            message = f"this sets a learning rate from {what}, so each rank would have another; average the value first"
            yield decide(CODE, REFUSED, script, target, message)


def _decided(
    context: Context,
    alike: Alike,
    script: Script,
    test: cst.BaseExpression,
    what: str,
    message: str,
    does: str = "this decides from",
) -> Decision:
    """Average what a condition is taken from, or refuse it."""
    try:
        edits, roots = alike.edits(script, test)
    except CannotAlike as reason:
        out = " (or use --shard-eval)" if what.startswith("an evaluation") else ""
        return decide(CODE, REFUSED, script, test, f"{message}{out}; it cannot be averaged here: {reason}")
    places = ", ".join(f"{root.text} behind {root.script.where(root.statement)}" for root in roots)
    message = f"{does} {what}, which differs between ranks: averaged over the ranks, {places}"
    return decide(CODE, CHANGED, script, test, message, *edits)


def _loops(context: Context, alike: Alike, told: set[cst.CSTNode]) -> Iterator[Decision]:
    """Loops that train and end, or skip, on a value of one rank: the others would wait for ever."""
    program = context.program
    trained = {sink.node for sink in program.roles.sinks if sink.role == "train"}
    for script in program.scripts:
        for loop in script.tree.nodes(cst.For, cst.While):
            assert isinstance(loop, (cst.For, cst.While))
            if not program.roles.steps(script, loop.body) and not trained & set(parts(loop.body)):
                continue
            tests = [loop.test] if isinstance(loop, cst.While) else []
            tests += [part.test for part in parts(loop.body) if isinstance(part, cst.If) and jumps(part)]
            for test in tests:
                yield from _ended(context, alike, script, test, "ends or skips training", told)


def _callbacks(context: Context, alike: Alike, told: set[cst.CSTNode]) -> Iterator[Decision]:
    """Callbacks that ask ``Model.train`` to stop on a value of one rank, or on its clock."""
    for script in context.program.scripts:
        for call in script.bindings.calls:
            if isinstance(call.func, cst.Attribute) and call.func.attr.value == "request_stop":
                for home, test in context.program.decisions.reached_by(script, call):
                    yield from _ended(context, alike, home, test, "asks for a stop", told)


def _ended(
    context: Context, alike: Alike, script: Script, test: cst.BaseExpression, does: str, told: set[cst.CSTNode]
) -> Iterator[Decision]:
    """Make a condition alike that ends training, or refuse it; a clock cannot be averaged."""
    what = context.program.decisions.what(script, test)
    clock = "" if what else time_in(context.program, script, test)
    if test in told or not (what or clock):
        return
    told.add(test)
    message = (
        f"this {does} on {what or clock}, which differs between ranks: the others would wait for ever; decide on a value that "
        "is the same everywhere"
    )
    if what:
        yield _decided(context, alike, script, test, what, message)
    else:
        yield decide(CODE, REFUSED, script, test, message)


def _files_loaded(context: Context, alike: Alike, told: set[cst.CSTNode]) -> Iterator[Decision]:
    """Checkpoints that are read by a name of each rank's own choice: rank 0 alone has written them, by its choice."""
    for script, file in files_loaded(context.program):
        what = context.program.decisions.what(script, file)
        if what and file not in told:
            told.add(file)
            message = (
                f"which checkpoint is loaded here depends on {what}, so ranks would load different ones, or some that rank "
                "0 has not written; choose it by a value that is the same everywhere"
            )
            yield _decided(context, alike, script, file, what, message, "which checkpoint is loaded here depends on")


def _schedulers(context: Context) -> Iterator[Decision]:
    """Average what a learning rate drops on over the ranks."""
    program = context.program
    for script in program.scripts:
        for call in script.bindings.calls:
            if call.args and program.flow.qualified(script, call) == names.PLATEAU + "().step":
                value = call.args[0].value
                what = program.differs.value(script, value)
                apart = program.decisions.apart(program, script, call) if what else None
                if apart is not None:
                    message = (
                        f"the learning rate would drop on {what}, on one rank and not on another, and ranks may not all "
                        f"come here ({apart[1]} decides, {apart[0]}); step on whole evaluation data"
                    )
                    yield decide(CODE, REFUSED, script, call, message)
                elif what:
                    name, define = context.helpers.summing(script)
                    message = f"the learning rate drops on {what}: averaged over the ranks"
                    edits = (*define, Wrap(script, value, f"{name}(", ", mean=True)"))
                    yield decide(CODE, CHANGED, script, call, message, *edits)
