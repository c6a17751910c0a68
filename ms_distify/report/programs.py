"""What became of several programs: each under its own heading, and each file that they share once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..convert import Conversion
from ..model import REFUSED, Finding
from .terminal import finding_line

Entry = tuple[Finding, Conversion]


def program_lines(
    results: Sequence[Conversion], *, colour: bool = False, looked: bool = False, quiet: bool = False
) -> Iterator[str]:
    """Yield the findings of several programs.

    Args:
        results: the programs.
        colour: add terminal colours.
        looked: nothing is written for any of them.
        quiet: refusals only.
    """
    names = {result.path for result in results}
    shared: dict[str, list[Entry]] = {}
    for result in results:
        own: list[Entry] = []
        for finding in result.findings:
            home = own if finding.path == result.path else shared.setdefault(finding.path, [])
            home.append((finding, result))
        yield from _file(f"{result.path}: {verdict(result, looked=looked)}", own, colour, looked, quiet)
    for path, entries in shared.items():
        users = list(dict.fromkeys(result.path for _, result in entries))
        heading = f"{path}: {'a program, too; ' if path in names else ''}used by {', '.join(users)}"
        yield from _file(heading, _merged(entries), colour, looked, quiet)


def verdict(result: Conversion, *, looked: bool) -> str:
    """Return in a few words what became of a program."""
    if result.refused:
        return "refused"
    if not result.changed and not result.modules:
        return "distributed already"
    return "would be converted" if looked else "converted"


def refusal_lines(results: Iterable[Conversion]) -> Iterator[str]:
    """Yield every refusal once, with the program where it is not that of the file."""
    found: dict[tuple[str, int, str], list[Entry]] = {}
    for result in results:
        for finding in result.findings:
            if finding.status == REFUSED:
                found.setdefault((finding.path, finding.line, finding.code), []).append((finding, result))
    for (path, line, code), entries in found.items():
        for message, also in _messages(entries).items():
            yield f"  {path}:{line}: {code} {message}{also}"


def _messages(entries: list[Entry]) -> dict[str, str]:
    """Return the messages at one site, and for which programs else they hold; those that differ by the program, once."""
    if entries[0][0].code == "MSD609":
        others = list(dict.fromkeys(result.path for _, result in entries[1:] if result is not entries[0][1]))
        return {entries[0][0].message: f" (as for {', '.join(others)})" if others else ""}
    return {finding.message: "" for finding, _ in entries}


def _merged(entries: list[Entry]) -> list[Entry]:
    """Return what was decided about the sites of a file that programs share.

    What a refused program would have needed at a site counts only where no other program says something about it; why
    it is refused counts anyway.
    """
    said: dict[tuple[str, int, int, bool], Entry] = {}
    for finding, result in sorted(entries, key=lambda entry: entry[1].refused):
        refusal = finding.status == REFUSED
        if refusal or (finding.code, finding.line, finding.column, False) not in said:
            said.setdefault((finding.code, finding.line, finding.column, refusal), (finding, result))
    return sorted(said.values(), key=lambda entry: (entry[0].line, entry[0].code, entry[0].column))


def _file(heading: str, entries: Iterable[Entry], colour: bool, looked: bool, quiet: bool) -> Iterator[str]:
    lines = [
        finding_line(finding, colour=colour, written=not (looked or result.refused))
        for finding, result in entries
        if not quiet or finding.status == REFUSED
    ]
    if lines:
        yield heading
        yield from lines
