"""A copy of a project, put in place whole or not at all.

The copy remembers in a hidden file what was written into it, so that a later run can tell what the user has
added or changed since: that is never overwritten or removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .exits import Stop, reason
from .project_files import RECORD, TEMPORARY, Survey

_LINK = "link:"  # before the digest of a link


@dataclass(frozen=True)
class Made:
    """A file of the copy that is not in the project as it is.

    Attributes:
        content: its bytes.
        mode: its permission bits; None for those of the project's file.
    """

    content: bytes
    mode: int | None = None


@dataclass(frozen=True)
class Written:
    """What was done.

    Attributes:
        files: how many files the copy has of ours.
        removed: files of an earlier run that the project has no more.
        kept: such files that stay, since they were changed.
    """

    files: int
    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


def check_place(root: Path, output: Path, *, force: bool) -> None:
    """Check that a copy of a project can be put into a folder.

    Raises:
        Stop: it cannot, or there is something in the way.
    """
    source, place = os.path.realpath(root), os.path.realpath(output)
    if source == place:
        raise Stop("the output is the input; use --in-place for that")
    if os.path.commonpath([source, place]) == place:
        raise Stop(f"{output}: holds the project itself; choose a folder beside it or in it")
    if output.suffix == ".py" and not os.path.isdir(place):
        raise Stop(f"{output}: a folder is copied to a folder; give the name of one")
    if not os.path.isdir(os.path.dirname(place)):
        raise Stop(f"{output}: its folder does not exist")
    try:
        mode = os.lstat(place).st_mode
        if not stat.S_ISDIR(mode):
            raise Stop(f"{output}: is not a folder; a folder is copied to a folder")
        used = any(not name.startswith(TEMPORARY) for name in os.listdir(place))
    except FileNotFoundError:
        return
    except OSError as error:
        raise Stop(f"{output}: {reason(error)}") from None
    if used and not force and _recorded(Path(place)) is None:
        raise Stop(f"{output}: is not empty and was not written by ms-distify; choose another folder or use --force")


def write_copy(survey: Survey, made: Mapping[str, Made], output: Path, *, force: bool) -> Written:
    """Write the copy of a project.

    Args:
        survey: what goes into it.
        made: the files that differ, by their path in the project, and those that come on top.
        output: its folder: a new or an empty one, or one that this wrote earlier.
        force: overwrite what was changed since.

    Raises:
        Stop: it cannot be written, or files are in the way; nothing has been changed.
    """
    place = Path(os.path.realpath(output))
    fresh = not place.is_dir() or not os.listdir(place)
    try:
        with _temporary(place.parent if fresh else place) as temporary:
            staged = temporary / "new"
            digests = _stage(survey, made, staged)
            if fresh:
                os.replace(staged, place)  # an empty folder may be replaced so
                return Written(len(digests))
            return _merge(staged, digests, place, temporary, output, force=force)
    except OSError as error:
        raise Stop(f"{_meant(error, place, output)}: {reason(error)}; nothing was written") from None


def compare_copy(survey: Survey, made: Mapping[str, Made], output: Path, *, force: bool) -> int:
    """Return how many files :func:`write_copy` would write, change or remove; it writes nothing.

    Raises:
        Stop: files are in the way, as for :func:`write_copy`.
    """
    place = Path(os.path.realpath(output))
    digests = {path: _digest(survey.root / path) for path in survey.files if path not in made}
    digests.update({path: hashlib.sha256(one.content).hexdigest() for path, one in made.items()})
    digests.update({path: _link_digest(target) for path, target in survey.links.items()})
    if not place.is_dir():
        return len(digests)
    merge = _compared(digests, place, output, force=force)
    modes = {path: _mode(survey, made, path) for path in digests if path not in survey.links}
    turned = [
        path
        for path, mode in modes.items()
        if path not in merge.changed and stat.S_IMODE((place / path).lstat().st_mode) != mode
    ]
    return len(merge.removed) + len(merge.changed) + len(turned)


def _mode(survey: Survey, made: Mapping[str, Made], path: str) -> int:
    """Return the permission bits of a file of the copy."""
    mode = made[path].mode if path in made else None
    return stat.S_IMODE((survey.root / path).stat().st_mode) if mode is None else mode


def _meant(error: OSError, place: Path, output: Path) -> str:
    """Return the file that an error is about, not the temporary one that stands for it."""
    name = str(error.filename or output)
    _, temporary, rest = name.partition(f"{os.sep}{TEMPORARY}")
    if not temporary:
        return str(output) + name[len(str(place)) :] if Path(name).is_relative_to(place) else name
    inside = rest.split(os.sep)[2:]  # of the folder with the new copy
    return str(output.joinpath(*inside))


@contextlib.contextmanager
def _temporary(folder: Path) -> Iterator[Path]:
    made = tempfile.mkdtemp(prefix=TEMPORARY, dir=folder)
    try:
        yield Path(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _stage(survey: Survey, made: Mapping[str, Made], staged: Path) -> dict[str, str]:
    """Build the whole copy in a folder of its own; return the digests of its files."""
    digests: dict[str, str] = {}
    staged.mkdir()
    for folder in survey.folders:
        (staged / folder).mkdir()
    for path in survey.files:
        if path not in made:
            shutil.copy2(survey.root / path, staged / path)
    for path, one in made.items():
        (staged / path).write_bytes(one.content)
        os.chmod(staged / path, _mode(survey, made, path))
    for path, target in survey.links.items():
        os.symlink(target, staged / path)
    for path in {**dict.fromkeys(survey.files), **made, **survey.links}:
        digests[path] = _digest(staged / path)
    text = json.dumps({"version": 1, "files": digests}, indent=0)
    (staged / RECORD).write_text(text + "\n", encoding="ascii")
    for folder in ("", *survey.folders):
        # Of a folder that may not be written nothing could be removed any more.
        os.chmod(staged / folder, stat.S_IMODE((survey.root / folder).stat().st_mode) | stat.S_IRWXU)
    return digests


def _merge(
    staged: Path, digests: Mapping[str, str], place: Path, temporary: Path, output: Path, *, force: bool
) -> Written:
    """Move a new copy over an earlier one; what is not ours stays."""
    merge = _compared(digests, place, output, force=force)
    removed = list(merge.removed)
    changed = [path for path in digests if path in merge.changed or _mode_differs(staged, place, path)]
    with contextlib.ExitStack() as undo:
        for path in sorted({str(Path(path).parent) for path in changed} | _folders(staged)):
            _make_folders(place, path, output, undo)
        for number, path in enumerate([*removed, *changed, RECORD]):
            final, aside = place / path, temporary / str(number)
            if os.path.lexists(final):
                shutil.copy2(final, aside, follow_symlinks=False)
            undo.callback(_put_back, aside, final)
            if path in removed:
                os.unlink(final)
            else:
                os.replace(staged / path, final)
        undo.pop_all()
    return Written(len(digests), merge.removed, merge.kept)


@dataclass(frozen=True)
class _Merge:
    """What becomes of an earlier copy: files that change, that go, and that stay though they should go."""

    changed: frozenset[str]
    removed: tuple[str, ...]
    kept: tuple[str, ...]


def _compared(digests: Mapping[str, str], place: Path, output: Path, *, force: bool) -> _Merge:
    """Compare a new copy with an earlier one.

    Raises:
        Stop: files that would be overwritten are not ours, or were changed since; all of them are named.
    """
    before = _recorded(place) or {}
    present = {path: _digest(place / path) for path in {**before, **digests} if _lies_in(place, path)}
    theirs = [
        path
        for path in sorted(digests.keys() & present.keys())
        if present[path] not in (digests[path], before.get(path))
    ]
    if theirs and not force:
        lines = [
            f"{output / path}: was not written by ms-distify, or was changed since; "
            "move it away or use --force to overwrite it"
            for path in theirs
        ]
        if len(theirs) > 1:
            lines.append(
                f"nothing was written; put what you want to keep of these {len(theirs)} files into the project, and move "
                "them away, or overwrite all of them with --force"
            )
        raise Stop("\n".join(lines))
    old = sorted(path for path in before.keys() - digests.keys() if path in present)
    removed = tuple(path for path in old if present[path] == before[path])
    changed = frozenset(path for path in digests if present.get(path) != digests[path])
    return _Merge(changed, removed, tuple(path for path in old if path not in removed))


def _lies_in(place: Path, path: str) -> bool:
    """Whether a folder has a file, and not by way of a link, through which it would be somebody else's."""
    parents = list(Path(path).parents)[:-1]
    return os.path.lexists(place / path) and not any((place / parent).is_symlink() for parent in parents)


def _folders(staged: Path) -> set[str]:
    return {os.path.relpath(here, staged) for here, _, _ in os.walk(staged)}


def _make_folders(place: Path, path: str, output: Path, undo: contextlib.ExitStack) -> None:
    """Make a folder of the copy where it is missing."""
    here = place
    for part in Path(path).parts:
        here = here / part
        if here.is_symlink() or (here.exists() and not here.is_dir()):
            shown = output / here.relative_to(place)
            raise Stop(f"{shown}: is in the way of a folder; move it away; nothing was written")
        if not here.exists():
            undo.callback(_remove_folder, here)
            here.mkdir()


def _remove_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


def _put_back(aside: Path, final: Path) -> None:
    if os.path.lexists(aside):
        os.replace(aside, final)
    else:
        with contextlib.suppress(FileNotFoundError):
            final.unlink()


def _mode_differs(staged: Path, place: Path, path: str) -> bool:
    return (staged / path).lstat().st_mode != (place / path).lstat().st_mode


def _digest(path: Path) -> str:
    """Return what tells whether a file or link is still what it was; of anything else, something that is not."""
    if path.is_symlink():
        return _link_digest(os.readlink(path))
    if not path.is_file():
        return "other"
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _link_digest(target: str) -> str:
    return _LINK + hashlib.sha256(os.fsencode(target)).hexdigest()


def _recorded(place: Path) -> dict[str, str] | None:
    """Return the digests of what was written into a folder; None if nothing says so."""
    try:
        document = json.loads((place / RECORD).read_bytes())
        files = document["files"] if document["version"] == 1 else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(files, dict):
        return None
    return {str(path): str(digest) for path, digest in files.items() if _inside(str(path))}


def _inside(path: str) -> bool:
    return not os.path.isabs(path) and ".." not in Path(path).parts
