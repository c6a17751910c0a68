"""``--quiet-ranks``: rank 0 alone prints.

Every rank has a log of its own, so prints are left alone unless this is asked for (``--quiet-ranks``, or ``quiet_ranks = true``
in pyproject.toml). Then the standard output of the other ranks goes nowhere from the start-up on: prints, MindSpore's
``LossMonitor`` and ``TimeMonitor``, tables of metrics. Everything is still computed on every rank, so nothing waits for a rank
that has no part in it. Errors and warnings stay in each rank's log, as they go to standard error; progress bars of tqdm go there
too, and are disabled on the other ranks by name. What is printed before the start-up, or by C++ code, stays.

Before::

    ms.set_context(mode=ms.GRAPH_MODE)
    for batch in tqdm(batches):
        print(step(batch))

After, with ``--quiet-ranks``::

    ms.set_context(mode=ms.GRAPH_MODE)
    rank_id = rank_size = None  # one card
    if int(os.getenv("RANK_SIZE", "1")) > 1:  # started by run_distribute.sh
        init()
        rank_id, rank_size = get_rank(), get_group_size()
        sys.stdout = sys.stdout if rank_id == 0 else open(os.devnull, "w", encoding="utf-8")  # errors are still shown
    for batch in tqdm(batches, disable=rank_id not in (None, 0)):
        print(step(batch))
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import AddKeywords, Decision, Insert, Need
from ..reading.bindings import dotted
from ..reading.roles import argument
from ..reading.script import Script
from ..reading.tree import walk
from . import CHANGED, KEPT, Context, decide, rule

CODE = "MSD109"
_COMMENT = "  # errors are still shown"


@rule(CODE, "prints of rank 0 alone")
def check(context: Context) -> Iterator[Decision]:
    """Let the other ranks print nothing, if that is asked for."""
    place = context.startup.place
    if not context.settings.quiet_ranks or place is None:
        return
    there = next(_redirected(context), None)
    if there is not None:
        yield decide(CODE, KEPT, *there, "the standard output of the other ranks goes nowhere already")
    else:
        yield _redirect(context)
    for script, call, name in context.program.calls(*names.PROGRESS_BARS):
        yield from _bar(context, script, call, name)


def _redirected(context: Context) -> Iterator[tuple[Script, cst.CSTNode]]:
    """Yield the assignments that send standard output to the null device."""
    for script in context.program.scripts:
        for target, value, _ in script.bindings.attribute_assignments:
            if dotted(target) == "sys.stdout" and any(
                isinstance(part, cst.Attribute) and part.attr.value == "devnull" for part in walk(value)
            ):
                yield script, target


def _redirect(context: Context) -> Decision:
    startup = context.startup
    place = startup.place
    assert place is not None
    script, statement = place.script, place.statement
    speller = startup.speller(script)
    sys_name, needs = speller.spell("sys", statement)
    os_name, more = speller.spell("os", statement)
    known, under = startup.rank_names, ""
    if startup.guarded:
        condition, asked = startup.condition(statement, script)
        under, more = f"{condition}:  # started by run_distribute.sh", more + asked
    first = f"{known.rank} == 0" if known.own and startup.guarded else context.rank_test(script, statement)[1]
    line = (
        f"{sys_name}.stdout = {sys_name}.stdout if {first} else "
        f'open({os_name}.devnull, "w", encoding="utf-8"){_COMMENT}'
    )
    edit = Insert(script, statement, place.where, (line,), 35, under, tuple(dict.fromkeys(needs + more)))
    message = "from here on rank 0 alone prints (monitors of MindSpore too); errors and warnings of all ranks stay in their logs"
    return decide(CODE, CHANGED, script, statement, message, edit)


def _bar(context: Context, script: Script, call: cst.Call, name: str) -> Iterator[Decision]:
    short = name.rpartition(".")[2]
    if argument(call, None, "disable") is not None:
        yield decide(CODE, KEPT, script, call, f"{short} says itself where it is disabled")
    elif any(arg.star for arg in call.args):
        yield decide(CODE, KEPT, script, call, f"{short} may be disabled in its * or ** arguments: left as it is")
    else:
        needs: tuple[Need, ...] = ()
        test = f"{context.startup.rank_names.rank} not in (None, 0)"
        if not context.startup.visible(script, call):
            _, first, needs = context.rank_test(script, call)
            test = f"not ({first})"
        message = f"{short} shows its bar on rank 0 alone"
        yield decide(CODE, CHANGED, script, call, message, AddKeywords(script, call, (("disable", test),), needs))
