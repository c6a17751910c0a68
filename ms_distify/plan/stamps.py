"""Names with the time or chance in them that all ranks must know: what one rank writes there, all ranks read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ..mindspore import names
from ..model import Edit, Wrap
from ..reading.program import Program
from ..reading.roles import argument
from ..reading.script import Script
from .files import Files
from .files_edits import line_of
from .helpers import Helpers


@dataclass(frozen=True)
class Stamp:
    """A time or a random value in the name of what one rank writes and all ranks read.

    Attributes:
        script: its file.
        call: what gives it.
        read: where the name is read.
        edits: those by which all ranks get the value of rank 0; none where it is refused.
        known: whether an earlier run has seen to it.
    """

    script: Script
    call: cst.Call
    read: str
    edits: tuple[Edit, ...] = ()
    known: bool = False


def stamps(program: Program, helpers: Helpers, files: Files) -> list[Stamp]:
    """Return the times that ranks have to have in common, and remember that they will."""
    reads: dict[cst.Call, tuple[Script, str]] = {}
    for script, call, path in _paths(program, files, reads=True):
        if not files.guarded(script, call) and not files.by_rank(script, path):
            for home, clock in files.clocks(script, path):
                reads.setdefault(clock, (home, script.where(call)))
    if not reads:
        return []
    written: set[cst.Call] = set()
    for script, call, path in _paths(program, files, reads=False):
        saved = program.flow.qualified(script, call) in _BY_RANK_0
        # What else is written into a temporary folder, each rank writes into its own.
        written |= {
            clock
            for home, clock in files.clocks(script, path)
            if saved or program.flow.qualified(home, clock) not in names.OWN_PLACES
        }
    found = []
    for clock, (script, read) in reads.items():
        if clock not in written or any(parent in reads for parent in script.tree.ancestors(clock)):
            continue  # what lies there is not of this run, or it is part of another time
        statement = line_of(script, clock)
        if helpers.is_shared(script, clock):
            found.append(Stamp(script, clock, read, known=True))
        elif statement is None or not files.alike(script, clock):
            found.append(Stamp(script, clock, read))
        else:
            name, define = helpers.same(script)
            before = f"{name}(lambda: " if program.flow.qualified(script, clock) in names.TEMPORARY else f"{name}("
            found.append(Stamp(script, clock, read, (*define, Wrap(script, clock, before, ")"))))
            files.waits.add(statement)
        files.shared.add(clock)
    return found


_BY_RANK_0 = (names.SAVE_CHECKPOINT, names.MODEL_CHECKPOINT)


def _paths(program: Program, files: Files, *, reads: bool) -> Iterator[tuple[Script, cst.Call, cst.BaseExpression]]:
    """Yield the calls that read (or write) files and folders, with the path."""
    places: dict[str, tuple[str, int | None]] = {
        **names.READERS,
        **names.FOLDER_READERS,
        names.LOAD_CHECKPOINT: ("ckpt_file_name", 0),
    }
    if not reads:
        places = {**names.SAVERS, **names.WRITER_DIRECTORIES, names.SAVE_CHECKPOINT: ("ckpt_file_name", 1)}
        places.update({"os.makedirs": ("name", 0), "os.mkdir": ("path", 0)})
    for script, call, name in program.calls(*places, *names.OPENERS):
        if name in names.OPENERS:
            writes, mode = files.writes(script, call, name)
            path = argument(call, 0, names.OPENERS[name][0]) if writes != reads and mode != "?" else None
        else:
            path = argument(call, places[name][1], places[name][0])
        if path is not None:
            yield script, call, path


__all__ = ["Stamp", "stamps"]
