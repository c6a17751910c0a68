"""--shard-eval gives one card's metrics on any number of ranks, and a stop on the training loss is everybody's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.e2e
pytest.importorskip("numpy", reason="NumPy comes with MindSpore, which is not installed")

from harness import convert, one_card, ranks  # noqa: E402

PROGRAM = Path(__file__).parent / "programs" / "evaluated.py"


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluated")
    source = Path(shutil.copy(PROGRAM, folder / "train.py"))
    said = convert(source, folder / "train_dist.py", "--shard-eval")
    assert said.count("MSD503") == 4
    return folder / "train_dist.py"


@pytest.fixture(scope="module")
def one(converted: Path, device: str) -> dict[str, Any]:
    return results(one_card(converted.with_name("train.py"), "--device", device))


def results(output: str) -> dict[str, Any]:
    (line,) = [line for line in output.splitlines() if line.startswith("RESULTS ")]
    found: dict[str, Any] = json.loads(line[len("RESULTS ") :])
    return found


def stops(losses: list[float]) -> int:
    """Return the epoch in which the program's own rule stops on some losses, their number if it does not."""
    best, waited = 9.0, 0
    for epoch, loss in enumerate(losses):
        best, waited = (loss, 0) if loss < best - 0.02 else (best, waited + 1)
        if waited == 2:
            return epoch
    return len(losses)


def test_one_card_is_as_before(converted: Path, one: dict[str, Any], device: str) -> None:
    assert one["hand"][1] == 25
    assert 0 < one["hand"][0] < 25
    assert results(one_card(converted, "--device", device)) == one


@pytest.mark.parametrize("number", [2, 3])
def test_every_rank_has_the_metrics_of_one_card_and_stops_with_the_others(
    converted: Path, one: dict[str, Any], number: int, device: str
) -> None:
    """25 rows are 7 batches, or one batch, so that most ranks have none."""
    ranks(converted.with_name("run_distribute.sh"), number, "--device", device)
    found = [results((converted.parent / f"device{rank}" / "train.log").read_text()) for rank in range(number)]
    for result in found:
        for kind in ("hand", "hand, one batch"):
            assert result[kind][:2] == one[kind][:2]
            assert result[kind][2] == pytest.approx(one[kind][2], rel=1e-6)
        for kind in ("model", "model again"):
            assert result[kind]["acc"] == one[kind]["acc"]
            assert result[kind]["top_1_accuracy"] == one[kind]["top_1_accuracy"]
            assert result[kind]["loss"] == pytest.approx(one[kind]["loss"], rel=1e-6)
        assert result["model, one batch"] == one["model, one batch"]
    assert len({result["stopped"] for result in found}) == 1
    assert len({stops(result["own"]) for result in found}) > 1, "alone, they would stop in other epochs"
    together = [sum(losses) / number for losses in zip(*(result["own"] for result in found))]
    assert stops(together) == found[0]["stopped"] == len(together) - 1
