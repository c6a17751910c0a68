"""Folders that every rank makes.

All ranks run ``os.makedirs`` at once; the second one finds the folder and fails. On many ranks an existing folder is
accepted; on one card the call does what it did.

Before::

    os.makedirs("./out")

After::

    os.makedirs("./out", exist_ok=rank_size is not None)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..model import AddKeywords, Decision
from ..reading.roles import argument
from . import CHANGED, KEPT, NOTED, Context, decide, rule

CODE = "MSD403"


@rule(CODE, "folders that every rank makes")
def check(context: Context) -> Iterator[Decision]:
    """Let folders be made by several ranks at once."""
    program = context.program
    for script, call, name in program.calls("os.makedirs", "os.mkdir", "shutil.rmtree"):
        if program.guarded_by_rank(script, call):
            yield decide(CODE, KEPT, script, call, f"{name} already depends on the rank")
        elif name == "os.makedirs":
            if argument(call, 2, "exist_ok") is not None or any(arg.star for arg in call.args):
                yield decide(CODE, KEPT, script, call, "makedirs says exist_ok itself")
                continue
            many, needs = context.many_ranks(script, call)
            edit = AddKeywords(script, call, (("exist_ok", many),), needs)
            yield decide(CODE, CHANGED, script, call, "makedirs: another rank may have made it", edit)
        else:
            message = f"{name} runs on every rank at once; make or remove folders before the start, or on rank 0"
            yield decide(CODE, NOTED, script, call, message)
    for script in program.scripts:
        for call in script.bindings.calls:
            if isinstance(call.func, cst.Attribute) and call.func.attr.value == "mkdir":
                if program.flow.qualified(script, call) != "os.mkdir" and argument(call, 2, "exist_ok") is None:
                    message = "mkdir runs on every rank at once; pass exist_ok=True (judged by the method's name)"
                    yield decide(CODE, NOTED, script, call, message)
