from __future__ import annotations

import os
from pathlib import Path

import pytest

from ms_distify.model import CHANGED, KEPT, NOTED, REFUSED, Finding
from ms_distify.report.terminal import finding_lines, summary, unified_diff

FINDINGS = [
    Finding("MSD101", CHANGED, "a.py", 1, 1, "one"),
    Finding("MSD201", KEPT, "a.py", 22, 5, "two"),
    Finding("MSD201", REFUSED, "b.py", 3, 1, "three"),
]


def test_lines() -> None:
    assert list(finding_lines([])) == []
    assert list(finding_lines(FINDINGS)) == [
        "a.py",
        "  changed  MSD101  a.py:1  one",
        "  kept     MSD201  a.py:22  two",
        "b.py",
        "  refused  MSD201  b.py:3  three",
    ]


def test_colour_changes_nothing_but_colour() -> None:
    plain, coloured = list(finding_lines(FINDINGS)), list(finding_lines(FINDINGS, colour=True))
    assert coloured[1] == "  \x1b[32mchanged \x1b[0m MSD101  a.py:1  one"
    assert [line.split("\x1b[0m")[-1] for line in coloured[1:3]] == [line[10:] for line in plain[1:3]]


@pytest.mark.parametrize(
    ("statuses", "text"),
    [
        ([], ""),
        ([CHANGED], "1 changed"),
        ([REFUSED, CHANGED, NOTED, CHANGED], "2 changed, 1 noted, 1 refused"),
    ],
)
def test_summary(statuses: list[str], text: str) -> None:
    assert summary(Finding("MSD101", status, "a.py", 1, 1, "") for status in statuses) == text


def test_diff_of_equal_texts_is_empty() -> None:
    assert unified_diff(b"a\n", b"a\n", "a.py") == b""


def test_diff_keeps_every_byte() -> None:
    diff = unified_diff(b"a\xff\r\nb\rc\nend", b"a\xff\r\nnew\r\nb\rc\nend", "a.py")
    assert (
        diff == b"--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,4 @@\n"
        b" a\xff\r\n+new\r\n b\rc\n end\n\\ No newline at end of file\n"
    )


@pytest.mark.parametrize(
    ("path", "header"),
    [
        ("t.py", "--- a/t.py\n"),
        ("./t.py", "--- a/t.py\n"),
        ("x/../t.py", "--- a/t.py\n"),
        ("a b.py", "--- a/a b.py\t\n"),
        ("训.py", "--- a/训.py\n"),
        ('a"b\\c.py', '--- "a/a\\"b\\\\c.py"\n'),
        ("a\nb\x01.py", '--- "a/a\\nb\\001.py"\n'),
        ("<stdin>", "--- a/stdin\n"),
        ("/nowhere/t.py", "--- a/nowhere/t.py\n"),
    ],
)
def test_diff_names(path: str, header: str) -> None:
    assert unified_diff(b"", b"x\n", path).startswith(header.encode())


def test_diff_names_are_relative_to_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert unified_diff(b"", b"x\n", os.path.join(os.getcwd(), "d", "t.py")).startswith(b"--- a/d/t.py\n")


def test_coloured_diff() -> None:
    diff = unified_diff(b"a\n", b"b\n", "t.py", colour=True).decode()
    assert "\x1b[31m-a\x1b[0m\n\x1b[32m+b\x1b[0m\n" in diff
