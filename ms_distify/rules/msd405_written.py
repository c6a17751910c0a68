r"""What the program writes by itself, rank 0 writes.

``open(path, "w")``, ``np.save``, ``savefig``, a log file: every rank would write one path. A file that is opened for
writing is the null device on the other ranks, so that what is done with it later works everywhere; a call that writes,
copies, moves or removes by itself runs on rank 0 alone. A path with the rank in it is left alone, and so is what runs
on one rank already. Logs that rename their file, files that must be new, a file whose handle is read again, and HDF5 or
Excel files whose handle goes on behind its `with` get a name of the rank's own. Commands of the shell and databases are
noted. A file that the program reads back later is written by rank 0 before any rank goes on to read it: all wait at the
place where it is read (see MSD404). A cache, which is loaded where it is there and made and saved where it is not, is
made by rank 0 first: the others wait in front of it, and find the whole file. Where ranks may not come to such a place
alike, nothing is changed and the note says so.

Before::

    with open("log.txt", "a") as log:
        log.write(f"{loss}\n")
    np.save("losses.npy", losses)

After::

    with open("log.txt" if rank_id in (None, 0) else os.devnull, "a") as log:
        log.write(f"{loss}\n")
    if rank_id in (None, 0):
        np.save("losses.npy", losses)

Before::

    if os.path.exists("rows.npy"):
        rows = np.load("rows.npy")
    else:
        rows = build()
        np.save("rows.npy", rows)

After::

    if rank_id not in (None, 0):
        wait_for_rank_0("to make or find what comes of np.save('rows.npy', rows)")
    if os.path.exists("rows.npy"):
        rows = np.load("rows.npy")
    else:
        rows = build()
        if rank_id in (None, 0):
            np.save("rows.npy", rows)
    if rank_id in (None, 0):
        wait_for_rank_0("to make or find what comes of np.save('rows.npy', rows)")
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import Decision, Edit, Guard, Need, Replace
from ..plan.files import Files
from ..plan.files_alone import misses
from ..plan.files_edits import can_be_guarded, rank_0_alone, waits_before
from ..reading.roles import argument
from ..reading.script import Script
from ..reading.tree import walk
from . import CHANGED, KEPT, NOTED, Context, decide, rule

CODE = "MSD405"
_PLAIN = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.SimpleString, cst.FormattedString)
# Methods of an open file that look at what it holds.
_LOOKS = frozenset({"read", "readline", "readlines", "seek", "tell", "truncate", "readinto"})


@rule(CODE, "files that the program writes")
def check(context: Context) -> Iterator[Decision]:
    """Let rank 0 write."""
    if not context.startup.trains:
        return
    files = context.files
    for script in context.program.scripts:
        for call in script.bindings.calls:
            if context.helpers.is_wait(script, call):
                continue
            name = context.program.flow.qualified(script, call)
            if name in names.OPENERS:
                yield from _opened(context, files, script, call, name)
            elif name in names.LOGGERS or name in names.ROTATING:
                parameter, position = {**names.LOGGERS, **names.ROTATING}[name]
                path = argument(call, position, parameter)
                if path is not None and (name != "loguru.logger.add" or _is_text(context, script, path)):
                    yield _redirected(context, files, script, call, path, name, own=name in names.ROTATING)
            elif context.prepared.get(call, ([], ""))[0]:
                continue  # MSD404 has it
            elif name in names.SAVERS:
                parameter, position = names.SAVERS[name]
                yield from _saved(context, files, script, call, argument(call, position, parameter), name)
            elif name in names.FILE_OBJECTS:
                if _for_writing(call, name):
                    yield _object(context, files, script, call, name)
            elif name in names.COMMANDS:
                if not files.guarded(script, call):
                    message = (
                        f"{name} runs a command on every rank at once; if it writes or removes files, run it on rank 0"
                    )
                    yield decide(CODE, NOTED, script, call, message)
            elif isinstance(call.func, cst.Attribute):
                yield from _method(context, files, script, call, call.func)


def _opened(context: Context, files: Files, script: Script, call: cst.Call, name: str) -> Iterator[Decision]:
    path = argument(call, 0, names.OPENERS[name][0])
    writes, mode = files.writes(script, call, name)
    if mode == "?" or (writes and path is None):
        if not files.guarded(script, call):
            message = f"whether this {name} writes cannot be told; if it does, open it on rank 0 alone"
            yield decide(CODE, NOTED, script, call, message)
    elif writes and path is not None:
        if "x" in mode:  # which the null device refuses
            yield _redirected(context, files, script, call, path, name, own=True)
        elif "+" in mode and (mode.startswith("r") or _looked_at(script, call)):
            yield _redirected(context, files, script, call, path, name, own=True, copies="r" in mode)
        else:
            yield _redirected(context, files, script, call, path, name)


def _redirected(
    context: Context,
    files: Files,
    script: Script,
    call: cst.Call,
    path: cst.BaseExpression,
    name: str,
    *,
    own: bool = False,
    copies: bool = False,
) -> Decision:
    """Give the other ranks the null device, or (``own``) a file of their own."""
    short = name.rpartition(".")[2]
    known = _known(context, files, script, call, path)
    if known:
        return decide(CODE, KEPT, script, call, f"{short}: {known}")
    if copies:
        message = f"{short} reads and changes one file on every rank; do it on rank 0 alone"
        return decide(CODE, NOTED, script, call, message)
    edits, trouble = _readers(context, files, script, call, path)
    if trouble:
        return decide(CODE, NOTED, script, call, f"{short} writes one file on every rank, but {trouble}")
    rank, zero, needs = context.rank_test(script, call)
    more: tuple[Need, ...] = ()
    old = script.tree.full_text(path)
    kept = old if isinstance(path, _PLAIN) or path.lpar else f"({old})"
    if own:
        other, message = f'str({kept}) + f".rank_{{{rank}}}"', "the other ranks write into <name>.rank_<i>"
    else:
        os_name, more = context.startup.speller(script).spell("os", call)
        other, message = f"{os_name}.devnull", "the other ranks write nothing"
    text = f"{kept} if {zero} else {other}"
    edit = Replace(script, path, text, tuple(dict.fromkeys(needs + more)))  # brackets around it stay
    return decide(CODE, CHANGED, script, call, f"{short}: rank 0 writes the file, {message}", edit, *edits)


def _saved(
    context: Context, files: Files, script: Script, call: cst.Call, path: cst.BaseExpression | None, name: str
) -> Iterator[Decision]:
    """Run a call that writes on rank 0 alone."""
    short = name.rpartition(".")[2]
    if path is None:
        if any(arg.star for arg in call.args) and not files.guarded(script, call):
            message = f"* or ** arguments of {short} hide where it writes; write it on rank 0 alone"
            yield decide(CODE, NOTED, script, call, message)
        return
    known = _known(context, files, script, call, path)
    if known:
        yield decide(CODE, KEPT, script, call, f"{short}: {known}")
        return
    # What is removed is read by nobody afterwards, until rank 0 has written it anew.
    edits, trouble = ([], "") if name in names.REMOVERS else _readers(context, files, script, call, path)
    zero, needs = context.rank_test(script, call)[1:]
    edit = rank_0_alone(script, call, zero, needs)
    trouble = trouble or files.needs_all(script, call)
    if edit is None or trouble:
        why = trouble or "it stands in a larger statement; give it a line of its own"
        yield decide(CODE, NOTED, script, call, f"{short} writes one file on every rank, but {why}")
        return
    what = "removes" if name in names.REMOVERS else "copies" if name in names.COPIES else "writes"
    if name == "os.chmod":  # of a file that rank 0 may have removed already
        what = "changes it"
    yield decide(CODE, CHANGED, script, call, f"{short}: rank 0 alone {what}", edit, *edits)


def _object(context: Context, files: Files, script: Script, call: cst.Call, name: str) -> Decision:
    """Let rank 0 alone run the ``with`` of an object that writes a file, or give the other ranks files of their own."""
    short = name.rpartition(".")[2]
    path = call.args[0].value if call.args and call.args[0].keyword is None and not call.args[0].star else None
    known = _known(context, files, script, call, path) if path is not None else ""
    if known or files.guarded(script, call):
        return decide(CODE, KEPT, script, call, f"{short}: {known or 'already depends on the rank'}")
    if path is None or name == "sqlite3.connect":
        message = f"{name} writes one file on every rank; put the rank into its name, or write on rank 0"
        return decide(CODE, NOTED, script, call, message)
    edits, trouble = _readers(context, files, script, call, path)
    if trouble:
        return decide(CODE, NOTED, script, call, f"{short} writes one file on every rank, but {trouble}")
    rank, zero, needs = context.rank_test(script, call)
    statement = script.tree.statement(call)
    if isinstance(statement, cst.With) and can_be_guarded(script, statement) and not misses(files, script, statement):
        guard = Guard(script, statement, zero, needs)
        return decide(CODE, CHANGED, script, call, f"{short}: rank 0 alone writes", guard, *edits)
    if not _evaluated_twice(context, script, path):
        message = f"{name} writes one file on every rank; give its path a name first, or write on rank 0"
        return decide(CODE, NOTED, script, call, message)
    os_name, more = context.startup.speller(script).spell("os", call)
    old = script.tree.full_text(path)
    kept = old if isinstance(path, _PLAIN) or path.lpar else f"({old})"
    # In front of the name: what follows the last dot says the kind of file.
    own = f'{os_name}.path.join({os_name}.path.dirname({old}), f"rank_{{{rank}}}_" + {os_name}.path.basename({old}))'
    edit = Replace(script, path, f"{kept} if {zero} else {own}", tuple(dict.fromkeys(needs + more)))
    message = f"{short}: rank 0 writes the file, the other ranks write into rank_<i>_<name>"
    return decide(CODE, CHANGED, script, call, message, edit, *edits)


def _evaluated_twice(context: Context, script: Script, path: cst.BaseExpression) -> bool:
    """Whether nothing but the value comes of evaluating a path, so that it may be done twice."""
    return not any(
        isinstance(part, (cst.NamedExpr, cst.Await))
        or (isinstance(part, cst.Call) and context.program.flow.qualified(script, part) not in names.PATH_FUNCTIONS)
        for part in walk(path)
    )


def _is_text(context: Context, script: Script, path: cst.BaseExpression) -> bool:
    """Whether a value is surely a path: loguru also logs to streams and functions."""
    found = context.program.flow.origins(script, path)
    return bool(found) and all(
        isinstance(origin.node, (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString, cst.BinaryOperation))
        or origin.qualified in ("os.path.join", "str", "pathlib.Path")
        for origin in found
    )


def _method(context: Context, files: Files, script: Script, call: cst.Call, func: cst.Attribute) -> Iterator[Decision]:
    """Methods that write: ``figure.savefig``, ``frame.to_csv``, ``path.write_text``, ``path.open("w")``."""
    method = func.attr.value
    if method in names.SAVE_METHODS:
        if context.program.flow.targets(script, call) or not call.args:
            return
        position = names.SAVE_METHODS[method]
        path = func.value if position is None else call.args[0].value
        yield from _saved(context, files, script, call, path, method)
    elif method == "save" and call.args and _is_picture(context, script, func.value):
        yield from _saved(context, files, script, call, call.args[0].value, method)
    elif method == "open" and len(call.args) in (1, 2) and not context.program.flow.targets(script, call):
        mode = argument(call, 0, "mode")
        value = context.program.flow.constant(script, mode) if mode is not None else ...
        if isinstance(value, str) and set(value) <= set("wa+bt") and set(value) & set("wa"):
            yield _path_opened(context, files, script, call, func.value, value)


def _is_picture(context: Context, script: Script, node: cst.BaseExpression) -> bool:
    """Whether an object is a picture or an animation of a library: ``Image.fromarray(x).save(path)``."""
    found = context.program.flow.origins(script, node)
    return bool(found) and all(origin.qualified.startswith(("PIL.", "matplotlib.animation.")) for origin in found)


def _path_opened(
    context: Context, files: Files, script: Script, call: cst.Call, path: cst.BaseExpression, mode: str
) -> Decision:
    known = _known(context, files, script, call, path)
    if known:
        return decide(CODE, KEPT, script, call, f"open: {known}")
    edits, trouble = _readers(context, files, script, call, path)
    if trouble or ("+" in mode and _looked_at(script, call)):
        why = trouble or "what it holds is read"
        return decide(CODE, NOTED, script, call, f"open writes one file on every rank, but {why}")
    zero, needs = context.rank_test(script, call)[1:]
    os_name, more = context.startup.speller(script).spell("os", call)
    made, most = context.startup.speller(script).spell("pathlib.Path", call)
    old = script.tree.full_text(path)
    text = f"{old} if {zero} else {made}({os_name}.devnull)"
    if not path.lpar:
        text = f"({text})"
    edit = Replace(script, path, text, tuple(dict.fromkeys(needs + more + most)))
    message = "open: rank 0 writes the file, the other ranks write nothing"
    return decide(CODE, CHANGED, script, call, message, edit, *edits)


def _known(context: Context, files: Files, script: Script, call: cst.Call, path: cst.BaseExpression) -> str:
    """Return why a writer needs nothing, or nothing."""
    if files.guarded(script, call):
        return "already depends on the rank"
    if files.own_place(script, path):
        return "already writes into a place of the rank's own"
    text = script.tree.text(path)
    if text.endswith("devnull") or text.startswith(("sys.std", "io.")):
        return "writes no file"
    opened = [o for o in context.program.flow.origins(script, path) if o.kind == "call"]
    if opened and all(o.qualified in names.OPENERS or o.qualified.startswith("io.") for o in opened):
        return "writes what was opened elsewhere"
    return ""


def _readers(
    context: Context, files: Files, script: Script, call: cst.Call, path: cst.BaseExpression
) -> tuple[list[Edit], str]:
    """Return the edits that make ranks wait where the file is read back, or why there are none."""
    first = context.turns.edits(call, context.rank_0)
    if first:
        return first, ""
    back = [(home, read) for home, read in files.read_back(script, path) if read is not call]
    return waits_before(context.program, context.helpers, files, back, (script, call))


def _looked_at(script: Script, call: cst.Call) -> bool:
    """Whether what an opened file holds is looked at through its handle, as far as its name tells."""
    for scope in script.bindings.scopes.values():
        for name, bindings in scope.bindings.items():
            if any(binding.value is call for binding in bindings):
                return any(
                    isinstance(part, cst.Attribute)
                    and part.attr.value in _LOOKS
                    and isinstance(part.value, cst.Name)
                    and part.value.value == name
                    for part in walk(scope.node)
                )
    return True


def _for_writing(call: cst.Call, name: str) -> bool:
    if name != "h5py.File":
        return True
    mode = argument(call, 1, "mode")
    return mode is not None and "r'" not in cst.Module([]).code_for_node(mode).replace('"', "'")
