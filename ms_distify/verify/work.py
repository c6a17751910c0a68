"""Working copies of a project, so that the runs of a verification write nothing into it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path

from ..exits import Stop

# Larger files are linked, and no more than this is copied in all.
COPIED_FILE = 5_000_000
COPIED_IN_ALL = 200_000_000
# A folder with more files is no project of a program: a home, say.
MOST_FILES = 20_000
# A folder without programs that holds more files than this is linked as a whole.
MANY_FILES = 200
_TEXTS = {".py", ".yaml", ".yml", ".sh", ".cfg", ".ini", ".toml"}
_BESIDE = re.compile(r"(?:\.\./+)+([^/\\\s'\"]+)")
_SKIPPED = {"__pycache__", "node_modules", ".git", ".hg", ".svn", ".mypy_cache", ".pytest_cache", ".ruff_cache"}


def project_root(script: Path, modules: list[Path]) -> Path:
    """Return the folder that holds a script and all local modules that it imports, resolved."""
    folders = [str(path.resolve().parent) for path in (script, *modules)]
    return Path(os.path.commonpath(folders))


def make_copy(root: Path, place: Path) -> None:
    """Copy a project into a new folder: small files as they are, large ones and folders of data as links.

    Raises:
        OSError: it cannot be read or written.
        Stop: it holds too many files.
    """
    place.mkdir(parents=True)
    left, count = COPIED_IN_ALL, 0
    pending = [(root, place)]
    while pending:
        source, target = pending.pop()
        for entry in sorted(os.scandir(source), key=lambda found: found.name):
            if entry.name in _SKIPPED:
                continue
            count += 1
            if count > MOST_FILES:
                raise Stop(f"{root}: holds more than {MOST_FILES} files; put the program into a folder of its own")
            there = target / entry.name
            if entry.is_dir(follow_symlinks=False):
                if (Path(entry.path) / "pyvenv.cfg").exists():
                    continue
                if _is_data(Path(entry.path)):
                    there.symlink_to(os.path.realpath(entry.path))
                else:
                    there.mkdir()
                    pending.append((Path(entry.path), there))
            elif entry.is_symlink():
                there.symlink_to(os.path.realpath(entry.path))
            elif entry.is_file():
                size = entry.stat().st_size
                if size <= COPIED_FILE and size <= left:
                    left -= size
                    shutil.copy2(entry.path, there)
                else:
                    there.symlink_to(os.path.realpath(entry.path))


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of change of every file below a folder, by its path; what links lead to is not below it."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            with contextlib.suppress(OSError):
                stat = os.lstat(path)
                if not os.path.islink(path):
                    found[path] = stat.st_size, stat.st_mtime_ns
    return found


def link_neighbours(root: Path, place: Path, arguments: tuple[str, ...]) -> list[Path]:
    """Link what a project reads from beside its folder ("../data") beside its copy; return what was linked.

    Only names are linked that texts of the project, or the arguments, have behind "../".
    """
    named = {name for argument in arguments for name in _BESIDE.findall(argument)}
    for folder, folders, files in os.walk(place):
        folders[:] = [name for name in folders if not os.path.islink(os.path.join(folder, name))]
        for name in files:
            if os.path.splitext(name)[1] in _TEXTS:
                named.update(_BESIDE.findall(Path(folder, name).read_text(encoding="utf-8", errors="replace")))
    linked = []
    for name in sorted(named - {"", ".", ".."}):
        source, target = root.parent / name, place.parent / name
        if source != root and source.exists() and not target.exists():
            target.symlink_to(os.path.realpath(source))
            linked.append(source.resolve())
    return linked


def _is_data(folder: Path) -> bool:
    """Whether a folder holds many files and nothing that looks like part of a program."""
    count = 0
    for _, _, files in os.walk(folder):
        if any(os.path.splitext(name)[1] == ".py" for name in files):
            return False
        count += len(files)
        if count > 20 * MANY_FILES:
            break
    return count > MANY_FILES
