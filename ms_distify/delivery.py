"""What becomes of conversions: the report, the diff, the written files and the exit code."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .convert import Conversion, InputError, convert
from .exits import DIFFERENT, OK, REFUSAL, Stop, reason
from .model import REFUSED
from .report.programs import program_lines, refusal_lines
from .report.streams import coloured, emit, tell
from .report.terminal import finding_lines, summary, unified_diff
from .report.totals import totals
from .settings import Settings
from .together import Together, settings_for

if TYPE_CHECKING:
    from .writing.files import Target


@dataclass(frozen=True)
class Choice:
    """What to do with the conversions."""

    output: Path | None
    in_place: bool
    dry_run: bool
    check: bool
    force: bool
    quiet: bool

    @property
    def looks(self) -> bool:
        """Whether nothing is written."""
        return self.dry_run or self.check


def exit_code(results: list[Conversion], choice: Choice, *, changes: bool | None = None) -> int:
    """Return the exit code of some conversions (README).

    Args:
        results: the conversions.
        choice: what was asked for.
        changes: whether anything would be written; None: whether the files themselves would change.
    """
    refused = any(result.refused for result in results)
    if changes is None:
        changes = any(result.changed or result.modules for result in results)
    if choice.check:
        return DIFFERENT if refused or changes else OK
    return REFUSAL if refused else OK


def deliver(together: Together, choice: Choice) -> int:
    """Report conversions, show or write what was asked for, and return the exit code."""
    conversions = [result for _, result in together.results]
    report(conversions, choice)
    changes = None
    if choice.dry_run:
        show_diffs(together)
    if choice.output is not None and conversions:
        changes = not conversions[0].refused and _write_output(*together.results[0], choice.output, choice)
    elif choice.in_place:
        _write_in_place(together, choice)
    return exit_code(conversions, choice, changes=changes)


def report(results: list[Conversion], choice: Choice, *, copied: bool = False) -> None:
    """Say what was decided about every site, then the sums, then refusals once more where many lines went before.

    Args:
        results: the conversions.
        choice: what becomes of them.
        copied: a copy is made that holds what is refused too.
    """
    colour = coloured(sys.stderr)
    looked = choice.looks
    programs = [result for result in results if result.trains]
    if len(programs) > 1:
        for line in program_lines(programs, colour=colour, looked=looked, quiet=choice.quiet):
            tell(line)
    for result in results if len(programs) <= 1 else ():
        findings = [f for f in result.findings if f.status == REFUSED] if choice.quiet else result.findings
        if not result.trains and len(results) > 1:
            continue  # a folder's modules are summed up, not listed
        for line in finding_lines(findings, colour=colour, written=not (result.refused or looked)):
            tell(line)
        if not result.trains and not choice.quiet:
            tell(f"nothing to do for {result.path}")
    if not choice.quiet and results:
        every = {  # a site that programs share counts once
            (finding.code, finding.status, finding.path, finding.line, finding.column): finding
            for result in programs
            for finding in result.findings
        }
        if every:
            tell(summary(every.values(), written=not (looked or any(result.refused for result in results))))
        if len(results) > 1:
            for line in totals(results, written=not looked):
                tell(line)
    _report_refusals([result for result in results if result.refused], choice, copied=copied)


def _report_refusals(refused: list[Conversion], choice: Choice, *, copied: bool) -> None:
    if not refused:
        return
    several = len(refused) > 1
    what = "the copy holds {} unchanged, for one card" if copied else "nothing was written for {}"
    tell(f"refused: {len(refused)} program{'s' * several}; {what.format('them' if several else 'it')}")
    if not choice.quiet and sum(len(result.findings) for result in refused) > 8:
        # Once more, where the reader looks: the others may have scrolled away.
        for line in refusal_lines(refused):
            tell(line)


def show_diff(result: Conversion) -> None:
    """Print the diff of a conversion to standard output."""
    if result.refused:
        return
    colour = coloured(sys.stdout)
    if result.changed:
        emit(unified_diff(result.original, result.output, result.path, colour=colour))
    for file, content in result.modules:
        emit(unified_diff(file.read_bytes(), content, str(file), colour=colour))


def show_diffs(together: Together) -> None:
    """Print one diff for every file that changes, under the names that the user gave."""
    colour = coloured(sys.stdout)
    names = {file.resolve(): result.path for file, result in reversed(together.results)}
    for path, content in together.contents.items():
        emit(unified_diff(path.read_bytes(), content, names.get(path, str(path)), colour=colour))


def _write_in_place(together: Together, choice: Choice) -> None:
    from .writing.files import Target

    write([Target(path, content) for path, content in together.contents.items()])
    if choice.quiet:
        return
    for path in together.contents:
        tell(f"rewrote {os.path.relpath(path)}")
    for file, result in together.results:
        if result.trains and not result.refused and (result.changed or result.modules):
            script, ranks = shown(file), settings_for(file.resolve().parent, None).ranks
            msrun = f"msrun --worker_num={ranks} --local_worker_num={ranks} --join=True {script}"
            tell(f"start with a launcher, written by: ms-distify launcher {script}; or with {msrun}")


def _write_output(file: Path, result: Conversion, output: Path, choice: Choice) -> bool:
    """Write a converted script and its launcher, unless they are only looked at; return whether anything changes.

    Raises:
        Stop: they may not be written there.
    """
    from .launch import LAUNCHER_NAME, beside, is_ours
    from .writing.files import Target

    if not result.trains:
        return False
    present = _present(output)
    if present is not None and output.samefile(file):
        raise Stop("the output is the input; use --in-place for that")
    if output.name == LAUNCHER_NAME:
        raise Stop(f"{output}: is the launcher's name; give the script another one")
    if not output.parent.is_dir():
        raise Stop(f"{output}: its folder does not exist")
    launch = beside.choose(output)
    launcher = _present(launch)
    if present is not None and not choice.force:
        recorded = beside.recorded(_text(launcher)) if launcher is not None else None
        if present != result.output and recorded != (output.name, beside.digest(present)):
            raise Stop(f"{output}: was not written by ms-distify, or was changed since; use --force to overwrite it")
    if launcher is not None and not choice.force and not is_ours(_text(launcher)):
        raise Stop(f"{launch}: was not written by ms-distify; move it away or use --force")
    mode = file.stat().st_mode & 0o777
    settings = settings_for(file.resolve().parent, None)
    script = beside.render_for(output, result.output, default_ranks=settings.ranks)
    targets = [
        Target(output, result.output, mode if present is None else None),
        Target(launch, script.encode("utf-8", "surrogateescape"), launcher_mode(mode)),
    ]
    changes = [target.path for target, old in zip(targets, (present, launcher)) if target.content != old]
    if choice.looks:
        if not choice.quiet:
            tell(f"{' and '.join(map(str, changes))} would be written" if changes else f"{output} is up to date")
        return bool(changes)
    write(targets)
    if choice.quiet:
        return True
    if len(result.files) > 1 and output.resolve().parent != file.resolve().parent:
        tell(f"note: {result.path} imports files beside it; {output} will not find them in its folder")
    tell(f"wrote {output} and {launch}; start with: bash {shown(launch)} -n {settings.ranks}")
    return True


def launcher_mode(mode: int) -> int:
    """Return the permission bits of a launcher: those of its script, and whoever may read it may run it."""
    return mode | 0o100 | (mode & 0o044) >> 2


def _present(path: Path) -> bytes | None:
    """Return what a file that would be written holds now; None if there is none.

    Raises:
        Stop: nothing can be written there.
    """
    try:
        if path.is_dir():
            raise Stop(f"{path}: is a directory; give a file name")
        if path.exists() and not path.is_file():
            raise Stop(f"{path}: is not a regular file")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Stop(f"{path}: {reason(error)}") from None


def write(targets: list[Target]) -> None:
    """Write files, all or none.

    Raises:
        Stop: one cannot be written.
    """
    from .writing.files import write_all

    try:
        write_all(targets)
    except OSError as error:
        raise Stop(f"{error.filename or targets[0].path}: {reason(error)}; nothing was written") from None


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def one_line(error: Exception) -> str:
    """Return an exception's kind and text in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def shown(path: Path) -> str:
    """Return a path as a shell takes it."""
    import shlex

    return shlex.quote(str(path))


def write_launcher(script: Path, settings: Settings, *, force: bool) -> Path:
    """Write the launcher beside a program that is converted already; return where.

    Raises:
        Stop: there is no such program, it is not converted, or a file of another's is in the launcher's place.
    """
    from .launch import beside, is_ours
    from .writing.files import Target

    content = _present(script)
    if content is None:
        raise Stop(f"{script}: no such file")
    if not force:
        _check_converted(script, content, settings)
    launch = beside.choose(script)
    present = _present(launch)
    if present is not None and not force and not is_ours(_text(present)):
        raise Stop(f"{launch}: was not written by ms-distify; move it away or use --force")
    text = beside.render_for(script, content, default_ranks=settings.ranks)
    mode = launcher_mode(script.stat().st_mode & 0o777)
    write([Target(launch, text.encode("utf-8", "surrogateescape"), mode)])
    return launch


def _check_converted(script: Path, content: bytes, settings: Settings) -> None:
    """Check that a program has nothing left to convert.

    Raises:
        Stop: it has, or it cannot be read.
    """
    try:
        result = convert(content, str(script), settings, file=script, recheck=False)
    except InputError as error:
        raise Stop(str(error)) from None
    refusals = [finding for finding in result.findings if finding.status == REFUSED]
    if not result.trains and not refusals:
        why = f"{result.findings[0].message}; there is nothing to start on several cards"
    elif any(finding.code != "MSD609" for finding in refusals):
        first = next(finding for finding in refusals if finding.code != "MSD609")
        why = f"cannot be converted: {first.path}:{first.line}: {first.code} {first.message}"
    elif refusals or result.changed or result.modules:
        why = f"is not converted yet: every card would train by itself; see: ms-distify {shown(script)} --dry-run"
    else:
        return
    raise Stop(f"{script}: {why} (--force writes the launcher all the same)", REFUSAL)
