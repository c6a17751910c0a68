"""The checks, on records written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ms_distify.verify.checks import Runs, adds_up, mathematics, one_card, shards, starts
from ms_distify.verify.compare import batch_loss, courses
from ms_distify.verify.records import Process

ERROR = {"e": "error", "type": "ValueError", "text": "cannot reshape", "at": "/w/train.py:9"}
ORDER = [
    {"e": "call", "name": "init", "at": "/w/train.py:3"},
    {"e": "first", "kind": "Cell", "what": "Net", "at": "x:4"},
]


def process(
    folder: Path, name: str, values: list[float], loss: float | None, *, by_row: bool = False, more: Any = ()
) -> Process:
    """Return a process with one parameter, which has these values before the first step and after each."""
    events: list[dict[str, Any]] = [*ORDER, {"e": "optimizer", "names": ["w"]}]
    for number in range(1, len(values)):
        events.append({"e": "step", "k": number, "reads": [[0, number - 1]], "loss": loss, "by_row": by_row})
    for number, value in enumerate(values):
        array = np.array([value], np.float32)
        np.savez(folder / f"{name}.step{number:05d}.npz", checksums=array.view(np.uint32), p00000=array)
    return Process(folder, name, [*events, *more])


def runs(folder: Path, one: tuple[Any, ...], ranks: list[float | None], *, by_row: bool = False, **more: Any) -> Runs:
    """Return runs in which ranks step from 1 to 2: losses of the ranks, and values and loss of one card."""
    many = [process(folder, str(rank), [1.0, 2.0], loss, by_row=by_row) for rank, loss in enumerate(ranks)]
    return Runs(many, reference=process(folder, "one", *one, by_row=by_row), **more)


@pytest.mark.parametrize(
    ("one", "ranks", "by_row", "expected"),
    [
        pytest.param(3.0, [2.0, 4.0], False, "mean", id="mean"),
        pytest.param(6.0, [2.0, 4.0], False, "sum", id="sum"),
        pytest.param(5.0, [2.0, 4.0], False, "other", id="neither"),
        pytest.param(3.0, [2.0, 4.0], True, "sum", id="a number for each row, of which gradients are summed"),
        pytest.param(3.0001, [2.0, 4.0], False, "mean", id="rounding"),
        pytest.param(None, [2.0, 4.0], False, None, id="not seen on one card"),
        pytest.param(3.0, [2.0, None], False, None, id="not seen on a rank"),
        pytest.param(float("nan"), [2.0, 4.0], False, None, id="not a number"),
    ],
)
def test_how_a_loss_comes_from_its_rows(
    tmp_path: Path, one: float | None, ranks: list[float | None], by_row: bool, expected: str | None
) -> None:
    made = runs(tmp_path, ([1.0, 2.0], one), ranks, by_row=by_row)
    assert made.reference is not None
    found = batch_loss(made.reference, made.ranks)
    assert (found[0] if found else None) == expected


@pytest.mark.parametrize(
    ("after", "loss", "strict", "status", "said"),
    [
        pytest.param(2.0, 3.0, False, "ok", "over 1 steps: 0", id="equal"),
        pytest.param(2.5, 3.0, False, "differs", "from step 1 on: w by 0.5", id="another way with the same loss"),
        pytest.param(2.5, None, False, "differs", "from step 1 on: w by 0.5", id="another way and no loss seen"),
        pytest.param(2.5, 5.0, False, "not compared", "one card is 5, the mean of the ranks' 3", id="rows that count for each other"),
        pytest.param(2.5, 5.0, True, "differs", "one card is 5, the mean of the ranks' 3", id="strict"),
        pytest.param(2.0, 5.0, False, "ok", "over 1 steps: 0", id="another loss and the same way"),
    ],
)  # fmt: skip
def test_mathematics(tmp_path: Path, after: float, loss: float | None, strict: bool, status: str, said: str) -> None:
    made = runs(tmp_path, ([1.0, after], loss), [2.0, 4.0], strict=strict)
    assert made.reference is not None
    check = mathematics(made, courses(made.reference, made.ranks[0]))
    assert check.status == status
    assert said in check.message


def test_sums_are_compared_with_a_part_of_the_gradient(tmp_path: Path) -> None:
    for after, loss, expected in ((3.0, 6.0, True), (2.0, 6.0, False), (3.0, 3.0, False)):
        made = runs(tmp_path, ([1.0, after], loss), [2.0, 4.0])
        assert made.reference is not None
        assert adds_up(made, courses(made.reference, made.ranks[0])) is expected
    divided = runs(tmp_path, ([1.0, 2.0], 6.0), [2.0, 4.0], divided=True)
    assert divided.reference is not None
    check = mathematics(divided, courses(divided.reference, divided.ranks[0]))
    assert check.status == "ok"
    assert "a half of the loss" in check.message


@pytest.mark.parametrize(
    ("original", "status"),
    [
        pytest.param([], "differs", id="one card does not fail"),
        pytest.param([{**ERROR, "at": "/o/train.py:7"}], "ok", id="one card fails too"),
        pytest.param([{**ERROR, "type": "RuntimeError"}], "differs", id="one card fails otherwise"),
        pytest.param([{"e": "limit"}, ERROR], "differs", id="one card fails when all steps are over"),
    ],
)
def test_a_rank_that_fails(tmp_path: Path, original: list[dict[str, Any]], status: str) -> None:
    ranks = [process(tmp_path, str(rank), [1.0, 2.0], 1.0, more=[ERROR]) for rank in range(2)]
    check = starts(ranks, process(tmp_path, "one", [1.0, 2.0, 3.0], 1.0, more=original))
    assert check.status == status
    assert "ValueError" in check.message


def reader(folder: Path, name: str, rows: list[str]) -> Process:
    """Return a process that trains on one epoch of rows, in batches of two."""
    events: list[dict[str, Any]] = [{"e": "iterator", "i": 0, "dataset": 0, "batches": [0]}]
    for number in range(0, len(rows), 2):
        read = {"e": "read", "i": 0, "k": number // 2, "rows": rows[number : number + 2], "evaluation": False}
        events += [read, {"e": "step", "k": number // 2 + 1, "reads": [[0, number // 2]], "loss": 1.0}]
    return Process(folder, name, [*events, {"e": "end", "i": 0, "cut": False, "reads": len(rows) // 2}])


def numbered(start: int, end: int) -> list[str]:
    return [f"r{number}" for number in range(start, end)]


@pytest.mark.parametrize(
    ("ranks", "status", "said"),
    [
        pytest.param([numbered(0, 20), numbered(20, 40)], "ok", "together the 40 rows of one card", id="shared out"),
        pytest.param([numbered(0, 40), numbered(0, 40)], "differs", "read more often", id="all on each rank"),
        pytest.param([numbered(0, 20), numbered(0, 20)], "differs", "read more often", id="one part on each rank"),
        pytest.param([numbered(0, 10), numbered(10, 20)], "differs", "read by no rank", id="half of them"),
        pytest.param([numbered(0, 60), numbered(60, 120)], "differs", "read more often", id="many that one card leaves out"),
        pytest.param([numbered(39, 59), numbered(59, 79)], "ok", "drawn anew", id="others, and one by chance"),
        pytest.param([numbered(39, 59), numbered(39, 59)], "differs", "another rank too", id="others, the same on each rank"),
        pytest.param([numbered(0, 20), numbered(20, 38)], "differs", "unequal steps", id="unequal steps"),
    ],
)  # fmt: skip
def test_shards(tmp_path: Path, ranks: list[list[str]], status: str, said: str) -> None:
    many = [reader(tmp_path, str(rank), rows) for rank, rows in enumerate(ranks)]
    check = shards(Runs(many, reader(tmp_path, "one", numbered(0, 40))))
    assert (check.status, said in check.message) == (status, True), check.message


@pytest.mark.parametrize(
    ("again", "status"),
    [
        pytest.param(None, "differs", id="not tried"),
        pytest.param([1.0, 2.0], "differs", id="the original repeats itself"),
        pytest.param([1.0, 3.0], "not compared", id="the original does not"),
    ],
)
def test_one_card(tmp_path: Path, again: list[float] | None, status: str) -> None:
    folders = [tmp_path / name for name in ("original", "alone", "again")]
    for folder in folders:
        folder.mkdir()
    original, alone = (process(folders[number], "one", [1.0, 2.0 + number], 1.0) for number in range(2))
    check = one_card(original, alone, process(folders[2], "one", again, 1.0) if again else None)
    assert check.status == status
    assert "w differs by 1 after step 1" in check.message
