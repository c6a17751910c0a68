"""Which files of a project go into a runnable copy of it, and which stay behind."""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from .exits import Stop, reason

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

RECORD = ".ms-distify.json"  # in the copy's folder: what was written there (tree_copy.py)
TEMPORARY = ".ms-distify-"
LIMIT = 10 * 1000 * 1000  # bytes; sources and configurations are smaller

_VERSION_CONTROL = frozenset({".git", ".hg", ".svn"})
_CACHES = frozenset({
    "__pycache__", ".cache", ".ipynb_checkpoints", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".nox",
    ".hypothesis", "kernel_meta",
})  # fmt: skip
_DATA = (
    ".mindrecord", ".mindrecord.db", ".tfrecord", ".ckpt", ".mindir", ".air", ".onnx", ".om", ".pb", ".pt", ".pth",
    ".safetensors", ".h5", ".hdf5", ".npy", ".npz", ".bin", ".mat", ".lmdb", ".parquet", ".pkl", ".pickle", "-ubyte",
    ".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".wav", ".flac", ".mp3", ".mp4", ".avi",
    ".mkv", ".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar",
)  # fmt: skip
_COUNTED = 100_000  # files; of larger folders that stay behind the rest is not counted
_FEW = 5  # files of one folder that are named one by one

CONTROL, CACHE, ENVIRONMENT, IGNORED, DATA, LARGE = (
    "version control", "cache", "virtual environment", "named in .gitignore", "data", f"over {LIMIT // 1_000_000} MB"
)  # fmt: skip
NEVER = (CONTROL, CACHE, ENVIRONMENT)


@dataclass(frozen=True)
class Left:
    """A file or folder that stays behind.

    Attributes:
        path: relative to the project; a folder's ends with a slash.
        reason: why, in a few words.
        files: how many files it stands for; 0 for a link, or where nobody counted.
        size: their bytes.
    """

    path: str
    reason: str
    files: int = 1
    size: int = 0


@dataclass(frozen=True)
class _Ignore:
    """A .gitignore file: what it says about paths that are relative to its folder.

    Attributes:
        spec: its lines.
        below: how many characters of the project's paths lead to its folder.
        above: what leads from its folder to the project.
    """

    spec: GitIgnoreSpec
    below: int = 0
    above: str = ""


@dataclass
class Survey:
    """What goes into the copy; all paths are relative to the project.

    Attributes:
        root: the project's folder, resolved.
        folders: the folders of the copy, each after the one it lies in.
        files: regular files.
        links: symbolic links, with what they hold.
        left: what stays behind.
    """

    root: Path
    folders: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    left: list[Left] = field(default_factory=list)


def survey(root: Path, output: Path) -> Survey:
    """Look through a project.

    Args:
        root: its folder.
        output: where the copy will be; that is no part of the project, should it lie in it.

    Raises:
        Stop: a folder or a .gitignore cannot be read.
    """
    walk = _Walk(Path(os.path.realpath(root)), Path(os.path.realpath(output)))
    try:
        walk.run()
    except OSError as error:
        raise Stop(f"{error.filename or root}: {reason(error)}") from None
    return walk.found()


class _Walk:
    """A walk through a project, folder by folder, with the .gitignore files met on the way."""

    def __init__(self, root: Path, output: Path) -> None:
        self.root = root
        self.output = str(output)
        self.files: list[str] = []
        self.links: dict[str, str] = {}
        self.left: list[Left] = []
        self.used: set[str] = {""}  # folders with something in them that is copied
        # For each folder, what the .gitignore files of the folders above it say; the nearest comes first.
        self._ignores: dict[str, list[_Ignore]] = {"": list(self._above())}

    def run(self) -> None:
        """Visit every folder that is not left behind as a whole."""
        waiting = [""]
        while waiting:
            here = waiting.pop()
            ignores = self._ignores.pop(here)
            own = _spec(self.root / here / ".gitignore")
            if own is not None:
                ignores = [_Ignore(own, len(here) + 1 if here else 0), *ignores]
            with os.scandir(self.root / here) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
            if not found:
                self._use(here)
            for entry in found:
                path = f"{here}/{entry.name}" if here else entry.name
                if self._visit(entry, path, ignores):
                    self._ignores[path] = ignores
                    waiting.append(path)

    def _visit(self, entry: os.DirEntry[str], path: str, ignores: list[_Ignore]) -> bool:
        """Decide about one entry of a folder; return whether it is a folder to look into."""
        if entry.name.startswith(TEMPORARY) or path == RECORD:
            return False
        folder = entry.is_dir(follow_symlinks=False)
        if folder:
            if entry.path == self.output:
                return False
            why = _why_folder(entry)
            if not why and _ignored(f"{path}/", ignores):
                why = IGNORED
            if why:
                self.left.append(Left(f"{path}/", why, *((0, 0) if why in NEVER else _amount(entry.path))))
            return not why
        status = entry.stat(follow_symlinks=False)
        why = IGNORED if _ignored(path, ignores) else _why_file(entry, status)
        if why:
            self.left.append(Left(path, why, size=status.st_size))
        elif stat.S_ISLNK(status.st_mode):
            self.links[path] = os.readlink(entry.path)
        else:
            self.files.append(path)
            self._use(path.rpartition("/")[0])
        return False

    def _use(self, folder: str) -> None:
        while folder not in self.used:
            self.used.add(folder)
            folder = folder.rpartition("/")[0]

    def found(self) -> Survey:
        """Return what was found, with the links that lead to something in the copy."""
        links = {}
        kept = {*self.files, *self.used}
        for path, target in sorted(self.links.items()):
            why = self._why_link(path, target, kept)
            if why:
                self.left.append(Left(path, why, 0))
            else:
                links[path] = target
                self._use(path.rpartition("/")[0])
        folders = sorted(self.used - {""})
        return Survey(self.root, folders, sorted(self.files), links, list(_grouped(self.left, self.used)))

    def _why_link(self, path: str, target: str, kept: set[str]) -> str:
        if os.path.isabs(target) or os.path.normpath(os.path.join(os.path.dirname(path), target)).startswith(".."):
            return "link that leads out"
        final = os.path.realpath(self.root / path)
        try:
            inside = str(Path(final).relative_to(self.root)).replace(os.sep, "/")
        except ValueError:
            return "link that leads out"
        if os.path.lexists(final) and inside != "." and inside not in kept:
            return "link to what stays behind"
        return ""

    def _above(self) -> Iterator[_Ignore]:
        """Yield what .gitignore files above the project say, if it is a part of a repository."""
        below = [self.root, *self.root.parents]
        top = next((number for number, folder in enumerate(below) if (folder / ".git").exists()), 0)
        for number in range(1, top + 1):
            spec = _spec(below[number] / ".gitignore")
            base = "".join(f"{folder.name}/" for folder in reversed(below[:number]))
            # Who names a folder that is ignored wants it all the same.
            if spec is not None and not spec.check_file(base).include:
                yield _Ignore(spec, above=base)


def _why_folder(entry: os.DirEntry[str]) -> str:
    if entry.name in _VERSION_CONTROL:
        return CONTROL
    if entry.name in _CACHES:
        return CACHE
    if os.path.exists(os.path.join(entry.path, "pyvenv.cfg")):
        return ENVIRONMENT
    if os.path.exists(os.path.join(entry.path, RECORD)):
        return "an earlier copy"
    if not os.access(entry.path, os.R_OK | os.X_OK):
        return "may not be read"
    return ""


def _why_file(entry: os.DirEntry[str], status: os.stat_result) -> str:
    if entry.name == ".git":
        return CONTROL  # of a submodule
    if stat.S_ISLNK(status.st_mode):
        return ""
    if not stat.S_ISREG(status.st_mode):
        return "not a regular file"
    if entry.name.lower().endswith(_DATA):
        return DATA
    if status.st_size > LIMIT:
        return LARGE
    return "" if os.access(entry.path, os.R_OK) else "may not be read"


def _spec(file: Path) -> GitIgnoreSpec | None:
    """Read a .gitignore; lines that git could not read either count for nothing."""
    if not file.is_file():
        return None
    from pathspec import GitIgnoreSpec

    lines = file.read_bytes().decode("utf-8-sig", "surrogateescape").splitlines()
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return GitIgnoreSpec.from_lines(line for line in lines if _readable(line))


def _readable(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def _ignored(path: str, ignores: list[_Ignore]) -> bool:
    """Whether .gitignore files name a path; the nearest that says anything decides, as with git."""
    for ignore in ignores:
        include = ignore.spec.check_file(ignore.above + path[ignore.below :]).include
        if include is not None:
            return include
    return False


def _amount(folder: str) -> tuple[int, int]:
    """Return the number of files below a folder and their bytes."""
    count = size = 0
    for here, _, files in os.walk(folder):
        for name in files:
            count += 1
            try:
                size += os.lstat(os.path.join(here, name)).st_size
            except OSError:
                continue
        if count > _COUNTED:
            break
    return count, size


def _grouped(left: Iterable[Left], used: set[str]) -> Iterator[Left]:
    """Yield what stays behind by folder: those of which nothing is copied, and those of which many files are not."""
    groups: defaultdict[str, list[Left]] = defaultdict(list)
    for one in left:
        parts = one.path.rstrip("/").split("/")
        parents = ["/".join(parts[:number]) for number in range(1, len(parts))]
        whole = next((folder for folder in parents if folder not in used), None)
        if whole is not None and one.reason not in NEVER:
            groups[f"{whole}/"].append(one)
        elif one.path.endswith("/"):
            groups[one.path].append(one)
        else:
            groups["/".join([*parts[:-1], "*"])].append(one)
    for name, ones in sorted(groups.items()):
        if len(ones) <= (_FEW if name.endswith("*") else 0) or name == ones[0].path:
            yield from ones
            continue
        reasons = ", ".join(dict.fromkeys(one.reason for one in ones))
        yield Left(name, reasons, sum(one.files for one in ones), sum(one.size for one in ones))
