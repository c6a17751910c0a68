"""The command line: arguments to settings, results to output and exit code. It decides nothing about code."""

# No `from __future__ import annotations`: on Python 3.9 typer would see only their text, and lose -o and -q.
import contextlib
import os
import stat
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional, TextIO

import typer

from . import __version__
from .convert import Conversion, InputError, convert
from .model import REFUSED
from .report.terminal import finding_lines, summary, unified_diff
from .settings import MAX_SEED, Settings, SettingsError, from_pyproject
from .stack import WORKER

if TYPE_CHECKING:
    from .writing.files import Target

OK, DIFFERENT, USAGE, REFUSAL, BUG, INTERRUPTED = 0, 1, 2, 3, 4, 130
ISSUES = "please report it with the file that causes it"

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
tools = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)


class Stop(Exception):
    """The run ends with a message and an exit code."""

    def __init__(self, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class _Choice:
    """What to do with the conversions."""

    output: Optional[Path]
    in_place: bool
    dry_run: bool
    check: bool
    force: bool
    quiet: bool


def _version(value: bool) -> None:
    if value:
        typer.echo(f"ms-distify {__version__}")
        raise typer.Exit


@app.command(
    help="Rewrite single-card MindSpore training programs into data-parallel ones.\n\n"
    "Also: ms-distify explain CODE, ms-distify rules, ms-distify launcher SCRIPT.",
    epilog="Exit codes: 0 converted or nothing to do, 1 --check found something, "
    "2 usage or unreadable input, "
    "3 refused, 4 a bug of ms-distify.",
)
def convert_command(
    paths: Annotated[list[str], typer.Argument(help="Scripts or folders; - reads standard input.", show_default=False)],
    output: Annotated[
        Optional[Path],
        typer.Option("--output", "-o", help="Write the converted script here."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the diff, write nothing.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if anything would change.")] = False,
    in_place: Annotated[bool, typer.Option("--in-place", help="Rewrite the named files.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that ms-distify did not write.")] = False,
    seed: Annotated[
        Optional[int],
        typer.Option("--seed", min=0, max=MAX_SEED, help="Seed to set where the program sets none (0)."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print refusals and errors only.")] = False,
    stdin_filename: Annotated[str, typer.Option("--stdin-filename", help="Name of standard input.")] = "<stdin>",
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a bug.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Convert what is named and exit with the code of DESIGN 4."""
    del version
    choice = _Choice(output, in_place, dry_run, check, force, quiet)
    try:
        code = _run(paths, choice, seed, stdin_filename)
    except Stop as stop:
        _tell(f"ms-distify: {stop}")
        code = stop.code
    except KeyboardInterrupt:
        _tell("ms-distify: interrupted")
        if any(thread.name == WORKER and thread.is_alive() for thread in threading.enumerate()):
            os._exit(INTERRUPTED)  # a parser that is still at work would crash when Python ends around it
        code = INTERRUPTED
    except Exception as error:
        if debug:
            import traceback

            _tell(traceback.format_exc().rstrip())
        _tell(f"ms-distify: internal error: {_one_line(error)}; nothing was written; {ISSUES} (--debug)")
        code = BUG
    raise typer.Exit(code)


def _run(paths: list[str], choice: _Choice, seed: Optional[int], stdin_filename: str) -> int:
    modes = [choice.output is not None, choice.in_place, choice.dry_run or choice.check]
    if sum(modes) > 1:
        raise Stop("choose one of -o, --in-place and --dry-run/--check")
    if paths == ["-"]:
        if choice.output is not None or choice.in_place:
            raise Stop("standard input is converted to standard output; -o and --in-place do not go with it")
        return _standard_input(choice, seed, stdin_filename)
    if "-" in paths:
        raise Stop("standard input (-) does not go with other files")
    files = _files(paths)
    if not any(modes):
        example = f"{Path(paths[0]).stem}_dist.py"
        raise Stop(f"say what to do: -o {example}, --dry-run, --check or --in-place")
    if choice.output is not None and (len(paths) > 1 or Path(paths[0]).is_dir()):
        raise Stop("-o takes one script; use --in-place for several files or a folder")
    if not files:
        _tell(f"no Python files in {' '.join(paths)}")
    named = frozenset(file.resolve() for file in files)
    results: list[tuple[Path, Conversion]] = []
    failed = False
    for file in files:
        try:
            results.append((file, _convert_file(file, seed, named, not (choice.dry_run or choice.check))))
        except Stop as stop:  # the other files have their own right to a report
            _tell(f"ms-distify: {stop}")
            failed = True
    code = _deliver(results, choice)
    return USAGE if failed else code


def _files(paths: list[str]) -> list[Path]:
    """Return the Python files that arguments name; folders stand for all below them."""
    found: list[Path] = []
    for path in paths:
        try:
            mode = os.stat(path).st_mode
        except FileNotFoundError:
            raise Stop(f"{path}: no such file") from None
        except (OSError, ValueError) as error:
            raise Stop(f"{path}: {_reason(error)}") from None
        if stat.S_ISDIR(mode):
            found += sorted(_below(path))
        elif stat.S_ISREG(mode):
            found.append(Path(path))
        else:
            raise Stop(f"{path}: is not a regular file; use - to convert standard input")
    return list(dict.fromkeys(found))


def _below(folder: str) -> Iterator[Path]:
    """Yield the Python files below a folder, without hidden folders and virtual environments."""
    for here, folders, files in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and not os.path.exists(os.path.join(here, name, "pyvenv.cfg"))
        ]
        yield from (Path(here, name) for name in files if name.endswith(".py"))


def _convert_file(file: Path, seed: Optional[int], named: frozenset[Path], recheck: bool) -> Conversion:
    try:
        source = file.read_bytes()
    except OSError as error:
        raise Stop(f"{file}: {_reason(error)}") from None
    return _convert(source, str(file), _settings(file.resolve().parent, seed), file, named, recheck)


def _convert(
    source: bytes,
    path: str,
    settings: Settings,
    file: Optional[Path],
    named: frozenset[Path],
    recheck: bool,
) -> Conversion:
    try:
        return convert(source, path, settings, file=file, named=named, recheck=recheck)
    except InputError as error:
        raise Stop(str(error)) from None


def _settings(folder: Path, seed: Optional[int]) -> Settings:
    try:
        return from_pyproject(folder).over(seed=seed)
    except SettingsError as error:
        raise Stop(str(error)) from None


def _standard_input(choice: _Choice, seed: Optional[int], name: str) -> int:
    source = sys.stdin.buffer.read() if sys.stdin is not None else b""
    file = Path(name) if name != "<stdin>" else None
    settings = _settings((file.resolve().parent if file else Path.cwd()), seed)
    result = _convert(source, name, settings, file, frozenset(), not (choice.dry_run or choice.check))
    _report([result], choice)
    if choice.dry_run:
        _show_diff(result)
    elif not choice.check and not result.refused:
        _emit(result.output)
    return _code([result], choice)


def _code(results: list[Conversion], choice: _Choice) -> int:
    refused = any(result.refused for result in results)
    if choice.check:
        return DIFFERENT if refused or any(result.changed or result.modules for result in results) else OK
    return REFUSAL if refused else OK


def _deliver(results: list[tuple[Path, Conversion]], choice: _Choice) -> int:
    conversions = [result for _, result in results]
    _report(conversions, choice)
    if choice.dry_run:
        for result in conversions:
            _show_diff(result)
    elif choice.in_place:
        _write_in_place(results, choice)
    elif choice.output is not None and not choice.check and results and not results[0][1].refused:
        _write_output(*results[0], choice.output, choice)
    return _code(conversions, choice)


def _report(results: list[Conversion], choice: _Choice) -> None:
    colour = _coloured(sys.stderr)
    for result in results:
        findings = [f for f in result.findings if f.status == REFUSED] if choice.quiet else result.findings
        if not result.trains and len(results) > 1:
            continue  # a folder's modules are summed up, not listed
        for line in finding_lines(
            findings, colour=colour, written=not (result.refused or choice.check or choice.dry_run)
        ):
            _tell(line)
        if not result.trains and not choice.quiet:
            _tell(f"nothing to do for {result.path}")
    if not choice.quiet and results:
        every = [finding for result in results if result.trains for finding in result.findings]
        if every:
            written = not (choice.check or choice.dry_run or any(result.refused for result in results))
            _tell(summary(every, written=written))
        idle = sum(not result.trains for result in results)
        if len(results) > 1 and idle:
            _tell(f"{idle} of {len(results)} files are modules or programs that start no training: left alone")
    if any(result.refused for result in results):
        refused = sum(result.refused for result in results)
        _tell(
            f"refused: {refused} program{'s' * (refused > 1)}; "
            f"nothing was written for {'them' if refused > 1 else 'it'}"
        )
        if not choice.quiet and sum(len(result.findings) for result in results) > 8:
            # Once more, where the reader looks: the others may have scrolled away.
            for line in dict.fromkeys(_refusals(results)):
                _tell(line)


def _refusals(results: list[Conversion]) -> Iterator[str]:
    for result in results:
        for finding in result.findings:
            if finding.status == REFUSED:
                yield f"  {finding.path}:{finding.line}: {finding.code} {finding.message}"


def _show_diff(result: Conversion) -> None:
    if result.refused:
        return
    colour = _coloured(sys.stdout)
    if result.changed:
        _emit(unified_diff(result.original, result.output, result.path, colour=colour))
    for file, content in result.modules:
        _emit(unified_diff(file.read_bytes(), content, str(file), colour=colour))


def _write_in_place(results: list[tuple[Path, Conversion]], choice: _Choice) -> None:
    from .writing.files import Target

    contents: dict[Path, bytes] = {}
    for file, result in results:
        if result.refused:
            continue
        for path, content in [(file, result.output), *result.modules] if result.changed else result.modules:
            known = contents.setdefault(path.resolve(), content)
            if known != content:
                raise Stop(f"{path}: two programs need it changed differently; convert them one at a time", REFUSAL)
    _write([Target(path, content) for path, content in contents.items()])
    if choice.quiet:
        return
    for path in contents:
        _tell(f"rewrote {os.path.relpath(path)}")
    for file, result in results:
        if result.trains and not result.refused and (result.changed or result.modules):
            script = _shown(file)
            _tell(
                f"start with a launcher, written by: ms-distify launcher {script}; or with msrun --join=True {script}"
            )


def _write_output(file: Path, result: Conversion, output: Path, choice: _Choice) -> None:
    from .launch import LAUNCHER_NAME, beside, is_ours
    from .writing.files import Target

    if not result.trains:
        return
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
    settings = _settings(file.resolve().parent, None)
    script = beside.render_for(output, result.output, default_ranks=settings.ranks)
    _write(
        [
            Target(output, result.output, mode if present is None else None),
            Target(launch, script.encode("utf-8", "surrogateescape"), mode | 0o100 | (mode & 0o044) >> 2),
        ]
    )
    if choice.quiet:
        return
    if result.scripts > 1 and output.resolve().parent != file.resolve().parent:
        _tell(f"note: {result.path} imports files beside it; {output} will not find them in its folder")
    _tell(f"wrote {output} and {launch}; start with: bash {_shown(launch)} -n {settings.ranks}")


def _present(path: Path) -> Optional[bytes]:
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
        raise Stop(f"{path}: {_reason(error)}") from None


def _write(targets: "list[Target]") -> None:
    from .writing.files import write_all

    try:
        write_all(targets)
    except OSError as error:
        raise Stop(f"{error.filename or targets[0].path}: {_reason(error)}; nothing was written") from None


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _shown(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))


def _coloured(stream: object) -> bool:
    return bool(getattr(stream, "isatty", lambda: False)()) and not os.environ.get("NO_COLOR")


def _tell(line: str) -> None:
    """Say something to the person; data goes to standard output, everything else here."""
    if sys.stderr is None:
        return
    encoding = sys.stderr.encoding or "utf-8"
    try:
        sys.stderr.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        sys.stderr.flush()
    except OSError:
        _drop(sys.stderr)


def _emit(data: bytes) -> None:
    """Put data on standard output; a reader that has gone away (``| head``) is no error.

    Raises:
        Stop: it cannot be written.
    """
    if sys.stdout is None:
        raise Stop("standard output is closed")
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _drop(sys.stdout)
    except OSError as error:
        _drop(sys.stdout)
        raise Stop(f"standard output: {_reason(error)}") from None


def _drop(stream: TextIO) -> None:
    """Send what is still to come on a stream nowhere, so that Python does not stumble over it at its end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


@tools.command("launcher")
def launcher_command(
    script: Annotated[Path, typer.Argument(help="A converted program.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that ms-distify did not write.")] = False,
) -> None:
    """Write run_distribute.sh beside a program that is converted already."""
    from .launch import beside, is_ours
    from .writing.files import Target

    try:
        content = _present(script)
        if content is None:
            raise Stop(f"{script}: no such file")
        launch = beside.choose(script)
        present = _present(launch)
        if present is not None and not force and not is_ours(_text(present)):
            raise Stop(f"{launch}: was not written by ms-distify; move it away or use --force")
        settings = _settings(script.resolve().parent, None)
        text = beside.render_for(script, content, default_ranks=settings.ranks)
        _write([Target(launch, text.encode("utf-8", "surrogateescape"), 0o755)])
    except Stop as stop:
        _tell(f"ms-distify: {stop}")
        raise typer.Exit(stop.code) from None
    _tell(f"wrote {launch}; start with: bash {_shown(launch)} -n {settings.ranks}")


@tools.command("rules")
def rules_command() -> None:
    """List all rules."""
    from .rules import rules

    for rule in rules():
        _emit(f"{rule.code}  {rule.title}\n".encode())


@tools.command("explain")
def explain_command(code: Annotated[str, typer.Argument(help="A rule's code, e.g. MSD201.")]) -> None:
    """Explain a rule: what it does, why, and what it looks like before and after."""
    from .rules import explain

    text = explain(f"MSD{code}" if code.isdigit() else code.upper())
    if text is None:
        _tell(f"ms-distify: there is no rule {code}; see: ms-distify rules")
        raise typer.Exit(USAGE)
    _emit(f"{text}\n".encode())


def main() -> None:
    """Run the command line."""
    if sys.argv[1:2] and sys.argv[1] in ("rules", "explain", "launcher"):
        tools(prog_name="ms-distify")
    else:
        app(prog_name="ms-distify")
