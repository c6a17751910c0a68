"""Checkpoints and summaries that a callback writes get a place of each rank's own.

``ModelCheckpoint`` writes the same path on every rank: no rank is in the name (FACTS 3). Rank 0 writes where the program
says, so that what reads the files later finds them; the other ranks write into a folder of their own beside it.

Before::

    callback = ms.ModelCheckpoint(prefix="net", directory="./out", config=config)

After::

    callback = ms.ModelCheckpoint(prefix="net", directory="./out" if rank_id in (None, 0) else
                                  os.path.join("./out", f"rank_{rank_id}"), config=config)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import AddKeywords, Decision, Replace
from ..reading.bindings import literal
from ..reading.roles import argument
from . import CHANGED, KEPT, REFUSED, Context, decide, rule

CODE = "MSD401"
_PLAIN = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.SimpleString, cst.FormattedString)


@rule(CODE, "files that callbacks write")
def check(context: Context) -> Iterator[Decision]:
    """Give each rank its own directory."""
    program = context.program
    for script, call, name in program.calls(*names.WRITER_DIRECTORIES):
        parameter, position = names.WRITER_DIRECTORIES[name]
        short = name.rpartition(".")[2]
        value = argument(call, position, parameter)
        if program.guarded_by_rank(script, call) or (value is not None and program.mentions_rank(script, value)):
            yield decide(CODE, KEPT, script, call, f"{short} already writes by rank")
            continue
        if value is None and any(arg.star for arg in call.args):
            message = f"* or ** arguments of {short} hide its {parameter}; write it out"
            yield decide(CODE, REFUSED, script, call, message)
            continue
        rank, zero, needs = context.rank_test(script, call)
        own = f'f"rank_{{{rank}}}"'
        message = f"{short}: rank 0 writes where it did, the others into rank_<i> beside it"
        if value is None or literal(value) is None:
            text = f"None if {zero} else {own}"
            edit = (
                AddKeywords(script, call, ((parameter, text),), needs)
                if value is None
                else Replace(script, value, text, needs)
            )
        else:
            os_name, more = context.startup.speller(script).spell("os", call)
            old = script.tree.full_text(value)
            kept = old if isinstance(value, _PLAIN) else f"({old})"
            # A folder that is None at run time is the current one.
            base = old if isinstance(value, (cst.SimpleString, cst.FormattedString)) else f'{kept} or ""'
            text = f"{kept} if {zero} else {os_name}.path.join({base}, {own})"
            edit = Replace(script, value, f"({text})" if value.lpar else text, tuple(dict.fromkeys(needs + more)))
        yield decide(CODE, CHANGED, script, call, message, edit)
