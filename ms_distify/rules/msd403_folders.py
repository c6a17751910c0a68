"""Folders that every rank makes or removes.

All ranks run ``os.makedirs`` at once; the second one finds the folder and fails. On many ranks an existing folder is
accepted; on one card the call does what it did. What removes a folder runs on rank 0 alone, and all ranks wait until
that is done, so that none loses what it has written since; where they may not come there alike, it is noted. A folder
with the time in its name differs between ranks, which is noted: only rank 0 writes into its own.

Before::

    shutil.rmtree("./out")
    os.makedirs("./out")
    os.mkdir("./log")

After::

    if rank_id in (None, 0):
        shutil.rmtree("./out")
    wait_for_rank_0('to finish shutil.rmtree("./out")')
    os.makedirs("./out", exist_ok=rank_size is not None)
    os.makedirs("./log", exist_ok=True) if rank_size is not None else os.mkdir("./log")
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..model import AddKeywords, Decision, Wrap
from ..plan.files import Files
from ..plan.files_edits import guard_and_wait, settle, short
from ..reading.roles import argument
from ..reading.script import Script
from . import CHANGED, KEPT, NOTED, Context, decide, rule

CODE = "MSD403"


@rule(CODE, "folders that every rank makes or removes")
def check(context: Context) -> Iterator[Decision]:
    """Let folders be made by several ranks at once, and removed by one."""
    program = context.program
    files = context.files
    for script, call, name in program.calls("os.makedirs", "os.mkdir", "shutil.rmtree"):
        path = argument(call, 0, "path" if name == "shutil.rmtree" else "name")
        if files.guarded(script, call):
            yield decide(CODE, KEPT, script, call, f"{name} already depends on the rank")
        elif name == "os.makedirs":
            yield _made(context, script, call)
        elif name == "os.mkdir":
            yield _made_singly(context, script, call)
        elif path is not None and files.own_place(script, path):
            yield decide(CODE, KEPT, script, call, f"{name} removes what is the rank's own")
        else:
            yield _removed(context, files, script, call)
        if name != "shutil.rmtree" and path is not None and files.clock(script, path):
            message = "this folder has the time in its name and differs between ranks; rank 0 writes into its own"
            yield decide(CODE, NOTED, script, call, message)
    for script in program.scripts:
        for call in script.bindings.calls:
            if isinstance(call.func, cst.Attribute) and call.func.attr.value == "mkdir":
                if program.flow.qualified(script, call) != "os.mkdir" and not program.flow.targets(script, call):
                    yield from _path_made(context, script, call, call.func.value)


def _made(context: Context, script: Script, call: cst.Call) -> Decision:
    if argument(call, 2, "exist_ok") is not None or any(arg.star for arg in call.args):
        return decide(CODE, KEPT, script, call, "makedirs says exist_ok itself")
    many, needs = context.many_ranks(script, call)
    edit = AddKeywords(script, call, (("exist_ok", many),), needs)
    return decide(CODE, CHANGED, script, call, "makedirs: another rank may have made it", edit)


def _made_singly(context: Context, script: Script, call: cst.Call) -> Decision:
    """``os.mkdir`` knows no ``exist_ok``: on many ranks ``os.makedirs`` does its work."""
    if not call.args or len(call.args) > 2 or any(arg.star or arg.keyword for arg in call.args):
        message = "os.mkdir runs on every rank at once; use os.makedirs with exist_ok=True"
        return decide(CODE, NOTED, script, call, message)
    many, needs = context.many_ranks(script, call)
    os_name, more = context.startup.speller(script).spell("os", call)
    arguments = ", ".join(script.tree.full_text(arg.value) for arg in call.args)
    parent = script.tree.parent.get(call)
    left, right = ("", "") if isinstance(parent, cst.Expr) or call.lpar else ("(", ")")
    before = f"{left}{os_name}.makedirs({arguments}, exist_ok=True) if {many} else "
    edit = Wrap(script, call, before, right, tuple(dict.fromkeys(needs + more)))
    return decide(CODE, CHANGED, script, call, "mkdir: another rank may have made it", edit)


def _removed(context: Context, files: Files, script: Script, call: cst.Call) -> Decision:
    only = context.rank_test(script, call)[1:]
    edits, _ = guard_and_wait(context.helpers, files, script, call, only, f"to finish {short(script, call)}")
    if not edits:
        message = "shutil.rmtree runs on every rank at once; make or remove folders before the start, or on rank 0"
        return decide(CODE, NOTED, script, call, message)
    settle(files, edits)
    message = "rmtree: rank 0 alone removes it, and all ranks wait until it has"
    return decide(CODE, CHANGED, script, call, message, *edits)


def _path_made(context: Context, script: Script, call: cst.Call, path: cst.BaseExpression) -> Iterator[Decision]:
    """``Path.mkdir``; other objects have methods of this name, too."""
    if argument(call, 2, "exist_ok") is not None or context.program.guarded_by_rank(script, call):
        return
    if any(arg.star for arg in call.args) or not _is_path(context, script, path):
        message = "mkdir runs on every rank at once; pass exist_ok=True (judged by the method's name)"
        yield decide(CODE, NOTED, script, call, message)
        return
    many, needs = context.many_ranks(script, call)
    edit = AddKeywords(script, call, (("exist_ok", many),), needs)
    yield decide(CODE, CHANGED, script, call, "mkdir: another rank may have made it", edit)


def _is_path(context: Context, script: Script, node: cst.BaseExpression) -> bool:
    """Whether an expression is surely a ``pathlib.Path``."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide):
        return _is_path(context, script, node.left)
    if isinstance(node, cst.Attribute) and node.attr.value == "parent":
        return _is_path(context, script, node.value)
    found = context.program.flow.origins(script, node)
    return bool(found) and all(
        (origin.kind == "call" and origin.qualified in ("pathlib.Path", "pathlib.Path.cwd", "pathlib.Path.home"))
        or (
            isinstance(origin.node, cst.BinaryOperation)
            and origin.node is not node
            and _is_path(context, origin.script, origin.node)
        )
        for origin in found
    )
