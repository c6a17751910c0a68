"""The pipeline: bytes, facts, rules, edits, bytes."""

from __future__ import annotations

import contextlib
import re
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .model import CHANGED, KEPT, NOTED, REFUSED, Decision, Finding
from .settings import Settings

if TYPE_CHECKING:
    from .reading.program import Program
    from .reading.script import Script

_IMPORT = re.compile(rb"^[ \t]*(?:from|import)[ \t]+([\w.]+)", re.MULTILINE)


class InputError(Exception):
    """A file that cannot be converted because it cannot be read; the message is one line for the user."""


@dataclass(frozen=True)
class Conversion:
    """What became of one named file.

    Attributes:
        path: the file, as the user named it.
        original: its bytes.
        output: the converted bytes; the original where nothing changes or the program is refused.
        findings: what was decided about every site of the program, in the order of files and lines.
        trains: whether the file starts a training program.
    """

    path: str
    original: bytes
    output: bytes
    findings: tuple[Finding, ...]
    trains: bool
    modules: tuple[tuple[Path, bytes], ...] = ()
    scripts: int = 1

    @property
    def changed(self) -> bool:
        """Whether the file would be rewritten."""
        return self.output != self.original

    @property
    def refused(self) -> bool:
        """Whether the program cannot be converted safely."""
        return any(finding.status == REFUSED for finding in self.findings)


def convert(
    source: bytes,
    path: str = "train.py",
    settings: Settings | None = None,
    *,
    file: Path | None = None,
    named: frozenset[Path] = frozenset(),
) -> Conversion:
    """Convert one training program.

    Args:
        source: the bytes of the script the user starts.
        path: its name in messages.
        settings: the user's choices.
        file: where it lies, so that local imports can be followed; None to look at this file alone.
        named: further files the user named, which may be rewritten with it.

    Returns:
        The conversion; a refused program comes back with its bytes untouched.

    Raises:
        InputError: the bytes cannot be read as Python.
    """
    chosen = settings or Settings()
    if not _concerns_mindspore(source, file):
        return _nothing(source, path, "does not use MindSpore")
    # libcst is not imported for a file that never says mindspore (DESIGN 5)
    from .reading.script import read_script
    from .reading.source import SourceError

    def pipeline() -> Conversion:
        entry = read_script(source, path, file)
        try:
            return _convert(entry, chosen, named)
        except RecursionError:
            if entry.tree.depth() < _DEEP:
                raise  # the program is no deeper than others: a bug of ours
            raise SourceError("expressions nest too deeply to be followed; split the longest one") from None

    try:
        return _on_deep_stack(pipeline)
    except SourceError as error:
        line = f":{error.line}" if error.line is not None else ""
        raise InputError(f"{path}{line}: MSD604 {error.reason}") from None


# Above this depth of a tree, running out of stack is the program's doing.
_DEEP = 2_000
# Python compiles `a and b and ...` of any length; a tree has one level for each.
# Memory of a stack is only used where it is touched.
_FRAMES = 200_000
_STACKS = (512 << 20, 128 << 20, 32 << 20)
WORKER = "ms-distify"  # the name of the threads
_changing = threading.Lock()


def _on_deep_stack(work: Callable[[], Conversion]) -> Conversion:
    """Run ``work`` in a thread with a large stack.

    libcst reads and writes expressions by recursion, and its native half kills the process when the stack of 8 MB
    that a main thread has runs out, which happens to programs that Python itself runs (FACTS 6).
    """
    result: list[Conversion] = []
    failure: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()

    with _deep_recursion():
        thread = _start(run)
        done.wait()  # not join(): interrupted there, Python 3.11 takes the thread for ended
        thread.join()
    if failure:
        raise failure[0]
    return result[0]


_running: list[int] = []  # the recursion limits found by the conversions that run now


@contextlib.contextmanager
def _deep_recursion() -> Iterator[None]:
    """Raise the interpreter's recursion limit until the last of the conversions that run at once has ended."""
    with _changing:
        _running.append(sys.getrecursionlimit())
        sys.setrecursionlimit(max(_running[0], _FRAMES))
    try:
        yield
    finally:
        with _changing:
            first = _running.pop(0)
            if _running:
                _running[0] = first
            else:
                sys.setrecursionlimit(first)


def _start(run: Callable[[], None]) -> threading.Thread:
    """Start a daemon (so that Ctrl-C need not wait for it) with the largest stack that the system gives."""
    with _changing:
        before = threading.stack_size()
        try:
            for size in _STACKS:
                thread = threading.Thread(target=run, name=WORKER, daemon=True)
                threading.stack_size(size)
                with contextlib.suppress(RuntimeError):  # "can't start new thread"
                    thread.start()
                    return thread
            raise MemoryError("no memory for a thread")
        finally:
            threading.stack_size(before)


def _convert(entry: Script, settings: Settings, named: frozenset[Path]) -> Conversion:
    from .reading.program import Program
    from .writing.writer import write

    program = Program(entry, named)
    source = entry.source.raw
    idle = _idle(program)
    if idle is not None and not idle.status == REFUSED:
        return Conversion(entry.path, source, source, (idle,), trains=False)
    decisions = _decide(program, settings)
    if idle is not None:
        decisions.insert(0, Decision(idle))
    edits = [edit for decision in decisions for edit in decision.edits]
    decisions += _unnamed(program, {edit.script for edit in edits})
    order = {script.path: number for number, script in enumerate(program.scripts)}
    findings = sorted(
        {decision.finding: None for decision in decisions},
        key=lambda f: (order.get(f.path, 0), f.line, f.code, f.column),
    )
    if any(finding.status == REFUSED for finding in findings):
        return Conversion(entry.path, source, source, tuple(findings), trains=True, scripts=len(program.scripts))
    texts = write(edits)
    output = entry.source.encode(texts[entry]) if entry in texts else source
    modules = tuple(
        (script.file, script.source.encode(text))
        for script, text in texts.items()
        if script is not entry and script.file is not None
    )
    if not edits:
        findings.insert(0, Finding("MSD606", KEPT, entry.path, 1, 1, "already distributed: nothing is missing"))
    result = Conversion(entry.path, source, output, tuple(findings), True, modules, len(program.scripts))
    _check(result, entry, settings)
    return result


def _decide(program: Program, settings: Settings) -> list[Decision]:
    from .rules import Context, rules

    context = Context(program, settings)
    by_path = {script.path: script for script in program.scripts}
    decisions = []
    for rule in rules():
        for decision in rule.check(context):
            finding = decision.finding
            if program.accepted(by_path[finding.path], finding.line, finding.code):
                status = NOTED if finding.status == REFUSED else KEPT
                message = f"accepted by '# ms-distify: ignore[{finding.code}]': {finding.message}"
                decision = Decision(replace(finding, status=status, message=message))
            decisions.append(decision)
    return decisions


def _idle(program: Program) -> Finding | None:
    """Return why there is nothing to convert, if so: no training, or none that this file starts."""
    entry = program.entry
    star = next(
        (s for s in program.scripts for _, module in s.bindings.stars if module.partition(".")[0] == "mindspore"), None
    )
    if star is not None:
        return None
    if not program.trains:
        from .mindspore import names

        for script in program.scripts:
            for call in script.bindings.calls:
                name = program.flow.qualified(script, call)
                if names.is_optimizer(name) and call in program.timeline.visited:
                    line = script.line(call)
                    message = (
                        f"{name.rpartition('.')[2]} is built, but no training that uses it is found; "
                        "use Model.train or a loop that calls the optimizer"
                    )
                    return Finding("MSD305", REFUSED, script.path, line, 1, message)
        return Finding("MSD607", KEPT, entry.path, 1, 1, "not a training program: no Model.train, train cell or optimizer step")
    if not program.timeline.of("train"):
        if program.timeline.handed_over or any(_is_guard(statement) for statement in entry.tree.module.body):
            message = "it trains somewhere, but how the start of the file leads there cannot be followed; call it directly"
            return Finding("MSD608", REFUSED, entry.path, 1, 1, message)
        return Finding("MSD607", KEPT, entry.path, 1, 1, "a module: it defines a training but does not start one")
    return None


def _is_guard(statement: object) -> bool:
    import libcst as cst

    from .reading.timeline import is_main_guard

    return isinstance(statement, cst.CSTNode) and is_main_guard(statement)


def _unnamed(program: Program, touched: set[Script]) -> list[Decision]:
    """Refuse edits to files that the user did not name (DESIGN 4)."""
    missing = [script for script in program.scripts if script in touched and not script.named]
    names = " ".join(script.path for script in missing)
    return [
        Decision(
            Finding(
                "MSD609",
                REFUSED,
                script.path,
                1,
                1,
                f"this file needs changes too and was not named: ms-distify --in-place {program.entry.path} {names}",
            )
        )
        for script in missing
    ]


def _check(result: Conversion, entry: Script, settings: Settings) -> None:
    """Check our own output as black does: it parses, and a second run leaves it alone.

    Raises:
        AssertionError: it does not; a bug of ours, and nothing is written.
    """
    from .reading.program import Program
    from .reading.script import read_script
    from .reading.source import SourceError
    from .writing.writer import write

    if not result.changed and not result.modules:
        return
    try:
        again = Program(read_script(result.output, entry.path, entry.file))
        again.project.override(dict(result.modules))
        edits = [edit for decision in _decide(again, settings) for edit in decision.edits]
    except SourceError as error:
        raise AssertionError(f"the output does not parse: {error.reason}, line {error.line}") from None
    if edits and any(text != script.source.text for script, text in write(edits).items()):
        first = edits[0]
        raise AssertionError(f"a second run would change the output again ({type(first).__name__} in {first.script.path})")


def _nothing(source: bytes, path: str, reason: str) -> Conversion:
    return Conversion(path, source, source, (Finding("MSD607", KEPT, path, 1, 1, reason),), trains=False)


def _concerns_mindspore(source: bytes, file: Path | None) -> bool:
    """Whether a file, or a local file it imports by a plain name, says mindspore."""
    if b"mindspore" in source or b"\0" in source:
        return True
    if file is None:
        return False
    folder = file.resolve().parent
    for match in _IMPORT.finditer(source):
        module = folder.joinpath(*match.group(1).decode("ascii", "replace").lstrip(".").split("."))
        for candidate in (module.with_name(module.name + ".py"), module / "__init__.py"):
            try:
                if candidate.is_file() and b"mindspore" in candidate.read_bytes():
                    return True
            except (OSError, ValueError):
                continue
    return False


__all__ = ["CHANGED", "Conversion", "InputError", "convert"]
