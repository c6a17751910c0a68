"""Rank 0 alone saves.

``save_checkpoint`` and ``export`` write one path from every rank at once (FACTS 3). Weights are equal on all ranks, so
rank 0 writes for all, the best ones and those of the optimizer too. A ``load_checkpoint`` (or ``load``) after training reads
what rank 0 wrote: all ranks wait for it there (MSD404 says how). Where ranks may not come to the load alike, they wait behind
the save; if they may not come by that alike either, it is noted.

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
from ..model import Decision, Edit, Insert
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
    saves = [(script, call, name) for script, call, name in program.calls(names.SAVE_CHECKPOINT, names.EXPORT)]
    loads = list(_loads(context)) if saves or any(True for _ in program.calls(names.MODEL_CHECKPOINT)) else []
    behind = {call: _saves_to_wait_behind(context, script, call, saves) for script, call, alike in loads if not alike}
    waits = {line for lines in behind.values() for line in lines}
    for script, call, name in saves:
        what = name.rpartition(".")[2]
        line = _line(context, script, call)
        waiting = _wait_behind(context, script, call, line) if line in waits and line is not None else []
        if files.guarded(script, call):
            if waiting:
                yield decide(
                    CODE, CHANGED, script, call, f"{what}: all ranks wait until rank 0 has written it", *waiting
                )
            else:
                yield decide(CODE, KEPT, script, call, f"{what} already depends on the rank")
            continue
        _, zero, needs = context.rank_test(script, call)
        edit = rank_0_alone(script, call, zero, needs)
        if edit is None:
            message = f"{what} stands in a larger statement; give it a line of its own, so that rank 0 alone can run it"
            yield decide(CODE, REFUSED, script, call, message)
            continue
        wait = ", and all ranks wait until it has" if waiting else ""
        yield decide(CODE, CHANGED, script, call, f"{what}: rank 0 alone writes{wait}", edit, *waiting)
    for script, call, alike in loads:
        yield _load(context, script, call, alike=alike, behind=behind.get(call, []))


def _loads(context: Context) -> Iterator[tuple[Script, cst.Call, bool]]:
    """Yield what reads checkpoints after training, and whether all ranks come there alike."""
    program, files = context.program, context.files
    last = min((event.order for event in context.startup.trains), default=0)
    visited = program.timeline.visited
    for script, call, _ in (*program.calls(names.LOAD_CHECKPOINT, names.LOAD), *_listed(context)):
        if visited.get(call, last) < last:
            continue  # what an earlier start wrote
        if not files.guarded(script, call):
            alike = line_of(script, call) is not None and call in visited and files.alike(script, call)
            yield script, call, alike


def _line(context: Context, script: Script, save: cst.Call) -> cst.CSTNode | None:
    """Return the statement behind which a save is done: its line, or the ``if`` on the rank around it."""
    line = line_of(script, save)
    if line is None:
        return None
    around = script.tree.parent.get(script.tree.parent[line])
    if isinstance(around, cst.If) and context.program.mentions_rank(script, around.test):
        return line_of(script, around)
    return line


def _saves_to_wait_behind(
    context: Context, script: Script, load: cst.Call, saves: list[tuple[Script, cst.Call, str]]
) -> list[cst.CSTNode]:
    """Return the statements that write what a load may read, where all ranks come by each of them alike."""
    files = context.files
    path = argument(load, 0, "ckpt_file_name")
    wanted = files.keys(script, path) if path is not None else frozenset()
    lines = []
    for home, save, _ in saves:
        written = argument(save, 1, "ckpt_file_name")
        if written is None or not files.keys(home, written) & wanted:
            continue
        line = _line(context, home, save)
        if line is None or not files.alike(home, line):
            return []
        lines.append(line)
    files.waits.update(lines)
    return lines


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


def _wait_behind(context: Context, script: Script, call: cst.Call, line: cst.CSTNode) -> list[Edit]:
    """Return the edits by which all ranks wait behind a save, none where they do already."""
    if waited_for(script, context.helpers, line, before=False):
        return []
    text, define = context.helpers.wait(script, f"to finish {short(script, call)}")
    return [*define, Insert(script, line, "after", (text,), 5)]


def _load(context: Context, script: Script, call: cst.Call, *, alike: bool, behind: list[cst.CSTNode]) -> Decision:
    """Make all ranks wait in front of a load where all come by alike, else behind what writes it."""
    statement = line_of(script, call)
    if statement is not None and waited_for(script, context.helpers, statement, before=True):
        return decide(CODE, KEPT, script, call, "reads a checkpoint after training; all ranks wait for rank 0")
    if behind:
        return decide(
            CODE, KEPT, script, call, "reads a checkpoint after training; all ranks wait behind what writes it"
        )
    if not alike or statement is None:
        message = "reads a checkpoint after training: a rank may read before rank 0 has written it"
        return decide(CODE, NOTED, script, call, message)
    context.files.waits.add(statement)
    line, define = context.helpers.wait(script, f"to write what {short(script, call)} reads")
    message = "reads a checkpoint after training: all ranks wait until rank 0 has written it"
    return decide(CODE, CHANGED, script, call, message, *define, Insert(script, statement, "before", (line,), 60))
