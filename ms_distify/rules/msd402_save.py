"""Rank 0 alone saves.

``save_checkpoint`` and ``export`` write one path from every rank at once (FACTS 3). Weights are equal on all ranks, so
rank 0 writes for all, the best ones and those of the optimizer too. A ``load_checkpoint`` after training reads what
rank 0 wrote: all ranks wait for it there (MSD404 says how). Where ranks may not come to the load alike, it is noted.

Before::

    ms.save_checkpoint(net, "last.ckpt")
    ms.load_checkpoint("last.ckpt", net)

After::

    if rank_id in (None, 0):
        ms.save_checkpoint(net, "last.ckpt")
    wait_for_rank_0("to write what ms.load_checkpoint('last.ckpt', net) reads")
    ms.load_checkpoint("last.ckpt", net)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import Decision, Insert
from ..plan.files import Files
from ..plan.files_edits import line_of, rank_0_alone, short, waited_for
from ..reading.roles import argument
from ..reading.script import Script
from . import CHANGED, KEPT, NOTED, REFUSED, Context, decide, rule

CODE = "MSD402"


@rule(CODE, "rank 0 alone saves")
def check(context: Context) -> Iterator[Decision]:
    """Guard every save; make loads wait for it."""
    program = context.program
    files = context.files
    saves = False
    for script, call, name in program.calls(names.SAVE_CHECKPOINT, names.EXPORT):
        saves = True
        what = name.rpartition(".")[2]
        if files.guarded(script, call):
            yield decide(CODE, KEPT, script, call, f"{what} already depends on the rank")
            continue
        _, zero, needs = context.rank_test(script, call)
        edit = rank_0_alone(script, call, zero, needs)
        if edit is None:
            message = f"{what} stands in a larger statement; give it a line of its own, so that rank 0 alone can run it"
            yield decide(CODE, REFUSED, script, call, message)
            continue
        yield decide(CODE, CHANGED, script, call, f"{what}: rank 0 alone writes", edit)
    if not saves and not any(True for _ in program.calls(names.MODEL_CHECKPOINT)):
        return
    last = min((event.order for event in context.startup.trains), default=0)
    visited = program.timeline.visited
    for script, call, _ in (*program.calls(names.LOAD_CHECKPOINT), *_listed(context)):
        if visited.get(call, last) < last:
            continue  # what an earlier start wrote
        if not files.guarded(script, call):
            yield _load(context, files, script, call, reached=call in visited)


def _listed(context: Context) -> Iterator[tuple[Script, cst.Call, str]]:
    """Yield what lists a folder that the callback writes checkpoints into: rank 0 alone makes it."""
    program, files = context.program, context.files
    written = [
        files.keys(script, folder)
        for script, call, _ in program.calls(names.MODEL_CHECKPOINT)
        for folder in [argument(call, 1, "directory")]
        if folder is not None
    ]
    for script, call, name in program.calls(*names.FOLDER_READERS):
        path = argument(call, names.FOLDER_READERS[name][1], names.FOLDER_READERS[name][0])
        if path is not None and any(files.keys(script, path) & keys for keys in written):
            yield script, call, name


def _load(context: Context, files: Files, script: Script, call: cst.Call, *, reached: bool) -> Decision:
    """Make all ranks wait in front of a load, where all come by alike."""
    statement = line_of(script, call)
    if statement is not None and waited_for(script, context.helpers, statement, before=True):
        return decide(CODE, KEPT, script, call, "reads a checkpoint after training; all ranks wait for rank 0")
    if statement is None or not reached or not files.alike(script, call):
        message = "reads a checkpoint after training: a rank may read before rank 0 has written it"
        return decide(CODE, NOTED, script, call, message)
    files.waits.add(statement)
    line, define = context.helpers.wait(script, f"to write what {short(script, call)} reads")
    message = "reads a checkpoint after training: all ranks wait until rank 0 has written it"
    return decide(CODE, CHANGED, script, call, message, *define, Insert(script, statement, "before", (line,), 60))
