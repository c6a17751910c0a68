"""Helpers of the rule tests: one for each kind of outcome. Every one also checks what holds for all outputs."""

from __future__ import annotations

import ast
import difflib
import textwrap

import libcst as cst

from ms_distify import Conversion, Settings, convert
from ms_distify.model import CHANGED, KEPT, NOTED, REFUSED

# Completes a snippet whose dataset is called `train` so that it trains (CASES: "to be read with one").
TRAINING = """\
net = nn.Dense(4, 2)
model = ms.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
model.train(1, train)
"""
HEAD = """\
import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn
"""


def dedent(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


def run(source: str | bytes, *, settings: Settings | None = None, path: str = "train.py") -> Conversion:
    """Convert, and check what must hold for any program: DESIGN 1, points 7 to 9."""
    raw = source if isinstance(source, bytes) else dedent(source).encode()
    result = convert(raw, path, settings)
    assert result.original == raw
    if result.refused:
        assert result.output == raw, "a refused program is left alone"
        return result
    if result.changed:
        ast.parse(result.output)
        cst.parse_module(result.output)
        again = convert(result.output, path, settings)
        assert not again.refused, [f for f in again.findings if f.status == REFUSED]
        assert again.output == result.output, "a second run changes nothing"
        assert any(finding.status == CHANGED for finding in result.findings)
    else:
        assert all(finding.status != CHANGED for finding in result.findings)
    return result


def unchanged(source: str | bytes, *, code: str | None = None, message: str = "") -> Conversion:
    """Assert that a program is not touched and not refused; with ``code``, that this finding says why."""
    result = run(source)
    assert not result.refused, [f for f in result.findings if f.status == REFUSED]
    assert result.output == result.original, show(result)
    if code is not None:
        assert any(f.code == code and message in f.message for f in result.findings), result.findings
    return result


def converted(source: str | bytes, *, settings: Settings | None = None) -> str:
    """Return the converted text of a program that must convert."""
    result = run(source, settings=settings)
    assert not result.refused, [f for f in result.findings if f.status == REFUSED]
    assert result.changed, result.findings
    return result.output.decode()


def becomes(source: str, after: str, *, settings: Settings | None = None) -> None:
    """Assert the whole output."""
    assert converted(source, settings=settings) == dedent(after)


def changed_lines(source: str | bytes) -> tuple[list[str], list[str]]:
    """Return the lines that a conversion takes away and puts in."""
    result = run(source)
    assert not result.refused, [f for f in result.findings if f.status == REFUSED]
    diff = list(difflib.ndiff(result.original.decode().splitlines(), result.output.decode().splitlines()))
    return [line[2:] for line in diff if line.startswith("- ")], [line[2:] for line in diff if line.startswith("+ ")]


def refused(source: str | bytes, code: str, line: int, message: str = "") -> Conversion:
    """Assert that a program is refused with this code at this line, and left alone."""
    result = run(source)
    found = [(f.code, f.line) for f in result.findings if f.status == REFUSED]
    assert (code, line) in found, result.findings
    assert any(f.code == code and f.line == line and message in f.message for f in result.findings), result.findings
    return result


def found(result: Conversion, code: str, status: str | None = None) -> list[tuple[str, int]]:
    """Return (status, line) of the findings with a code."""
    return [(f.status, f.line) for f in result.findings if f.code == code and status in (None, f.status)]


def show(result: Conversion) -> str:
    """Return the diff of a conversion, for assertion messages."""
    before, after = result.original.decode().splitlines(), result.output.decode().splitlines()
    return "\n".join(difflib.unified_diff(before, after, lineterm=""))


def sharded(source: str | bytes) -> list[str]:
    """Return the lines with num_shards or shard_id that a conversion puts in, stripped, in order."""
    return [line.strip() for line in changed_lines(source)[1] if "num_shards" in line or "shard_id" in line]


__all__ = [
    "CHANGED", "HEAD", "KEPT", "NOTED", "REFUSED", "TRAINING", "becomes", "changed_lines", "converted", "dedent",
    "found", "refused", "run", "sharded", "show", "unchanged",
]  # fmt: skip
