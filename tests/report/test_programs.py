"""The report on several programs: each under its heading, each file once."""

from __future__ import annotations

import pytest

from ms_distify import Conversion
from ms_distify.model import CHANGED, KEPT, NOTED, REFUSED, Finding
from ms_distify.report.programs import program_lines, refusal_lines, verdict


def result(path: str, *findings: Finding, output: bytes = b"new") -> Conversion:
    refused = any(finding.status == REFUSED for finding in findings)
    return Conversion(path, b"old", b"old" if refused else output, findings, trains=True)


def own(path: str) -> Finding:
    return Finding("MSD102", CHANGED, path, 1, 1, f"init of {path}")


def shared(path: str, status: str = CHANGED, line: int = 3) -> Finding:
    return Finding("MSD201", status, "src/data.py", line, 5, f"for {path}")


STAR = Finding("MSD601", REFUSED, "bad.py", 2, 1, "star")


@pytest.mark.parametrize(
    ("findings", "output", "looked", "text"),
    [
        pytest.param([own("a.py")], b"new", False, "converted", id="converted"),
        pytest.param([own("a.py")], b"new", True, "would be converted", id="looked"),
        pytest.param([own("a.py"), STAR], b"new", True, "refused", id="refused"),
        pytest.param([], b"old", False, "distributed already", id="nothing to do"),
    ],
)
def test_verdict(findings: list[Finding], output: bytes, looked: bool, text: str) -> None:
    assert verdict(result("a.py", *findings, output=output), looked=looked) == text


def test_each_file_once_and_no_opposite_words() -> None:
    """A refused program leaves the shared file to those that are converted."""
    programs = [
        result("bad.py", STAR, own("bad.py"), shared("bad.py")),
        result("a.py", own("a.py"), shared("a.py")),
        result("b.py", own("b.py"), shared("b.py"), Finding("MSD205", NOTED, "src/data.py", 3, 5, "note")),
    ]
    assert list(program_lines(programs)) == [
        "bad.py: refused",
        "  refused  MSD601  bad.py:2  star",
        "  would    MSD102  bad.py:1  init of bad.py",
        "a.py: converted",
        "  changed  MSD102  a.py:1  init of a.py",
        "b.py: converted",
        "  changed  MSD102  b.py:1  init of b.py",
        "src/data.py: used by bad.py, a.py, b.py",
        "  changed  MSD201  src/data.py:3  for a.py",
        "  noted    MSD205  src/data.py:3  note",
    ]
    assert list(program_lines(programs, quiet=True)) == ["bad.py: refused", "  refused  MSD601  bad.py:2  star"]


def test_a_refusal_in_a_shared_file_is_told_beside_what_others_do_there() -> None:
    programs = [
        result("a.py", own("a.py"), shared("a.py")),
        result("b.py", own("b.py"), shared("b.py", REFUSED), shared("b.py", KEPT, line=9)),
    ]
    assert list(program_lines(programs, looked=True))[4:] == [
        "src/data.py: used by a.py, b.py",
        "  would    MSD201  src/data.py:3  for a.py",
        "  refused  MSD201  src/data.py:3  for b.py",
        "  kept     MSD201  src/data.py:9  for b.py",
    ]


def test_a_program_that_another_imports_is_listed_with_its_own_findings_first() -> None:
    programs = [result("a.py", own("a.py"), own("b.py")), result("b.py", own("b.py"))]
    assert [line for line in program_lines(programs) if not line.startswith(" ")] == [
        "a.py: converted",
        "b.py: converted",
        "b.py: a program, too; used by a.py",
    ]


def test_refusals_once() -> None:
    named = "was not named: ms-distify --in-place {} src/data.py"
    programs = [
        result(name, Finding("MSD609", REFUSED, "src/data.py", 1, 1, named.format(name)), STAR)
        for name in ("a.py", "b.py")
    ]
    assert list(refusal_lines(programs)) == [
        "  src/data.py:1: MSD609 was not named: ms-distify --in-place a.py src/data.py (as for b.py)",
        "  bad.py:2: MSD601 star",
    ]
