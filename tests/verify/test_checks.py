"""The checks, on records written by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ms_distify.verify.checks import check_all, files, one_card, one_reduction, starts
from ms_distify.verify.compare import courses, equal_ranks
from ms_distify.verify.mathematics import batch_loss, mathematics, questioned, to_measure
from ms_distify.verify.records import Process
from ms_distify.verify.rows import shards
from ms_distify.verify.runs import Runs

ERROR = {"e": "error", "type": "ValueError", "text": "cannot reshape", "at": "/w/train.py:9"}
ORDER = [
    {"e": "init", "at": "/w/train.py:3"},
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
    ("after", "loss", "own", "status", "said"),
    [
        pytest.param(2.0, 3.0, None, "ok", "over 1 steps: 0", id="equal"),
        pytest.param(2.5, 3.0, None, "differs", "differs from one card at 2 times", id="another way with the same loss"),
        pytest.param(2.5, None, None, "differs", "from step 1 on: w by 0.5", id="another way and no loss seen"),
        pytest.param(2.5, 5.0, 2.0, "not compared", "one card is 5, the mean of the ranks' 3", id="rows that count for each other"),
        pytest.param(2.5, 5.0, 2.5, "differs", "another loss in step 1 than the original", id="another program"),
        pytest.param(2.5, 6.0, 4.0, "differs", "another loss in step 1 than the original", id="a loss divided by the ranks"),
        pytest.param(2.5, 5.0, None, "differs", "from step 1 on: w by 0.5", id="another loss, and nothing to ask"),
        pytest.param(2.0, 5.0, None, "ok", "over 1 steps: 0", id="another loss and the same way"),
    ],
)  # fmt: skip
def test_mathematics(
    tmp_path: Path, after: float, loss: float | None, own: float | None, status: str, said: str
) -> None:
    (tmp_path / "own").mkdir()
    own_rows = process(tmp_path / "own", "one", [1.0, 2.0], own) if own is not None else None
    made = runs(tmp_path, ([1.0, after], loss), [2.0, 4.0], own_rows=own_rows)
    assert made.reference is not None
    check = mathematics(made, courses(made.reference, made.ranks[0]))
    assert check.status == status
    assert said in check.message


@pytest.mark.parametrize(
    ("again", "status", "said"),
    [
        pytest.param(2.5, "differs", "another loss in step 1 than the original", id="it repeats itself"),
        pytest.param(2.7, "not compared", "2.5 in one run and 2.7 in another", id="it does not"),
        pytest.param(None, "differs", "another loss in step 1 than the original", id="no loss was seen"),
    ],
)
def test_another_loss_of_a_program_that_draws_numbers(
    tmp_path: Path, again: float | None, status: str, said: str
) -> None:
    for name in ("own", "again"):
        (tmp_path / name).mkdir()
    own = process(tmp_path / "own", "one", [1.0, 2.0], 2.5)
    once_more = process(tmp_path / "again", "one", [1.0, 2.0], again)
    made = runs(tmp_path, ([1.0, 2.5], 5.0), [2.0, 4.0], own_rows=own, own_again=once_more)
    assert made.reference is not None
    check = mathematics(made, courses(made.reference, made.ranks[0]))
    assert check.status == status
    assert said in check.message


@pytest.mark.parametrize(
    ("alike", "one", "again", "status", "said"),
    [
        pytest.param(1.75, 1.75, None, "noted", "they train as one card does", id="equal on equal rows"),
        pytest.param(
            2.5, 1.75, 1.75, "differs", "by 0.75 where all ranks read the rows that one card reads", id="apart"
        ),
        pytest.param(2.5, 1.75, 1.9, "not compared", "no room", id="one card does not repeat itself"),
        pytest.param(2.0, 2.0, None, "not compared", "no room", id="ranks come to the same on other rows"),
        pytest.param(None, 1.75, None, "not compared", "no room", id="ranks took no step"),
    ],
)
def test_equal_rows_where_one_card_cannot_take_all(
    tmp_path: Path, alike: float | None, one: float, again: float | None, status: str, said: str
) -> None:
    """Ranks go from 1 to 2 on their own rows."""
    made = runs(tmp_path, ([1.0], None), [2.0, 4.0], why_no_reference="no room")
    for name in ("alike", "alike one", "alike again"):
        (tmp_path / name).mkdir()
    after = {"alike": alike, "alike one": one, "alike again": again}
    alone = {
        name.replace(" ", "_"): process(tmp_path / name, "0", [1.0, value] if value else [1.0], 1.0)
        for name, value in after.items()
        if value or name == "alike"
    }
    made = replace(made, **alone)
    assert made.reference is not None
    check = mathematics(made, courses(made.reference, made.ranks[0]))
    assert check.status == status
    assert said in check.message


def test_strict_counts_what_was_not_compared(tmp_path: Path) -> None:
    """But not what could not be: one card where there is none, and the speed of a single step."""
    made = runs(tmp_path, ([1.0, 2.0], 3.0), [2.0, 4.0])
    for step in (rank.first("step") for rank in made.ranks):
        assert step is not None
        step["reads"] = []  # it reads from no MindSpore dataset
    for original, expected in ((None, {"shards"}), (made.reference, {"shards", "same mathematics"})):
        strict = Runs(made.ranks, original=original, strict=True)
        checks, _ = check_all(strict, tmp_path / "work", tmp_path / "logs")
        assert {check.name for check in checks if check.status == "differs"} == expected


def test_sums_are_compared_with_a_part_of_the_gradient(tmp_path: Path) -> None:
    for after, loss, expected in ((3.0, 6.0, "sum"), (2.0, 6.0, ""), (3.0, 3.0, ""), (3.0, 5.0, "other")):
        assert questioned(runs(tmp_path, ([1.0, after], loss), [2.0, 4.0])) == expected
    divided = runs(tmp_path, ([1.0, 2.0], 6.0), [2.0, 4.0], divided=True)
    assert divided.reference is not None
    check = mathematics(divided, courses(divided.reference, divided.ranks[0]))
    assert check.status == "noted", "it is not one card's training at that batch"
    assert "a half of the loss" in check.message


def two_parameters(folder: Path, name: str, values: list[tuple[float, float]]) -> Process:
    """Return a process with a large parameter and a small one, which have these values at the start and after each step."""
    events: list[dict[str, Any]] = [*ORDER, {"e": "optimizer", "names": ["large", "small"]}]
    folder.mkdir(exist_ok=True)
    for number, (large, small) in enumerate(values):
        if number:
            events.append({"e": "step", "k": number, "reads": [[0, number - 1]], "loss": 1.0, "by_row": False})
        one, other = np.full(100, large, np.float32), np.array([small], np.float32)
        sums = np.array([hash((large, small)) % 2**32], np.uint32)
        np.savez(folder / f"{name}.step{number:05d}.npz", checksums=sums, p00000=one, p00001=other)
    return Process(folder, name, events)


# One card's large parameter goes from 0 to 1 and its small one from 1 to 1.001.
WAY = [(0.0, 1.0), (1.0, 1.001)]


@pytest.mark.parametrize(
    ("rank", "shuffled", "status", "said"),
    [
        pytest.param((1.0, 1.001005), None, "ok", "largest difference", id="little of its own way"),
        pytest.param((1.0, 1.002), (1.0, 1.001), "differs", "small differs", id="twice its way"),
        pytest.param((1.0, 1.0), (1.0, 1.001), "differs", "100.0% of its own way", id="not trained"),
        pytest.param((1.0, 1.002), (1.0, 0.9995), "ok", "small cannot be judged", id="a way that rounding makes"),
        pytest.param((1.0, 1.002), None, "not compared", "could not be measured", id="rounding is not known"),
        pytest.param(
            (1.0, 1.002), (0.9, 0.999), "not compared", "could not be measured", id="the order of rows counts"
        ),
        pytest.param((1.5, 1.001), (0.5, 1.001), "differs", "large by 0.5", id="apart from the first step on"),
    ],
)
def test_a_small_parameter_is_judged_by_its_own_way(
    tmp_path: Path, rank: tuple[float, float], shuffled: tuple[float, float] | None, status: str, said: str
) -> None:
    reference = two_parameters(tmp_path / "one", "one", WAY)
    ranks = [two_parameters(tmp_path / "ranks", str(number), [WAY[0], rank]) for number in range(2)]
    other = two_parameters(tmp_path / "other", "one", [WAY[0], shuffled]) if shuffled is not None else None
    made = Runs(ranks, reference=reference, shuffled=other)
    check = mathematics(made, courses(reference, ranks[0]))
    assert check.status == status
    assert said in check.message


def test_what_a_small_number_cannot_hold_is_rounding(tmp_path: Path) -> None:
    """A tenth of a way of 1e-6 is nothing where the next number is 1.2e-7 away."""
    reference = two_parameters(tmp_path / "one", "one", [(0.0, 1.0), (1.0, 1.000001)])
    ranks = [two_parameters(tmp_path / "ranks", "0", [(0.0, 1.0), (1.0, 1.0000011)])]
    made = Runs(ranks, reference=reference)
    assert not to_measure(made)
    assert mathematics(made, courses(reference, ranks[0])).status == "ok"


@pytest.mark.parametrize(
    ("shuffled", "status", "said"),
    [
        pytest.param([1.1, 1.9], "differs", "from step 2 on", id="the order of rows counts"),
        pytest.param([1.0, 1.9], "ok", "over 1 steps: 0 (then rounding has grown to 0.5", id="as far from itself"),
        pytest.param([1.0, 2.0001], "differs", "from step 2 on", id="not so"),
    ],
)
def test_rounding_that_grows_ends_the_comparison(tmp_path: Path, shuffled: list[float], status: str, said: str) -> None:
    folders = [tmp_path / name for name in ("one", "ranks", "other")]
    courses_of = ([0.0, 1.0, 2.0], [0.0, 1.0, 2.5], [0.0, *shuffled])
    for folder in folders:
        folder.mkdir()
    reference, rank, other = (process(folder, "0", values, 1.0) for folder, values in zip(folders, courses_of))
    made = Runs([rank], reference=reference, shuffled=other)
    assert to_measure(made)
    check = mathematics(made, courses(reference, rank))
    assert check.status == status
    assert said in check.message


def test_sums_of_an_optimizer_that_takes_no_part_of_a_gradient(tmp_path: Path) -> None:
    """One that scales its steps itself may come to the same, and is then equal to one card."""
    (tmp_path / "own").mkdir()
    own = process(tmp_path / "own", "one", [1.0, 2.0], 2.0)
    for after, status, said in (
        (2.0, "ok", "one card at 2 times the batch over"),
        (2.5, "not compared", "Lamb cannot"),
    ):
        made = runs(tmp_path, ([1.0, after], 6.0), [2.0, 4.0], divided=True, own_rows=own)
        assert made.reference is not None
        made.reference.events.append({"e": "undivided", "cls": "Lamb"})
        check = mathematics(made, courses(made.reference, made.ranks[0]))
        assert check.status == status
        assert said in check.message


@pytest.mark.parametrize(
    ("original", "status"),
    [
        pytest.param([], "differs", id="one card does not fail"),
        pytest.param([{**ERROR, "at": "/o/train.py:7"}], "ok", id="one card fails too"),
        pytest.param([{**ERROR, "text": "cannot reshape", "type": "RuntimeError"}], "differs", id="another kind"),
        pytest.param([{**ERROR, "text": "no such key"}], "differs", id="one card fails otherwise"),
        pytest.param([{"e": "limit"}, ERROR], "differs", id="one card fails when all steps are over"),
    ],
)
def test_a_rank_that_fails(tmp_path: Path, original: list[dict[str, Any]], status: str) -> None:
    ranks = [process(tmp_path, str(rank), [1.0, 2.0], 1.0, more=[ERROR]) for rank in range(2)]
    check = starts(ranks, process(tmp_path, "one", [1.0, 2.0, 3.0], 1.0, more=original))
    assert check.status == status
    assert "ValueError" in check.message


def test_the_same_failure_in_another_folder(tmp_path: Path) -> None:
    """What a program says of its files names the working folder of its run."""
    made = []
    for run, name, missing in (("original", "one", "x"), ("ranks", "0", "x"), ("ranks", "1", "y")):
        folder = tmp_path / run / "record"
        folder.mkdir(parents=True, exist_ok=True)
        error = {**ERROR, "text": f"{tmp_path / run / 'work' / missing}.ckpt does not exist"}
        made.append(process(folder, name, [1.0, 2.0], 1.0, more=[error]))
    assert starts(made[1:2], made[0]).status == "ok"
    assert starts(made[2:], made[0]).status == "differs", "another file"


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
        pytest.param([numbered(0, 60), numbered(60, 120)], "differs", "one card does not train on", id="many that one card leaves out"),
        pytest.param([numbered(39, 59), numbered(59, 79)], "ok", "drawn anew", id="others, and one by chance"),
        pytest.param([numbered(39, 59), numbered(39, 59)], "differs", "another rank too", id="others, the same on each rank"),
        pytest.param([numbered(0, 20), numbered(20, 42)], "differs", "unequal steps", id="more steps"),
        pytest.param([numbered(0, 22), numbered(20, 42)], "differs", "read more often", id="two rows on both"),
        pytest.param([numbered(0, 20), numbered(21, 41)], "ok", "1 it leaves out", id="one that a dropped batch held"),
        pytest.param([numbered(0, 20), numbered(22, 42)], "differs", "one card does not train on", id="two are too many"),
        pytest.param([numbered(0, 20), numbered(20, 38)], "differs", "unequal steps", id="unequal steps"),
    ],
)  # fmt: skip
def test_shards(tmp_path: Path, ranks: list[list[str]], status: str, said: str) -> None:
    many = [reader(tmp_path, str(rank), rows) for rank, rows in enumerate(ranks)]
    check = shards(Runs(many, reader(tmp_path, "one", numbered(0, 40))))
    assert (check.status, said in check.message) == (status, True), check.message


def evaluator(folder: Path, name: str, rows: list[str], *, cut: bool = False) -> Process:
    """Return a process that trains on rows of its own, and evaluates on others, one by one."""
    part = [numbered(0, 40), numbered(0, 20), numbered(20, 40)][["one", "0", "1"].index(name)]
    events: list[dict[str, Any]] = [{"e": "iterator", "i": 1, "dataset": 1, "batches": []}]
    events += [{"e": "read", "i": 1, "k": k, "rows": [row], "evaluation": True} for k, row in enumerate(rows)]
    events.append({"e": "end", "i": 1, "cut": cut, "reads": len(rows)})
    return Process(folder, name, [*reader(folder, name, part).events, *events])


WHOLE = ["a", "b", "c", "c", "d"]


@pytest.mark.parametrize(
    ("ranks", "cut", "status", "said"),
    [
        pytest.param((["a", "b"], ["c", "c", "d"]), False, "ok", "together the 5 rows of one card", id="shared out"),
        pytest.param((WHOLE, WHOLE), False, "ok", "the same 5 rows on every rank (each computes", id="read by all"),
        pytest.param((["a", "b"], ["c", "d"]), False, "differs", "4 rows, one card on 5", id="one is left out"),
        pytest.param((["a", "b", "c"], ["c", "c", "d"]), False, "differs", "6 rows, one card on 5", id="one twice"),
        pytest.param((["a", "a"], ["c", "c", "d"]), False, "differs", "not on the same", id="one for another"),
        pytest.param((["a", "b"], ["c", "c"]), True, "ok", "not read to its end", id="not to its end"),
        pytest.param((["x", "y"], ["z"]), False, "ok", "drawn anew", id="rows drawn anew"),
    ],
)
def test_evaluation_that_is_dealt(
    tmp_path: Path, ranks: tuple[list[str], list[str]], cut: bool, status: str, said: str
) -> None:
    many = [evaluator(tmp_path, str(rank), rows, cut=cut) for rank, rows in enumerate(ranks)]
    check = shards(Runs(many, evaluator(tmp_path, "one", WHOLE), dealt=True))
    assert (check.status, said in check.message) == (status, True), check.message


@pytest.mark.parametrize(
    ("ranks", "status", "said"),
    [
        pytest.param((["a", "b"], ["c", "c", "d"]), "differs", "a dataset for evaluation is sharded", id="sharded"),
        pytest.param((WHOLE, WHOLE), "ok", "the same 5 rows on every rank", id="whole"),
    ],
)
def test_evaluation_that_is_to_be_whole(
    tmp_path: Path, ranks: tuple[list[str], list[str]], status: str, said: str
) -> None:
    many = [evaluator(tmp_path, str(rank), rows) for rank, rows in enumerate(ranks)]
    check = shards(Runs(many, evaluator(tmp_path, "one", WHOLE)))
    assert (check.status, said in check.message) == (status, True), check.message
    assert "computes with its share" not in check.message


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


@pytest.mark.parametrize(
    ("ranks", "status"),
    [
        pytest.param([["a", "b"], ["c", "d"], ["e", "f"]], "ok", id="apart"),
        pytest.param([["a", "b"], ["c", "d", "e", "f"], ["c", "d", "e", "f"]], "differs", id="unequal"),
        pytest.param([["a", "b"] * 2, ["a", "b"] * 2], "not compared", id="rows that are not unique"),
        pytest.param([["a", "b", "c", "d"], ["e", "f", "g", "h"], ["e", "f", "g", "h"]], "differs", id="ranks 1 and 2"),
    ],
)
def test_shards_without_one_card(tmp_path: Path, ranks: list[list[str]], status: str) -> None:
    check = shards(Runs([reader(tmp_path, str(rank), rows) for rank, rows in enumerate(ranks)]))
    assert check.status == status, check.message


@pytest.mark.parametrize(
    ("devices", "status"),
    [
        pytest.param([("Ascend", 0), ("Ascend", 1)], "ok", id="one each"),
        pytest.param([("Ascend", 0), ("Ascend", 0)], "differs", id="one for both"),
        pytest.param([("CPU", 0), ("CPU", 0)], "ok", id="CPU"),
    ],
)
def test_devices(tmp_path: Path, devices: list[tuple[str, int]], status: str) -> None:
    ranks = [
        process(tmp_path, str(rank), [1.0, 2.0], 1.0, more=[{"e": "device", "target": target, "id": number}])
        for rank, (target, number) in enumerate(devices)
    ]
    assert starts(ranks).status == status


def test_ranks_that_are_no_numbers_alike_are_equal(tmp_path: Path) -> None:
    ranks = [process(tmp_path, str(rank), [1.0, float("nan")], 1.0) for rank in range(2)]
    assert equal_ranks(ranks)[1].status == "ok"
    other = process(tmp_path, "1", [1.0, 2.0], 1.0)
    assert equal_ranks([ranks[0], other])[1].status == "differs"


def test_reducers_of_one_parameter(tmp_path: Path) -> None:
    def reducer(parameter: int, line: int) -> dict[str, Any]:
        return {"e": "reducer", "at": f"/w/train.py:{line}", "first": parameter}

    built = {"one each": [reducer(1, 5), reducer(2, 6)], "again": [reducer(1, 5), reducer(1, 5)]}
    for events in built.values():
        assert one_reduction([process(tmp_path, "0", [1.0], 1.0, more=events)]).status == "ok"
    check = one_reduction([process(tmp_path, "0", [1.0], 1.0, more=[reducer(1, 5), reducer(1, 9)])])
    assert (check.status, "train.py:5, train.py:9" in check.message) == ("noted", True)


def test_a_file_of_both_ranks_outside_the_project_counts(tmp_path: Path) -> None:
    written = [{"e": "write", "path": "/tmp/shared.ckpt"}]
    ranks = [process(tmp_path, str(rank), [1.0], 1.0, more=written) for rank in range(2)]
    check = files(ranks, tmp_path / "work", tmp_path / "logs")
    assert (check.status, "/tmp/shared.ckpt" in check.message) == ("differs", True)


def test_a_file_of_no_rank_that_is_known(tmp_path: Path) -> None:
    """A library or a child of a rank may have written it, and so may two."""
    work = tmp_path / "work"
    ranks = [process(tmp_path, "0", [1.0], 1.0, more=[{"e": "write", "path": f"{work}/a.ckpt"}])]
    check = files(ranks, work, tmp_path / "logs", [f"{work}/a.ckpt"])
    assert (check.status, check.message) == ("ok", "1 files written, none by two ranks")
    check = files(ranks, work, tmp_path / "logs", [f"{work}/a.ckpt", f"{work}/x/b.bin"])
    assert check.status == "not compared"
    assert check.message.startswith("x/b.bin written")
    for path, status in (("data/rank_0/trace.json", "ok"), ("rank_1/x", "not compared"), ("rank_0", "not compared")):
        assert files(ranks, work, tmp_path / "logs", [f"{work}/{path}"]).status == status, path
