"""The end-to-end input: CIFAR-10, converted, trained on two ranks and compared with one card."""

from __future__ import annotations

import importlib.util
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytestmark = pytest.mark.e2e
pytest.importorskip("numpy", reason="NumPy comes with MindSpore, which is not installed")

from harness import Process, convert, largest_difference, one_card, ranks, recorded  # noqa: E402

FIXTURE = Path(__file__).parents[2] / "fixtures" / "cifar10"
ROWS, BATCH = 10_000, 50
PLAIN = ("--norm", "none", "--no_shuffle", "--no_augment", "--epochs", "1", "--data_path", "data")


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class Run:
    """The folder of the programs, what each process recorded and what the single-card runs printed."""

    folder: Path
    before: Process
    after: Process
    ranks: list[Process]
    printed_before: str
    printed_after: str


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, device: str) -> Run:
    folder = tmp_path_factory.mktemp("cifar10")
    load(FIXTURE / "make_data.py").write_dataset(folder / "data")
    source = Path(shutil.copy(FIXTURE / "train.py", folder / "train.py"))
    said = convert(source, folder / "train_dist.py")
    assert "run_distribute.sh" in said
    arguments = ("--device_target", device, *PLAIN)
    double = (*arguments, "--batch_size", str(2 * BATCH))
    before = one_card(source, *double, "--output_dir", "before", record=folder / "r1")
    after = one_card(folder / "train_dist.py", *double, "--output_dir", "after", record=folder / "r2")
    single = (*arguments, "--batch_size", str(BATCH), "--output_dir", "ranks")
    ranks(folder / "run_distribute.sh", 2, *single, record=folder / "r3")
    return Run(
        folder,
        recorded(folder / "r1", "one"),
        recorded(folder / "r2", "one"),
        [recorded(folder / "r3", "0"), recorded(folder / "r3", "1")],
        before,
        after,
    )


def test_without_a_launcher_it_trains_as_before(run: Run) -> None:
    losses = re.findall(r"loss is ([\d.]+)", run.printed_before)
    assert len(losses) >= 2
    assert re.findall(r"loss is ([\d.]+)", run.printed_after) == losses
    assert largest_difference(run.before.final, run.after.final) == 0
    assert sorted(p.name for p in (run.folder / "before").glob("*.ckpt")) == sorted(
        p.name for p in (run.folder / "after").glob("*.ckpt")
    )


def test_both_ranks_start_and_end_with_equal_weights(run: Run) -> None:
    assert largest_difference(run.ranks[0].initial, run.ranks[1].initial) == 0
    assert largest_difference(run.ranks[0].final, run.ranks[1].final) == 0


def test_two_ranks_equal_one_card_at_twice_the_batch(run: Run) -> None:
    assert largest_difference(run.ranks[0].initial, run.ranks[0].final) > 1e-2, "it did train"
    assert largest_difference(run.ranks[0].final, run.before.final) < 1e-5


def test_each_training_row_is_read_once_over_the_ranks(run: Run) -> None:
    first, second = (row_numbers(rank.reads[0]) for rank in run.ranks)
    assert len(first) == len(second) == ROWS // 2
    assert not set(first) & set(second)
    assert set(first) | set(second) == set(range(ROWS))


def test_the_test_set_is_read_whole_by_every_rank(run: Run) -> None:
    for rank in run.ranks:
        assert sorted(row_numbers(rank.reads[-1])) == list(range(ROWS))


def test_rank_0_alone_writes_checkpoints(run: Run) -> None:
    assert list((run.folder / "ranks").glob("resnet*.ckpt")), "rank 0 writes where the program says"
    assert (run.folder / "ranks" / "final.ckpt").is_file()
    assert not list((run.folder / "ranks").glob("rank_*")), "the others write no checkpoints"


def test_the_logs_lie_where_the_guide_says(run: Run) -> None:
    accuracies = []
    for rank in range(2):
        log = (run.folder / f"device{rank}" / "train.log").read_text(errors="replace")
        accuracies.append(re.findall(r"accuracy: ([\d.]+)", log))
    assert accuracies[0] == accuracies[1], "evaluated on the same rows with the same weights"
    assert float(accuracies[0][0]) > 0.3, "ten classes, learned better than guessing"


def row_numbers(batches: list[np.ndarray]) -> list[int]:
    """Return the row numbers that make_data.py hides in the top left pixel of each image.

    ``batches`` hold images as the network gets them: shape (n, 3, 32, 32), normalised.
    """
    program = (FIXTURE / "train.py").read_text()
    mean, std = (
        np.array([float(number) for number in re.findall(r"[\d.]+", re.search(rf"{name} = \[(.*)\]", program)[1])])  # type: ignore[index]
        for name in ("MEAN", "STD")
    )
    pixels = np.concatenate([batch[:, :, 0, 0] for batch in batches])
    red, green, blue = np.rint((pixels * std + mean) * 255).astype(int).T
    numbers: list[int] = (red * 65536 + green * 256 + blue).tolist()
    return numbers
