"""What became of many files, in three lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ..convert import Conversion
from ..model import CHANGED, REFUSED, Finding


def totals(results: Sequence[Conversion], *, written: bool = True) -> Iterator[str]:
    """Yield the sums over several files: programs by what became of them, sites by their codes.

    Args:
        results: the conversions.
        written: whether they are written; "converted" and "changed" are what would be otherwise.
    """
    programs = [result for result in results if result.trains]
    refused = [result for result in programs if result.refused]
    done = [result for result in programs if not result.refused]
    converted = sum(result.changed or bool(result.modules) for result in done)
    would = "" if written else " would be"
    parts = [f"{converted}{would} converted", f"{len(refused)} refused"]
    if len(done) > converted:
        parts.append(f"{len(done) - converted} distributed already")
    idle = len(results) - len(programs)
    if idle:
        parts.append(f"{idle} of {len(results)} files start no training")
    yield "programs: " + ", ".join(parts)
    sites = _by_code(finding for result in done for finding in result.findings if finding.status == CHANGED)
    if sites:
        yield f"sites that {'were' if written else 'would be'} changed: {sites}"
    sites = _by_code(finding for result in refused for finding in result.findings if finding.status == REFUSED)
    if sites:
        yield f"sites that are refused: {sites}"


def _by_code(findings: Iterable[Finding]) -> str:
    """Return "MSD201 4, MSD301 2"; a site that two programs share counts once."""
    sites = {(finding.code, finding.path, finding.line, finding.column) for finding in findings}
    counts = Counter(code for code, *_ in sites)
    return ", ".join(f"{code} {count}" for code, count in sorted(counts.items()))
