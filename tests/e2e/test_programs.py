"""Contract points 1 to 4 (DESIGN 1) on two training styles, and that ranks drift apart without reducers."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.e2e
pytest.importorskip("numpy", reason="NumPy comes with MindSpore, which is not installed")

from harness import Process, convert, largest_difference, one_card, ranks, recorded  # noqa: E402

PROGRAMS = Path(__file__).parent / "programs"
ROWS, BATCH, EPOCHS = 64, 8, 3
BY_HAND = ["functional", "jitted", "own_cells", "two_optimizers"]
# The other styles are run and compared by `verify` (test_verify.py), which knows the same points; these two without it.
STYLES = ["model_train", "functional"]


@pytest.fixture(scope="module", params=STYLES)
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, device: str) -> dict[str, Process]:
    """One card before and after the conversion at twice the batch, and two ranks."""
    folder = tmp_path_factory.mktemp(request.param)
    source = Path(shutil.copy(PROGRAMS / f"{request.param}.py", folder / "train.py"))
    output = folder / "train_dist.py"
    convert(source, output)
    double = ("--device", device, "--batch", str(2 * BATCH))
    one_card(source, *double, record=folder / "before")
    one_card(output, *double, record=folder / "after")
    ranks(folder / "run_distribute.sh", 2, "--device", device, "--batch", str(BATCH), record=folder / "ranks")
    return {
        "before": recorded(folder / "before", "one"),
        "after": recorded(folder / "after", "one"),
        "rank 0": recorded(folder / "ranks", "0"),
        "rank 1": recorded(folder / "ranks", "1"),
    }


def test_one_card_is_as_before(runs: dict[str, Process]) -> None:
    assert largest_difference(runs["before"].final, runs["after"].final) == 0
    for before, after in zip(runs["before"].reads, runs["after"].reads):
        np.testing.assert_array_equal(np.concatenate(before), np.concatenate(after))


def test_ranks_start_equal(runs: dict[str, Process]) -> None:
    assert largest_difference(runs["rank 0"].initial, runs["rank 1"].initial) == 0


def test_ranks_end_equal_and_equal_to_one_card_at_twice_the_batch(runs: dict[str, Process]) -> None:
    assert largest_difference(runs["rank 0"].final, runs["rank 1"].final) == 0
    assert largest_difference(runs["rank 0"].initial, runs["rank 0"].final) > 1e-3, "it did train"
    assert largest_difference(runs["rank 0"].final, runs["before"].final) < 1e-5


def test_each_row_is_read_by_one_rank_once_an_epoch(runs: dict[str, Process]) -> None:
    seen = [_numbers(runs[rank].reads) for rank in ("rank 0", "rank 1")]
    assert len(seen[0]) == len(seen[1]) == EPOCHS * ROWS // 2
    for epoch in range(EPOCHS):
        part = slice(epoch * ROWS // 2, (epoch + 1) * ROWS // 2)
        first, second = set(seen[0][part]), set(seen[1][part])
        assert not first & second
        assert first | second == set(range(ROWS))


def test_evaluation_data_is_whole_on_every_rank(runs: dict[str, Process]) -> None:
    evaluations = [
        [len(batch) for batch in batches]
        for process in runs.values()
        for batches in process.reads
        if len(batches[0]) == 5
    ]
    assert all(sizes == [5] * 5 for sizes in evaluations)


@pytest.mark.parametrize("program", BY_HAND)
def test_without_the_reducers_ranks_drift_apart(program: str, tmp_path: Path, device: str) -> None:
    """What the reducers are for; and the proof that the comparison above can fail."""
    source = Path(shutil.copy(PROGRAMS / f"{program}.py", tmp_path / "train.py"))
    output = tmp_path / "train_dist.py"
    convert(source, output)
    text = output.read_text()
    broken = re.sub(r"nn\.DistributedGradReducer\(.*\) if .* else nn\.Identity\(\)", "nn.Identity()", text)
    broken = broken.replace("self.grad_reducer(self.grad(", "(self.grad(")
    assert broken != text
    output.write_text(broken)
    ranks(tmp_path / "run_distribute.sh", 2, "--device", device, "--batch", str(BATCH), record=tmp_path / "ranks")
    first, second = (recorded(tmp_path / "ranks", rank) for rank in ("0", "1"))
    assert largest_difference(first.initial, second.initial) == 0
    assert largest_difference(first.final, second.final) > 1e-4


def _numbers(reads: list[list[np.ndarray]]) -> list[int]:
    """Return the numbers of the training rows in the order they were read (evaluation batches have 5 rows)."""
    return [
        round(float(row[0]) * ROWS) for batches in reads for batch in batches if len(batch) == BATCH for row in batch
    ]


def test_the_comparison_can_fail(tmp_path: Path, device: str) -> None:
    """Without the shards, two ranks do not equal one card at twice the batch."""
    source = Path(shutil.copy(PROGRAMS / "train_cell.py", tmp_path / "train.py"))
    output = tmp_path / "train_dist.py"
    convert(source, output)
    text = output.read_text()
    broken = text.replace(", num_shards=rank_size, shard_id=rank_id", "")
    assert broken != text
    output.write_text(broken)
    one_card(source, "--device", device, "--batch", str(2 * BATCH), record=tmp_path / "one")
    ranks(tmp_path / "run_distribute.sh", 2, "--device", device, "--batch", str(BATCH), record=tmp_path / "ranks")
    one, rank = recorded(tmp_path / "one", "one"), recorded(tmp_path / "ranks", "0")
    assert largest_difference(one.final, rank.final) > 1e-3
