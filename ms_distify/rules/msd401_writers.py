"""Checkpoints that a callback writes are written by rank 0; other writers get a place of each rank's own.

``ModelCheckpoint`` writes the same path on every rank: no rank is in the name (FACTS 3). Weights are equal on all
ranks, so rank 0 alone has the callback, and writes where the program says: what reads the files later (a resume, the
best one, an evaluation script) finds them, and nothing else lies beside them. The other ranks get a callback that does
nothing. A callback whose attributes the program reads stays on every rank, with a folder of the rank's own; so do
summaries, TensorBoard writers and profilers. What records a run on a server (``wandb.init``) does so on rank 0.

Before::

    callback = ms.ModelCheckpoint(prefix="net", directory="./out")
    summary = ms.SummaryCollector("./log")

After::

    callback = ms.ModelCheckpoint(prefix="net", directory="./out") if rank_id in (None, 0) else ms.Callback()
    summary = ms.SummaryCollector("./log" if rank_id in (None, 0) else os.path.join("./log", f"rank_{rank_id}"))
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import AddKeywords, Decision, Need, Replace, Wrap
from ..plan.files import Files
from ..reading.bindings import literal
from ..reading.roles import argument
from ..reading.script import Script
from . import CHANGED, KEPT, NOTED, REFUSED, Context, decide, rule

CODE = "MSD401"
_PLAIN = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.SimpleString, cst.FormattedString)


@rule(CODE, "files that callbacks write")
def check(context: Context) -> Iterator[Decision]:
    """Let rank 0 write checkpoints, and give each rank its own directory for the rest."""
    program = context.program
    files = context.files
    callbacks: dict[Script, tuple[str, tuple[Need, ...]]] = {}
    for script, call, name in program.calls(*names.WRITER_DIRECTORIES):
        parameter, position = names.WRITER_DIRECTORIES[name]
        short = name.rpartition(".")[2]
        value = argument(call, position, parameter)
        if (
            files.guarded(script, call)
            or any(_asked(arg) == "on_trace_ready" for arg in call.args)
            or (value is not None and program.mentions_rank(script, value))
        ):
            yield decide(CODE, KEPT, script, call, f"{short} already writes by rank")
        elif name == names.MODEL_CHECKPOINT and not _looked_into(context, script, call):
            if script not in callbacks:
                callbacks[script] = _callback(context, script, call)
            yield _rank_0_alone(context, script, call, callbacks[script])
        else:
            yield _own_folder(context, script, call, name, value)
    for script, call, name in program.calls(*names.WRITES_BY_PROCESS):
        short = name.rpartition(".")[2]
        yield decide(CODE, KEPT, script, call, f"{short}: each process writes into a folder of its own")
    for script, call, name in program.calls(*names.TRACKERS):
        if not files.guarded(script, call):
            yield _one_run(context, script, call, name)
    yield from _subclasses(context, files)


def _asked(arg: cst.Arg) -> str:
    return arg.keyword.value if arg.keyword is not None else ""


def _one_run(context: Context, script: Script, call: cst.Call, name: str) -> Decision:
    """Let rank 0 alone record a run; what the others log then goes nowhere."""
    parameter, off = names.TRACKERS[name]
    value = argument(call, None, parameter)
    if value is None and any(arg.star for arg in call.args):
        message = f"{name} would record a run for every rank, and ** arguments may hide its {parameter}; write it out"
        return decide(CODE, NOTED, script, call, message)
    _, zero, needs = context.rank_test(script, call)
    if value is not None and context.program.mentions_rank(script, value):
        return decide(CODE, KEPT, script, call, f"{name} already minds the rank")
    old = "None" if value is None else script.tree.full_text(value)
    kept = old if value is None or isinstance(value, _PLAIN) or value.lpar else f"({old})"
    text = f'{kept} if {zero} else "{off}"'
    edit = (
        AddKeywords(script, call, ((parameter, text),), needs) if value is None else Replace(script, value, text, needs)
    )
    return decide(CODE, CHANGED, script, call, f"{name}: rank 0 alone records the run", edit)


def _rank_0_alone(context: Context, script: Script, call: cst.Call, callback: tuple[str, tuple[Need, ...]]) -> Decision:
    """Put a callback that does nothing in the place of one that writes."""
    _, zero, needs = context.rank_test(script, call)
    nothing, more = callback
    parent = script.tree.parent.get(call)
    left, right = ("", "") if call.lpar or isinstance(parent, (cst.Arg, cst.Element, cst.Assign)) else ("(", ")")
    edit = Wrap(script, call, left, f" if {zero} else {nothing}(){right}", tuple(dict.fromkeys(needs + more)))
    return decide(CODE, CHANGED, script, call, "ModelCheckpoint: rank 0 alone writes, where it did", edit)


def _callback(context: Context, script: Script, call: cst.Call) -> tuple[str, tuple[Need, ...]]:
    """Return how the class of callbacks that do nothing is written, and its import.

    Every release has it beside ``ModelCheckpoint``, so it comes from where the program takes that.
    """
    func = call.func
    if isinstance(func, cst.Attribute):
        return f"{script.tree.full_text(func.value)}.Callback", ()
    for scope in (script.bindings.scope_of(call), script.bindings.module):
        for bound, bindings in scope.bindings.items():
            if all(b.kind == "import" and names.canonical(b.qualified or "") == names.CALLBACK for b in bindings):
                return bound, ()
    found = script.bindings.lookup(func) if isinstance(func, cst.Name) else []
    imported = [b.qualified for b in found if b.qualified and b.qualified.startswith("mindspore.")]
    module = imported[0].rpartition(".")[0] if imported else "mindspore.train.callback"
    local = context.startup.speller(script).fresh("Callback", "NoCallback")
    return local, (Need(module, "Callback", local),)


def _looked_into(context: Context, script: Script, call: cst.Call) -> bool:
    """Whether the program reads an attribute of the callback, as far as the name it is bound to tells."""
    parent = script.tree.parent.get(call)
    if not isinstance(parent, (cst.Assign, cst.AnnAssign, cst.Arg, cst.Element, cst.Return)):
        return not isinstance(parent, (cst.IfExp, cst.BooleanOperation))
    if not isinstance(parent, (cst.Assign, cst.AnnAssign)):
        return False
    targets = [t.target for t in parent.targets] if isinstance(parent, cst.Assign) else [parent.target]
    for target in targets:
        for home in context.program.scripts:
            for node in home.tree.nodes(cst.Attribute):
                assert isinstance(node, cst.Attribute)
                held = node.value
                if isinstance(target, cst.Name) and isinstance(held, cst.Name) and held.value == target.value:
                    if home is script and any(binding.value is call for binding in home.bindings.lookup(held)):
                        return True
                elif isinstance(target, cst.Attribute) and isinstance(held, cst.Attribute):
                    if held.attr.value == target.attr.value:
                        return True
    return False


def _own_folder(
    context: Context, script: Script, call: cst.Call, name: str, value: cst.BaseExpression | None
) -> Decision:
    """Give each rank its own folder."""
    parameter, _ = names.WRITER_DIRECTORIES[name]
    short = name.rpartition(".")[2]
    default = names.WRITER_DEFAULTS.get(name)
    if value is None and any(arg.star for arg in call.args):
        message = f"* or ** arguments of {short} hide its {parameter}; write it out"
        return decide(CODE, NOTED if default else REFUSED, script, call, message)
    rank, zero, needs = context.rank_test(script, call)
    own = f'f"rank_{{{rank}}}"'
    message = f"{short}: rank 0 writes where it did, the others into rank_<i> beside it"
    if default and value is None:
        os_name, more = context.startup.speller(script).spell("os", call)
        text = f'"{default}" if {zero} else {os_name}.path.join("{default}", {own})'
        edit: AddKeywords | Replace = AddKeywords(
            script, call, ((parameter, text),), tuple(dict.fromkeys(needs + more))
        )
    elif value is None or literal(value) is None:
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
    return decide(CODE, CHANGED, script, call, message, edit)


def _subclasses(context: Context, files: Files) -> Iterator[Decision]:
    """Note objects of classes of the program that inherit from a writer."""
    flow = context.program.flow
    for script in context.program.scripts:
        for call in script.bindings.calls:
            for origin in flow.called(script, call):
                if origin.kind == "class" and isinstance(origin.node, cst.ClassDef):
                    bases = flow.library_bases(origin.script, origin.node) & set(names.WRITER_DIRECTORIES)
                    if bases and not files.guarded(script, call):
                        short = min(bases).rpartition(".")[2]
                        message = f"a {short} of the program's own writes on every rank; give each rank a folder"
                        yield decide(CODE, NOTED, script, call, message)
