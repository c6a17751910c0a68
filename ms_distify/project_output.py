"""``ms-distify FOLDER -o DIR``: a runnable, converted copy of a project with a launcher for each program."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from .convert import Conversion
from .delivery import Choice, exit_code, launcher_mode, report, show_diffs, shown
from .exits import USAGE, Stop, reason
from .launch import LAUNCHER_NAME, beside, is_ours
from .model import REFUSED, Finding
from .project_files import ENVIRONMENT, NEVER, Left, Survey, survey
from .report.progress import progress
from .report.streams import tell
from .together import Together, convert_together, settings_for
from .tree_copy import Made, Written, check_place, compare_copy, write_copy


@dataclass(frozen=True)
class Launcher:
    """The launcher of a program in the copy.

    Attributes:
        path: where, relative to the project.
        made: its text and permission bits.
        ranks: how many cards it starts unless told otherwise.
    """

    path: str
    made: Made
    ranks: int


def project_folder(paths: list[str], output: Path) -> Path:
    """Return the folder that is copied: the one that is named, with all else that is named in it.

    Raises:
        Stop: something does not exist, or no named folder holds the others.
    """
    for path in paths:
        try:
            os.stat(path)
        except (OSError, ValueError) as error:
            missing = isinstance(error, FileNotFoundError)
            raise Stop(f"{path}: {'no such file' if missing else reason(error)}") from None
    common = os.path.commonpath([os.path.realpath(path) for path in paths])
    for path in paths:
        if os.path.isdir(path) and os.path.realpath(path) == common:
            return Path(path)
    folder = common if os.path.isdir(common) else os.path.dirname(common)
    near = os.path.relpath(folder)
    name = folder if near.startswith(os.path.join(os.pardir, os.pardir)) else near
    raise Stop(
        "-o takes one script, or one folder, which is copied whole; "
        f"name the folder that holds all of these: ms-distify {shown(Path(name))} -o {shown(output)}"
    )


def copy_project(root: Path, choice: Choice, chosen: Mapping[str, Any] | None) -> int:
    """Convert the programs of a project in a copy of it, say what was done, and return the exit code.

    Raises:
        Stop: the copy cannot be made; nothing was written.
    """
    output = choice.output
    assert output is not None
    check_place(root, output, force=choice.force)
    found = survey(root, output)
    files = [root / path for path in found.files if path.endswith(".py") and not _hidden(path)]
    if not files:
        tell(f"no Python files in {root}")
    veto = partial(_leads_back, root=found.root, output=Path(os.path.realpath(output)))
    with progress(len(files), shown=not choice.quiet) as advance:
        together = convert_together(files, chosen, recheck=not choice.looks, veto=veto, advance=advance)
    for line in together.failures:
        tell(f"ms-distify: {line}")
    programs = [(file, result) for file, result in together.results if result.trains and not result.refused]
    results = [result for _, result in together.results]
    report(results, choice, copied=bool(programs) and not choice.looks)
    if programs:
        launchers = _launchers(found, programs, together, chosen, force=choice.force)
        made = {path.relative_to(found.root).as_posix(): Made(content) for path, content in together.contents.items()}
        changed = len(made)
        made.update({launcher.path: launcher.made for launcher in launchers})
        if choice.dry_run:
            show_diffs(together)
        if choice.looks:
            differs = compare_copy(found, made, output, force=choice.force)
            if not choice.quiet:
                tell(f"{output} would change: {_files(differs)}" if differs else f"{output} is up to date")
            return USAGE if together.failures else exit_code(results, choice, changes=bool(differs))
        written = write_copy(found, made, output, force=choice.force)
        if not choice.quiet:
            tell(f"wrote {output}: {_files(written.files)}, {changed} rewritten, {_launched(launchers)}")
            _tell_rest(found, written, programs, launchers, output)
    elif not choice.quiet:
        tell(f"no program in {root} was converted: nothing was copied to {output}")
    return USAGE if together.failures else exit_code(results, choice, changes=False)


def _launched(launchers: list[Launcher]) -> str:
    return f"{len(launchers)} launcher{'s' * (len(launchers) != 1)}"


def _hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/")[:-1])


def _tell_rest(
    found: Survey,
    written: Written,
    programs: list[tuple[Path, Conversion]],
    launchers: list[Launcher],
    output: Path,
) -> None:
    for path in written.removed:
        tell(f"removed {output / path}: the project has it no more")
    for path in written.kept:
        tell(f"kept {output / path}: the project has it no more, but it was changed since")
    for line in left_lines(found.left):
        tell(line)
    copied = {found.root / path for path in found.files}
    for _, result in programs:
        for file in result.files:
            if file not in copied:
                tell(f"note: {result.path} imports {file}, which is not in the copy")
    for launcher in launchers:
        tell(f"start with: bash {shown(output / launcher.path)} -n {launcher.ranks}")


def left_lines(left: Iterable[Left]) -> Iterator[str]:
    """Yield what stays behind, one line each; caches and the like in one line for all."""
    left = list(left)
    rest = [one for one in left if one.reason not in NEVER]
    never = Counter(
        one.path if one.reason == ENVIRONMENT else os.path.basename(one.path.rstrip("/"))
        for one in left
        if one.reason in NEVER
    )
    if rest:
        yield "left behind; link or copy what the programs need:"
    for one in rest:
        many = f"{_files(one.files)}, " if one.path.endswith(("/", "*")) else ""
        amount = f"  {many}{_size(one.size)}" if one.files else ""
        yield f"  {one.path}{amount}  ({one.reason})"
    if never:
        names = ", ".join(f"{name} ({count} folders)" if count > 1 else name for name, count in sorted(never.items()))
        yield f"left behind as well: {names}"


def _files(count: int) -> str:
    return f"{count} file{'s' * (count != 1)}"


def _size(size: int) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"


def _launchers(
    found: Survey,
    programs: list[tuple[Path, Conversion]],
    together: Together,
    chosen: Mapping[str, Any] | None,
    *,
    force: bool,
) -> list[Launcher]:
    """Return a launcher for each program: of its folder, or where that has several programs of its own name.

    Raises:
        Stop: a file of the project has the launcher's name.
    """
    paths = [file.resolve().relative_to(found.root).as_posix() for file, _ in programs]
    in_folder = Counter(os.path.dirname(path) for path in paths)
    launchers = []
    for path, (file, result) in zip(paths, programs):
        folder, name = os.path.split(path)
        taken = not force and _foreign(found, os.path.join(folder, LAUNCHER_NAME))
        place = os.path.join(folder, beside.pick(name, {}, several=in_folder[folder] > 1 or taken))
        if not force and _foreign(found, place):
            raise Stop(f"{place}: is the name of {path}'s launcher; rename it or use --force")
        ranks = settings_for(file.resolve().parent, chosen).ranks
        content = together.contents.get(file.resolve(), result.original)
        text = beside.render_for(Path(path), content, default_ranks=ranks)
        mode = launcher_mode(file.stat().st_mode & 0o777)
        made = Made(text.encode("utf-8", "surrogateescape"), mode)
        launchers.append(Launcher(place, made, ranks))
    return launchers


def _foreign(found: Survey, path: str) -> bool:
    """Whether the project has a file of its own at a launcher's place."""
    if path in found.links:
        return True
    if path not in found.files:
        return False
    return not is_ours((found.root / path).read_text(encoding="utf-8", errors="replace"))


def _leads_back(file: Path, result: Conversion, *, root: Path, output: Path) -> Finding | None:
    """Refuse a program whose copy would import the originals, since it adds their folder to sys.path."""
    if b"path.append" not in result.original and b"path.insert" not in result.original:
        return None
    from .reading.script import read_script
    from .reading.search_path import search_path
    from .stack import on_deep_stack

    place = output / file.resolve().relative_to(root)
    for folder in on_deep_stack(lambda: search_path(read_script(result.original, result.path, place))):
        if folder.is_relative_to(root) and not folder.is_relative_to(output):
            lines = result.original.split(b"\n")
            at = [number for number, line in enumerate(lines, 1) if os.fsencode(folder.name) in line]
            message = (
                f"sys.path leads back to {folder}: the copy would import the originals there; "
                "make that name of __file__, or use --in-place"
            )
            return Finding("MSD609", REFUSED, result.path, at[0] if at else 1, 1, message)
    return None
