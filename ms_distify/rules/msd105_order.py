"""Nothing is built before the context and init.

A Cell, Tensor, Parameter or dataset that exists before ``init()`` and the parallel context belongs to no
data-parallel run: on Ascend it fails or trains alone (mindspore.communication.init). A context call that only
needs to move up is moved. Where it cannot (it stands in a function, a branch, a loop), ``init`` goes in front of what is
built and says the device there, on many ranks only; the program's own call then says the same once more, which
MindSpore takes (measured with 2.10 on CPU). A device that is not known before, or settings that must come before
``init``, are refused with the line of what was built too early.

Before::

    net = nn.Dense(8, 8)
    ms.set_context(mode=ms.GRAPH_MODE)

After::

    ms.set_context(mode=ms.GRAPH_MODE)
    ...
    net = nn.Dense(8, 8)
"""

from __future__ import annotations

from collections.abc import Iterator

from ..model import Decision, Move
from . import CHANGED, NOTED, REFUSED, Context, decide, rule

CODE = "MSD105"


@rule(CODE, "nothing is built before the context", last=True)
def check(context: Context) -> Iterator[Decision]:
    """Report what stands in the way of a start-up, and move context calls up."""
    startup = context.startup
    for problem in startup.problems:
        if problem.code == CODE:
            yield decide(CODE, REFUSED, problem.script, problem.node, problem.message)
    if startup.place is None:
        return
    for event in startup.moved:
        first = startup.place
        message = f"moves up in front of line {first.script.line(first.statement)}, where the first thing is built"
        statement = event.frames[-1].statement
        yield decide(CODE, CHANGED, event.script, event.node, message, Move(event.script, statement, first.statement))
    if startup.inits:
        yield from _around_init(context)


def _around_init(context: Context) -> Iterator[Decision]:
    """The user's own init comes behind the choice of the device and before anything is built."""
    startup = context.startup
    init = startup.inits[0]
    where = init.script.where(init.node)
    built = next((event for event in startup.builds if event.order < init.order), None)
    if built is not None:
        message = f"{built.what} is built before init() at {where}; call init() first"
        yield decide(CODE, REFUSED, built.script, built.node, message)
    choices = [event for event in startup.contexts if startup.program_device(event)]
    if choices and all(event.order > init.order for event in choices):
        status = REFUSED if context.incomplete else NOTED
        message = f"the device is chosen below init() at {where}, which uses it; choose it first"
        yield decide(CODE, status, choices[0].script, choices[0].node, message)
