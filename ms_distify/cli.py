"""The command line: arguments to settings, results to output and exit code. It decides nothing about code."""

# No `from __future__ import annotations`: on Python 3.9 typer would see only their text, and lose -o and -q.
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from . import __version__
from .convert import InputError, convert
from .delivery import (
    Choice,
    deliver,
    exit_code,
    one_line,
    report,
    show_diff,
    shown,
    write_launcher,
)
from .exits import BUG, INTERRUPTED, USAGE, Stop, reason
from .report.progress import progress
from .report.streams import emit, tell
from .settings import MAX_SEED
from .stack import WORKER
from .together import BugError, convert_together, settings_for

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
tools = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)


class GlobalBatch(str, Enum):
    """What becomes of the batch size."""

    GROW = "grow"
    KEEP = "keep"


class Device(str, Enum):
    """What programs run on."""

    CPU = "CPU"
    ASCEND = "Ascend"
    GPU = "GPU"


class ScaleLr(str, Enum):
    """What becomes of the learning rate."""

    NONE = "none"
    LINEAR = "linear"


def _version(value: bool) -> None:
    if value:
        typer.echo(f"ms-distify {__version__}")
        raise typer.Exit


@app.command(
    help="Rewrite single-card MindSpore training programs into data-parallel ones.\n\n"
    "Also: ms-distify explain CODE, ms-distify rules, ms-distify launcher SCRIPT, "
    "ms-distify verify SCRIPT.",
    epilog="Exit codes: 0 converted or nothing to do, 1 --check found something, "
    "2 usage or unreadable input, "
    "3 refused, 4 a bug of ms-distify.",
)
def convert_command(
    paths: Annotated[list[str], typer.Argument(help="Scripts or folders; - reads standard input.", show_default=False)],
    output: Annotated[
        Optional[Path],
        typer.Option("--output", "-o", help="Write the converted script, or a converted copy of the folder, here."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the diff, write nothing.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if anything would change.")] = False,
    in_place: Annotated[bool, typer.Option("--in-place", help="Rewrite the named files.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that ms-distify did not write.")] = False,
    seed: Annotated[
        Optional[int],
        typer.Option("--seed", min=0, max=MAX_SEED, help="Seed to set where the program sets none (0)."),
    ] = None,
    global_batch: Annotated[
        Optional[GlobalBatch],
        typer.Option("--global-batch", help="keep divides the batch size by the number of ranks (grow)."),
    ] = None,
    scale_lr: Annotated[
        Optional[ScaleLr],
        typer.Option("--scale-lr", help="linear multiplies the learning rate by the number of ranks (none)."),
    ] = None,
    warmup_epochs: Annotated[
        Optional[int],
        typer.Option(
            "--warmup-epochs", min=0, max=9999, help="Epochs over which the rate rises to the scaled one (0)."
        ),
    ] = None,
    quiet_ranks: Annotated[
        Optional[bool],
        typer.Option("--quiet-ranks/--no-quiet-ranks", help="Let rank 0 alone print.", show_default=False),
    ] = None,
    shard_eval: Annotated[
        Optional[bool],
        typer.Option(
            "--shard-eval/--no-shard-eval",
            help="Deal evaluations over the ranks too, and sum what they count.",
            show_default=False,
        ),
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
    choice = Choice(output, in_place, dry_run, check, force, quiet)
    chosen = {
        "seed": seed,
        "global_batch": global_batch and global_batch.value,
        "scale_lr": scale_lr and scale_lr.value,
        "warmup_epochs": warmup_epochs,
        "quiet_ranks": quiet_ranks,
        "shard_eval": shard_eval,
    }
    raise typer.Exit(_guarded(lambda: _run(paths, choice, chosen, stdin_filename), debug))


def _guarded(run: Callable[[], int], debug: bool) -> int:
    """Return the exit code of a command, whatever ends it, with one line for the user."""
    try:
        return run()
    except Stop as stop:
        tell(f"ms-distify: {stop}")
        return stop.code
    except KeyboardInterrupt:
        tell("ms-distify: interrupted")
        if any(thread.name == WORKER and thread.is_alive() for thread in threading.enumerate()):
            os._exit(INTERRUPTED)  # a parser that is still at work would crash when Python ends around it
        return INTERRUPTED
    except Exception as error:
        if debug:
            import traceback

            tell(traceback.format_exc().rstrip())
        what, where = (error.text, error.file) if isinstance(error, BugError) else (one_line(error), "the file")
        tell(
            f"ms-distify: internal error: {what}; nothing was written; "
            f"please report it with {where} that causes it (--debug)"
        )
        return BUG


def _run(paths: list[str], choice: Choice, chosen: dict[str, Any], stdin_filename: str) -> int:
    modes = [choice.output is not None, choice.in_place, choice.looks]
    if choice.in_place and sum(modes) > 1:
        raise Stop("choose one of -o, --in-place and --dry-run/--check; these go with -o, but not with --in-place")
    if paths == ["-"]:
        if choice.output is not None or choice.in_place:
            raise Stop("standard input is converted to standard output; -o and --in-place do not go with it")
        return _standard_input(choice, chosen, stdin_filename)
    if "-" in paths:
        raise Stop("standard input (-) does not go with other files")
    if choice.output is not None and (len(paths) > 1 or os.path.isdir(paths[0])):
        from .project_output import copy_project, project_folder

        return copy_project(project_folder(paths, choice.output), choice, chosen)
    files = _files(paths)
    if not any(modes):
        path = Path(paths[0])
        example = f"../{path.resolve().name}_dist" if path.is_dir() else f"{path.stem}_dist.py"
        raise Stop(f"say what to do: -o {shown(Path(example))}, --dry-run, --check or --in-place")
    if not files:
        tell(f"no Python files in {' '.join(paths)}")
    with progress(len(files), shown=not choice.quiet) as advance:
        together = convert_together(files, chosen, recheck=not choice.looks, advance=advance)
    for line in dict.fromkeys(together.failures):  # the other files have their own right to a report
        tell(f"ms-distify: {line}")
    code = deliver(together, choice)
    return USAGE if together.failures else code


def _files(paths: list[str]) -> list[Path]:
    """Return the Python files that arguments name; folders stand for all below them."""
    found: list[Path] = []
    for path in paths:
        try:
            mode = os.stat(path).st_mode
        except FileNotFoundError:
            raise Stop(f"{path}: no such file") from None
        except (OSError, ValueError) as error:
            raise Stop(f"{path}: {reason(error)}") from None
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


def _standard_input(choice: Choice, chosen: dict[str, Any], name: str) -> int:
    source = sys.stdin.buffer.read() if sys.stdin is not None else b""
    file = Path(name) if name != "<stdin>" else None
    settings = settings_for((file.resolve().parent if file else Path.cwd()), chosen)
    try:
        result = convert(source, name, settings, file=file, recheck=not choice.looks)
    except InputError as error:
        raise Stop(str(error)) from None
    report([result], choice)
    if choice.dry_run:
        show_diff(result)
    elif not choice.check and not result.refused:
        emit(result.output)
    return exit_code([result], choice)


@tools.command("launcher")
def launcher_command(
    script: Annotated[Path, typer.Argument(help="A converted program.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Whether it is converted or not; overwrite any file.")] = False,
) -> None:
    """Write run_distribute.sh beside a program that is converted already."""
    try:
        settings = settings_for(script.resolve().parent, None)
        launch = write_launcher(script, settings, force=force)
    except Stop as stop:
        tell(f"ms-distify: {stop}")
        raise typer.Exit(stop.code) from None
    tell(f"wrote {launch}; start with: bash {shown(launch)} -n {settings.ranks}")


@tools.command("verify")
def verify_command(
    script: Annotated[Path, typer.Argument(help="The single-card program.", show_default=False)],
    arguments: Annotated[
        Optional[list[str]], typer.Argument(help="Arguments of the program, behind --.", show_default=False)
    ] = None,
    converted: Annotated[
        Optional[Path], typer.Option("--converted", help="The distributed program; converted here where not given.")
    ] = None,
    only: Annotated[bool, typer.Option("--only", help="SCRIPT is distributed already; there is no other.")] = False,
    ranks: Annotated[int, typer.Option("-n", min=2, max=64, help="How many ranks.")] = 2,
    steps: Annotated[int, typer.Option("--steps", min=1, max=100_000, help="How many training steps.")] = 20,
    timeout: Annotated[float, typer.Option("--timeout", min=1, help="Seconds that one run may take.")] = 600,
    device: Annotated[Device, typer.Option("--device", help="What to run on.")] = Device.CPU,
    python: Annotated[str, typer.Option("--python", help="Interpreter that has MindSpore.")] = sys.executable,
    strict: Annotated[
        bool, typer.Option("--strict", help="Leave dropout, batch normalisation and augmentation as they are.")
    ] = False,
    fake_data: Annotated[
        bool, typer.Option("--fake-data", help="Make up data for datasets whose files are not there.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    page: Annotated[Optional[Path], typer.Option("--report", help="Write a page with tables and curves.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a bug.")] = False,
) -> None:
    """Run the original on one card and the converted program on N ranks, and compare them. This runs the program."""
    from .verify import Wish
    from .verify.report import verify_and_tell

    wish = Wish(
        script,
        converted,
        only,
        tuple(arguments or ()),
        ranks,
        steps,
        timeout,
        device.value,
        python,
        strict=strict,
        fake_data=fake_data,
    )
    raise typer.Exit(_guarded(lambda: verify_and_tell(wish, as_json=as_json, page=page), debug))


@tools.command("rules")
def rules_command() -> None:
    """List all rules."""
    from .rules import rules

    for rule in rules():
        emit(f"{rule.code}  {rule.title}\n".encode())


@tools.command("explain")
def explain_command(code: Annotated[str, typer.Argument(help="A rule's code, e.g. MSD201.")]) -> None:
    """Explain a rule: what it does, why, and what it looks like before and after."""
    from .rules import explain

    text = explain(f"MSD{code}" if code.isdigit() else code.upper())
    if text is None:
        tell(f"ms-distify: there is no rule {code}; see: ms-distify rules")
        raise typer.Exit(USAGE)
    emit(f"{text}\n".encode())


def main() -> None:
    """Run the command line."""
    if sys.argv[1:2] and sys.argv[1] in ("rules", "explain", "launcher", "verify"):
        tools(prog_name="ms-distify")
    else:
        app(prog_name="ms-distify")
