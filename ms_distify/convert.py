"""The pipeline: bytes, facts, rules, edits, bytes."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .model import CHANGED, KEPT, NOTED, REFUSED, Decision, Finding
from .settings import Settings
from .stack import on_deep_stack

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
        modules: further files that change with it, with their new bytes.
        files: the local files that the program is made of, resolved, itself first; empty where it was not read.
    """

    path: str
    original: bytes
    output: bytes
    findings: tuple[Finding, ...]
    trains: bool
    modules: tuple[tuple[Path, bytes], ...] = ()
    files: tuple[Path, ...] = ()

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
    recheck: bool = True,
    overlay: Mapping[Path, bytes] | None = None,
) -> Conversion:
    """Convert one training program.

    Args:
        source: the bytes of the script the user starts.
        path: its name in messages.
        settings: the user's choices.
        file: where it lies, so that local imports can be followed; None to look at this file alone.
        named: further files the user named, which may be rewritten with it.
        recheck: also convert the output again and see that nothing changes, as it should be before anything is
            written; it takes as long as the conversion.
        overlay: what some of the files it imports will hold, by resolved path: as the conversion of another program
            leaves them. ``source`` itself is taken as given.

    Returns:
        The conversion; a refused program comes back with its bytes untouched.

    Raises:
        InputError: the bytes cannot be read as Python.
    """
    chosen = settings or Settings()
    if path.endswith(".ipynb"):
        raise InputError(f"{path}: MSD604 notebooks are not read; export it first: jupyter nbconvert --to script")
    if not _concerns_mindspore(source, file):
        return _nothing(source, path, "does not use MindSpore")
    # libcst is not imported for a file that never says mindspore (DESIGN 5)
    from .reading.script import read_script
    from .reading.source import SourceError

    def pipeline() -> Conversion:
        entry = read_script(source, path, file)
        try:
            return _convert(entry, chosen, named, recheck, overlay or {})
        except RecursionError:
            if entry.tree.depth() < _DEEP:
                raise  # the program is no deeper than others: a bug of ours
            raise SourceError("expressions nest too deeply to be followed; split the longest one") from None

    try:
        return on_deep_stack(pipeline)
    except SourceError as error:
        line = f":{error.line}" if error.line is not None else ""
        raise InputError(f"{path}{line}: MSD604 {error.reason}") from None


# Above this depth of a tree, running out of stack is the program's doing.
_DEEP = 2_000


def _convert(
    entry: Script, settings: Settings, named: frozenset[Path], recheck: bool, overlay: Mapping[Path, bytes]
) -> Conversion:
    from .plan.scope import idle as idle_because
    from .plan.scope import unnamed
    from .reading.program import Program
    from .writing.writer import write

    program = Program(entry, named)
    program.project.override(overlay)
    source = entry.source.raw
    files = tuple(script.file.resolve() for script in program.scripts if script.file is not None)
    idle = idle_because(program)
    if idle is not None and idle.status != REFUSED:
        return Conversion(entry.path, source, source, (idle,), trains=False, files=files)
    decisions = _decide(program, settings)
    if idle is not None:
        decisions.insert(0, Decision(idle))
    edits = [edit for decision in decisions for edit in decision.edits]
    decisions += unnamed(program, {edit.script for edit in edits})
    order = {script.path: number for number, script in enumerate(program.scripts)}
    findings = sorted(
        {decision.finding: None for decision in decisions},
        key=lambda f: (order.get(f.path, 0), f.line, f.code, f.column),
    )
    if any(finding.status == REFUSED for finding in findings):
        return Conversion(entry.path, source, source, tuple(findings), trains=True, files=files)
    texts = write(edits)
    output = entry.source.encode(texts[entry]) if entry in texts else source
    modules = tuple(
        (script.file, script.source.encode(text))
        for script, text in texts.items()
        if script is not entry and script.file is not None and text != script.source.text
    )
    if not edits:
        findings.insert(0, Finding("MSD606", KEPT, entry.path, 1, 1, "already distributed: nothing is missing"))
    result = Conversion(entry.path, source, output, tuple(findings), True, modules, files)
    _check_parses(result, entry.path)
    if recheck:
        _check_stable(result, entry, settings, overlay)
    return result


def _decide(program: Program, settings: Settings) -> list[Decision]:
    from .rules import Context, rules

    context = Context(program, settings)
    by_path = {script.path: script for script in program.scripts}
    decisions = context.decisions
    for rule in sorted(rules(), key=lambda rule: rule.last):
        for decision in rule.check(context):
            finding = decision.finding
            if program.accepted(by_path[finding.path], finding.line, finding.code):
                status = NOTED if finding.status == REFUSED else KEPT
                message = f"accepted by '# ms-distify: ignore[{finding.code}]': {finding.message}"
                decision = Decision(replace(finding, status=status, message=message))
            decisions.append(decision)
    return decisions


def _check_parses(result: Conversion, path: str) -> None:
    """Check that what we wrote is Python.

    Raises:
        AssertionError: it is not; a bug of ours, and nothing is written.
    """
    outputs = [(path, result.original, result.output)] if result.changed else []
    outputs += [(str(file), b"", content) for file, content in result.modules]
    for name, original, content in outputs:
        try:
            ast.parse(content)
        except SyntaxError as error:
            if original and not _parses(original):
                continue  # newer syntax than this Python knows; libcst read it
            raise AssertionError(f"the output of {name} does not parse: line {error.lineno}") from None
        except (RecursionError, MemoryError):
            continue  # deeper than ast goes; libcst read it


def _parses(source: bytes) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, RecursionError, MemoryError):
        return False
    return True


def _check_stable(result: Conversion, entry: Script, settings: Settings, overlay: Mapping[Path, bytes]) -> None:
    """Check our own output as black does: a second run leaves it alone.

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
        again.project.override({**overlay, **dict(result.modules)})
        edits = [edit for decision in _decide(again, settings) for edit in decision.edits]
    except SourceError as error:
        raise AssertionError(f"the output does not parse: {error.reason}, line {error.line}") from None
    if edits and any(text != script.source.text for script, text in write(edits).items()):
        first = edits[0]
        kind, where = type(first).__name__, first.script.path
        raise AssertionError(f"a second run would change the output again ({kind} in {where})")


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
