"""Several programs converted together: what they share has to work for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Union

from .convert import Conversion, InputError, convert
from .cores import run_all
from .exits import Stop, reason
from .model import REFUSED, Finding
from .settings import Settings, SettingsError, from_pyproject


class BugError(Exception):
    """A bug of ours that came up while a file was converted."""

    def __init__(self, file: str, text: str) -> None:
        super().__init__(file, text)
        self.file = file
        self.text = text


@dataclass(frozen=True)
class Together:
    """What became of the files that were named.

    Attributes:
        results: each file that could be read, with its conversion.
        contents: the new bytes of every file that changes, by resolved path; of all programs together.
        failures: one line for each file that could not be read.
    """

    results: tuple[tuple[Path, Conversion], ...]
    contents: Mapping[Path, bytes] = field(default_factory=dict)
    failures: tuple[str, ...] = ()


def settings_for(folder: Path, chosen: Mapping[str, Any] | None) -> Settings:
    """Return the settings that hold in a folder, with the command line's over them.

    Raises:
        Stop: they cannot be read, or do not go together.
    """
    try:
        return from_pyproject(folder).over(**(chosen or {}))
    except SettingsError as error:
        raise Stop(str(error)) from None


def convert_together(
    files: Sequence[Path],
    chosen: Mapping[str, Any] | None,
    *,
    recheck: bool = True,
    veto: Callable[[Path, Conversion], Finding | None] = lambda file, result: None,
    advance: Callable[[], None] = lambda: None,
) -> Together:
    """Convert every program among some files; all of the files may be changed for them.

    Programs are converted each for itself first. Those that share a file which changes are then converted one
    after the other, each upon what the one before left; a program that cannot be converted so is refused.

    Args:
        files: what the user named.
        chosen: the settings on the command line, if any.
        recheck: whether conversions are checked as before writing.
        veto: returns why a program that could be converted is refused all the same, if so.
        advance: called whenever one more file is done.

    Raises:
        BugError: a conversion failed in a way that it should not.
    """
    files = list({file.resolve(): file for file in reversed(files)}.values())[::-1]
    named = frozenset(file.resolve() for file in files)
    work = partial(_convert_file, chosen=chosen, named=named, recheck=recheck)
    # Reading a file is nothing against pickling it: those that never say mindspore stay here.
    concerned = [file for file in files if _says_mindspore(file)]
    done: dict[Path, Conversion | str] = dict(zip(concerned, run_all(work, concerned, advance)))
    for file in files:
        if file not in done:
            done[file] = work(file)
            advance()
    failures = tuple(text for file in files if isinstance(text := done[file], str))
    results = [(file, result) for file in files if isinstance(result := done[file], Conversion)]
    for number, (file, result) in enumerate(results):
        finding = veto(file, result) if result.trains and not result.refused else None
        if finding is not None:
            results[number] = (file, _refused(result, finding))
    return _combined(results, chosen, named, recheck, failures)


def _says_mindspore(file: Path) -> bool:
    try:
        return b"mindspore" in file.read_bytes()
    except OSError:
        return False  # whoever converts it says why


def _convert_file(
    file: Path,
    *,
    chosen: Mapping[str, Any] | None,
    named: frozenset[Path],
    recheck: bool,
    overlay: Mapping[Path, bytes] | None = None,
) -> Conversion | str:
    """Convert one file; return a line instead if it cannot be read."""
    overlay = overlay or {}
    try:
        source = overlay.get(file.resolve())
        source = file.read_bytes() if source is None else source
        settings = settings_for(file.resolve().parent, chosen)
        return convert(source, str(file), settings, file=file, named=named, recheck=recheck, overlay=overlay)
    except OSError as error:
        return f"{file}: {reason(error)}"
    except (InputError, Stop) as error:
        return str(error)
    except Exception as error:
        raise BugError(str(file), " ".join(f"{type(error).__name__}: {error}".split())) from error


def _combined(
    results: list[tuple[Path, Conversion]],
    chosen: Mapping[str, Any] | None,
    named: frozenset[Path],
    recheck: bool,
    failures: tuple[str, ...],
) -> Together:
    again = partial(_convert_file, chosen=chosen, named=named)
    while True:  # every round but the last refuses one more program
        attempt = _Attempt(results)
        refusal = attempt.run(again, recheck)
        if refusal is None:
            return Together(tuple(results), attempt.contents, failures)
        number, finding = refusal
        file, result = results[number]
        results[number] = (file, _refused(result, finding))


def _refused(result: Conversion, finding: Finding) -> Conversion:
    return replace(result, output=result.original, modules=(), findings=(finding, *result.findings))


Again = Callable[..., Union[Conversion, str]]
Refusal = tuple[int, Finding]


class _Attempt:
    """One way through all programs.

    Attributes:
        contents: what the files hold after the programs so far, as far as they change.
    """

    def __init__(self, results: list[tuple[Path, Conversion]]) -> None:
        self.results = results
        self.contents: dict[Path, bytes] = {}
        self._changers: dict[Path, list[int]] = {}
        self._last: dict[Path, int] = {}  # who made each file what it is now

    def run(self, again: Again, recheck: bool) -> Refusal | None:
        """Convert what shares files upon each other; return the program that has to be refused, if any."""
        for number, (file, result) in enumerate(self.results):
            if result.trains and not result.refused:
                if self._differs(file, result):
                    second = _tried(again, file, recheck, self.contents)
                    if not isinstance(second, Conversion) or second.refused or not second.trains:
                        return self._refuse(number, result, _why(second))
                    result = second
                self._take(number, file, result)
        return self._checked(again)

    def _differs(self, file: Path, result: Conversion) -> bool:
        """Whether the programs so far left files otherwise than this one alone would leave them."""
        own = dict(changes(file, result))
        return any(path in self.contents and self.contents[path] != own.get(path) for path in result.files)

    def _take(self, number: int, file: Path, result: Conversion) -> None:
        for path, content in changes(file, result):
            self._changers.setdefault(path, []).append(number)
            if self.contents.get(path) != content:
                self.contents[path] = content
                self._last[path] = number

    def _checked(self, again: Again) -> Refusal | None:
        """Look at each program once more whose files were changed for others after it was converted."""
        modules = {path for file, result in self.results for path in result.files if path != file.resolve()}
        for number, (file, result) in enumerate(self.results):
            touched = [path for path in result.files if path in self._changers]
            if result.refused or not touched:
                continue
            if result.trains:
                if all(self._last[path] <= number for path in touched):
                    continue
            elif file.resolve() in modules:
                continue  # not a program; those that use it are looked at
            last = max(self._last[path] for path in touched)
            third = _tried(again, file, False, self.contents)
            fits = isinstance(third, Conversion) and not third.refused and third.trains == result.trains
            if not fits or (isinstance(third, Conversion) and list(changes(file, third))):
                return self._refuse(last, result, f"{result.path} would need it otherwise")
        return None

    def _refuse(self, number: int, other: Conversion, why: str) -> Refusal:
        """Return the refusal of a program for the sake of the programs before it."""
        refused = self.results[number][1]
        shared = [path for path in other.files if path in self._changers]
        names = ", ".join(_shown(path) for path in shared)
        users = {self.results[n][1].path: None for path in shared for n in self._changers[path] if n != number}
        if other is not refused:
            users[other.path] = None
        message = (
            f"it shares {names} with {', '.join(users)}, and what each needs there does not go together ({why}); "
            "give each program a file of its own, or convert one of them only"
        )
        return number, Finding("MSD609", REFUSED, refused.path, 1, 1, message)


def _tried(again: Again, file: Path, recheck: bool, overlay: Mapping[Path, bytes]) -> Conversion | str:
    """Convert a file upon what others left; that it does not stay as it is then is no bug but their doing."""
    try:
        return again(file, recheck=recheck, overlay=overlay)
    except BugError as error:
        if isinstance(error.__cause__, AssertionError):
            return str(error.__cause__)
        raise


def _why(second: Conversion | str) -> str:
    if isinstance(second, str):
        return second
    for finding in second.findings:
        if finding.status == REFUSED:
            return f"{finding.code} {finding.message}"
    return "it would train no more"


def changes(file: Path, result: Conversion) -> Iterator[tuple[Path, bytes]]:
    """Yield the files that a conversion changes, by resolved path, with their new bytes."""
    if result.refused:
        return
    if result.changed:
        yield file.resolve(), result.output
    for path, content in result.modules:
        yield path.resolve(), content


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
