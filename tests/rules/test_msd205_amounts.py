"""Numbers that mean something else on shards are noted, and left as they are."""

from __future__ import annotations

import pytest
from support import HEAD, NOTED, TRAINING, found, refused, run, sharded


@pytest.mark.parametrize(
    "data",
    [
        pytest.param('ds.MnistDataset("/d")', id="none"),
        pytest.param('ds.MnistDataset("/d", num_samples=None, num_parallel_workers=None)', id="None"),
        pytest.param('ds.MnistDataset("/d").batch(8, drop_remainder=True)', id="drop_remainder"),
        pytest.param('ds.MnistDataset("/d").batch(8, True)', id="drop_remainder by position"),
    ],
)
def test_nothing_to_note(data: str) -> None:
    assert found(run(f"{HEAD}train = {data}\n{TRAINING}"), "MSD205") == []


def test_evaluation_data_is_not_noted() -> None:
    source = f'{HEAD}train = ds.MnistDataset("/d")\ntest = ds.MnistDataset("/d", num_samples=9).batch(2)\n{TRAINING}'
    assert found(run(source + "model.eval(test)\n"), "MSD205") == []


@pytest.mark.parametrize(
    ("data", "messages"),
    [
        pytest.param('ds.MnistDataset("/d").batch(100)', ["drop_remainder"], id="C20 batch"),
        pytest.param(
            'ds.MnistDataset("/d", num_samples=1000, num_parallel_workers=32)',
            ["num_parallel_workers=32 is per rank", "num_samples=1000 counts per shard"],
            id="C21 amounts",
        ),
        pytest.param('ds.MnistDataset("/d", "train", 50)', ["num_samples=50"], id="by position"),
        pytest.param('ds.MnistDataset("/d").take(5)', ["take()"], id="take"),
    ],
)
def test_noted(data: str, messages: list[str]) -> None:
    source = f"{HEAD}train = {data}\n{TRAINING}"
    findings = sorted(f.message for f in run(source).findings if f.code == "MSD205")
    assert len(findings) == len(messages)
    assert all(part in message for part, message in zip(messages, findings)), findings
    assert {status for status, _ in found(run(source), "MSD205")} == {NOTED}
    assert len(sharded(source)) == 1


@pytest.mark.parametrize(
    "program",
    [
        pytest.param('train = ds.MnistDataset("/d").skip(24)\n', id="skip"),
        pytest.param(
            'val = ds.MnistDataset("/d").skip(24)\ntrain = ds.MnistDataset("/d").take(24)\n', id="take beside skip"
        ),
    ],
)
def test_parts_cut_with_take_and_skip_are_refused(program: str) -> None:
    """Per shard they would overlap: two ranks trained on all rows, those of the validation part too."""
    evaluated = "model.eval(val)\n" if "val" in program else ""
    line = 4 if "val" not in program else 5
    refused(f"{HEAD}{program}{TRAINING}{evaluated}", "MSD205", line, "overlap")
