"""Data that the program prepares before it reads it: rank 0 prepares, all ranks wait.

``FileWriter`` on every rank writes one MindRecord file from N processes; on rank 0 only, the others read before it is
finished. The same goes for ``dataset.save``, downloads, unpacking, and copies made before the training. So rank 0 alone
runs what prepares the data (the ``if not os.path.exists(...)`` that makes it, the call of a function that does nothing
else, or the statements of one writer), and right behind it **all** ranks wait.

They wait through files in the working folder, which the ranks must share, by a function that is put into the program: a
rank that waits touches a file of its own until rank 0, when it is done, takes that away. Left-overs of a run that was
killed are told from it, no init is needed, and after two hours the wait ends with an error that says what it waited for
(``timeout``). Operators would not do: on CPU a late ``AllReduce`` fails after 30 seconds and
``mint.distributed.barrier`` waits for nobody (2.10), on Ascend they wait as long as HCCL allows. Ranks on several hosts
need a file system in common for the data; where each host has its own, prepare the data on each before the start.

Where nothing but the question whether the very file is there decides, and the program goes on with values of the
preparation, rank 0 goes first and the others find what it made, as with the caches of MSD405. Within what rank 0 does
alone, nobody waits for anybody.

What cannot be told to be the same on all ranks is refused (MindRecord files) or noted (downloads): preparation under a
condition that ranks may answer differently, that gives values the program goes on with, or that draws random numbers.

Before::

    if not os.path.exists("train.mindrecord"):
        convert("raw", "train.mindrecord")
    train = ds.MindDataset("train.mindrecord")

After::

    if rank_id in (None, 0) and not os.path.exists("train.mindrecord"):
        convert("raw", "train.mindrecord")
    wait_for_rank_0("to finish convert('raw', 'train.mindrecord')")
    train = ds.MindDataset("train.mindrecord")
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import Decision
from ..reading.roles import Use
from ..reading.script import Script
from . import CHANGED, KEPT, NOTED, REFUSED, Context, decide, rule

CODE = "MSD404"


@rule(CODE, "data prepared by the program")
def check(context: Context) -> Iterator[Decision]:
    """Let rank 0 prepare, and all ranks wait."""
    program = context.program
    files = context.files
    for script, call, name in (*program.calls(*names.PREPARES, *names.FETCHES, *names.COPIES), *_rows(context)):
        short = name.rpartition(".")[2]
        fetched = name in names.FETCHES
        if name in names.COPIES and not context.prepared.get(call, ([], ""))[0]:
            continue  # a copy of what the training gave, or one that MSD405 looks at
        if call not in context.prepared and files.guarded(script, call):
            yield decide(CODE, KEPT, script, call, f"{short} already depends on the rank")
            continue
        if context.turns.taken(script, call):
            yield decide(CODE, KEPT, script, call, f"{short}: rank 0 comes here first already")
            continue
        if name == _SAVED and any(use.role == "train" for use in _uses(context, script, call)):
            message = (
                "this dataset trains as well: each rank has its own share of the rows, and would write that; save rows of a "
                "dataset that is built for it"
            )
            yield decide(CODE, REFUSED, script, call, message)
            continue
        if call not in program.timeline.visited and not fetched:
            yield decide(CODE, KEPT, script, call, f"{short} is not reached by this program")
            continue
        edits, reason = context.prepared[call]
        first = [] if edits else context.turns.edits(call, context.rank_0)
        if first:
            message = f"{short}: rank 0 comes here first, and the others find what it made"
            yield decide(CODE, CHANGED, script, call, message, *first)
        elif edits:
            message = f"{short}: rank 0 prepares this data, and all ranks wait for it"
            yield decide(CODE, CHANGED, script, call, message, *edits)
        elif fetched:
            message = f"{name} runs on every rank at once ({reason}); prepare the data before the start"
            yield decide(CODE, NOTED, script, call, message)
        else:
            message = (
                f"every rank would write this file at once, and rank 0 cannot do it alone ({reason}); write "
                "it in a script of its own, before training, or in a function that gives nothing back"
            )
            yield decide(CODE, REFUSED, script, call, message)


_SAVED = "dataset.save"


def _rows(context: Context) -> Iterator[tuple[Script, cst.Call, str]]:
    return ((script, call, _SAVED) for script, call in context.files.rows_saved())


def _uses(context: Context, script: Script, call: cst.Call) -> Iterator[Use]:
    """Yield the uses of the dataset whose rows are saved."""
    assert isinstance(call.func, cst.Attribute)
    nodes = {origin.node for origin in context.program.flow.origins(script, call.func.value)}
    for site in context.program.roles.sites:
        if site.call in nodes:
            yield from site.uses
