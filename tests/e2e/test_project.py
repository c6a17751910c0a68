"""A project of several files, copied and converted with ``-o DIR``, on two ranks against one card (DESIGN 1).

Its datasets are built by a function for both roles in another file, three calls deep, by a factory that returns a
tuple into attributes of a trainer; its eval script shares these modules.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.e2e
pytest.importorskip("numpy", reason="NumPy comes with MindSpore, which is not installed")

from harness import largest_difference, one_card, ranks, recorded  # noqa: E402

PROJECT = Path(__file__).parent / "project"
ROWS, TEST_ROWS, BATCH, EPOCHS = 64, 25, 8, 3


def _losses(output: str) -> list[float]:
    """Return the losses that a program prints behind "evaluated"."""
    return [float(value) for value in re.findall(r"evaluated \{'loss': ([-+.\de]+)\}", output)]


def test_a_project_of_several_files(tmp_path: Path, device: str) -> None:
    project = Path(shutil.copytree(PROJECT, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__")))
    command = [sys.executable, "-m", "ms_distify", "project", "-o", "dist"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    copy = tmp_path / "dist"
    printed = one_card(project / "train.py", "--device", device, "--batch", str(2 * BATCH), record=tmp_path / "one")
    ranks(copy / "run_distribute.sh", 2, "--device", device, "--batch", str(BATCH), record=tmp_path / "ranks")
    one, *processes = (recorded(tmp_path / f, name) for f, name in (("one", "one"), ("ranks", "0"), ("ranks", "1")))

    assert largest_difference(processes[0].initial, processes[1].initial) == 0
    assert largest_difference(processes[0].final, processes[1].final) == 0
    assert largest_difference(one.initial, one.final) > 1e-3, "it did train"
    assert largest_difference(one.final, processes[0].final) < 1e-5

    # Iterators in the order of their use: training and evaluation by turns, three times.
    assert [len(process.reads) for process in (one, *processes)] == [2 * EPOCHS] * 3
    for epoch in range(0, 2 * EPOCHS, 2):
        shards = [np.concatenate(process.reads[epoch])[:, 0] * ROWS for process in processes]
        assert [shard.round().astype(int).tolist() for shard in shards] == [[*range(0, 64, 2)], [*range(1, 64, 2)]]
        for process in (one, *processes):
            whole = np.concatenate(process.reads[epoch + 1])[:, 0] * TEST_ROWS
            assert whole.round().astype(int).tolist() == list(range(TEST_ROWS)), "evaluation is whole"

    # What rank 0 saved, read by the eval script of the copy without a launcher, gives what one card printed.
    assert (copy / "evaluate.py").read_bytes() == (project / "evaluate.py").read_bytes()
    evaluated = _losses(one_card(copy / "evaluate.py", device))
    assert len(evaluated) == 1
    assert evaluated == pytest.approx(_losses(printed), abs=1e-5)
