"""`verify`: what it proves, and which check names a planted fault."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.e2e

from harness import convert  # noqa: E402

PROGRAMS = Path(__file__).parent / "programs"
# The others are compared without `verify`, by test_programs.py.
PROVED = ["verified", "train_cell", "jitted", "own_cells", "two_optimizers", "pynative", "late_context"]
DIFFERS = 1


@dataclass
class Result:
    """What one run of the command said."""

    status: int
    data: dict[str, Any]
    said: str

    def wrong(self) -> dict[str, str]:
        """Return the messages of the checks that differ."""
        return {check["name"]: check["message"] for check in self.data["checks"] if check["status"] == "differs"}

    def check(self, name: str) -> dict[str, Any]:
        return next(check for check in self.data["checks"] if check["name"] == name)


def verify(folder: Path, *arguments: str) -> Result:
    command = [sys.executable, "-m", "ms_distify", "verify", *arguments[:1], "--json", *arguments[1:]]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=400)
    data = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    shutil.rmtree(data.get("logs") or folder / "none", ignore_errors=True)
    return Result(done.returncode, data, done.stderr)


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("converted")
    shutil.copy(PROGRAMS / "verified.py", folder / "train.py")
    convert(folder / "train.py", folder / "train_dist.py")
    return (folder / "train_dist.py").read_text()


def plant(text: str, *faults: tuple[str, str]) -> str:
    for right, wrong in faults:
        assert text.count(right) == 1, right
        text = text.replace(right, wrong)
    return text


# -- what it proves --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", PROVED)
def test_converted_programs_are_proved(program: str, tmp_path: Path, device: str) -> None:
    source = Path(shutil.copy(PROGRAMS / f"{program}.py", tmp_path / "train.py"))
    before = source.read_bytes()
    result = verify(tmp_path, "train.py", "--device", device, "--steps", "12", "--", "--device", device)
    assert result.data, result.said
    assert (result.status, result.data["verdict"], result.wrong()) == (0, "proved", {}), result.data["checks"]
    assert result.data["steps"] == 12
    assert all(check["status"] in ("ok", "noted") for check in result.data["checks"]), result.data["checks"]
    assert result.check("same mathematics")["figure"] < 1e-5
    assert result.check("equal course")["figure"] == 0
    assert result.check("one card")["figure"] == 0
    assert "runs train.py" in result.said, "it says that it runs the program"
    assert sorted(tmp_path.iterdir()) == [source], "nothing is written into the folder"
    assert source.read_bytes() == before


def test_it_says_what_cannot_be_run(tmp_path: Path, device: str) -> None:
    (tmp_path / "train.py").write_text(
        (PROGRAMS / "verified.py").read_text().replace("rows(64, 0)", "open('missing.bin')", 1)
    )
    result = verify(tmp_path, "train.py", "--device", device, "--", "--device", device)
    assert (result.status, result.data["verdict"]) == (2, "could not run")
    assert "missing.bin" in result.data["why"]
    assert "train.py:24" in result.data["why"]


# -- planted faults --------------------------------------------------------------------------------------------------

SHARDS = ", rank_size, rank_id)"
BODY, HEAD = "grad_reducer(body_grads)", "grad_reducer_2(head_grads)"
AGAINST_ONE_CARD = {
    # Faults that need one card to compare with. Several at once where other checks name them.
    "learning rate, files, order": (
        [
            ("nn.SGD(body.trainable_params(), 0.05)", "nn.SGD(body.trainable_params(), 0.05 * (rank_size or 1))"),
            ("if rank_id in (None, 0):\n    ms.save_checkpoint", "if True:\n    ms.save_checkpoint"),
            ("import os\n", "import os\nfrom mindspore import nn as early\ntoo_early = early.Dense(2, 2)\n"),
        ],
        {"same mathematics": "from step 1 on", "files": "body.ckpt", "starts": "Dense", "one card": None},
    ),
    "sum instead of mean, test set sharded": (
        [
            ("gradients_mean=True", "gradients_mean=False"),
            (
                'rows(10, 1), ["x", "y"], shuffle=False',
                'rows(10, 1), ["x", "y"], shuffle=False, num_shards=rank_size, shard_id=rank_id',
            ),
        ],
        {"same mathematics": "from step 1 on", "shards": "evalua"},
    ),
    "sampler dropped, loss divided by the ranks": (
        [
            ("return loss_fn(head(ops.tanh(body(x))), y)", "return loss_fn(head(ops.tanh(body(x))), y) / (rank_size or 1)"),
            ("shard_sampled(ds.NumpySlicesDataset", "(ds.NumpySlicesDataset"),
            (
                'sampler=ds.SubsetSampler(list(range(48)))), rank_size, rank_id)',
                "shuffle=False, num_shards=rank_size, shard_id=rank_id))",
            ),
        ],
        {
            "shards": "16 rows were read that one card does not train on",
            "same mathematics": "another loss in step 1 than the original",
        },
    ),
    "clip before the reducer, reducer twice": (
        [
            ("        body_grads = grad_reducer(body_grads)\n", ""),
            ("ops.clip_by_global_norm(body_grads, 0.3)", "grad_reducer(ops.clip_by_global_norm(body_grads, 0.3))"),
            (HEAD, "grad_reducer_2(grad_reducer_2(head_grads))"),
        ],
        {"same mathematics": "from step 1 on", "one reduction": "two reducers in step 1"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", AGAINST_ONE_CARD)
def test_faults_that_one_card_shows(fault: str, converted: str, tmp_path: Path, device: str) -> None:
    faults, named = AGAINST_ONE_CARD[fault]
    shutil.copy(PROGRAMS / "verified.py", tmp_path / "train.py")
    (tmp_path / "train_dist.py").write_text(plant(converted, *faults))
    arguments = ["--converted", "train_dist.py", "--device", device, "--steps", "12", "--", "--device", device]
    result = verify(tmp_path, "train.py", *arguments)
    assert result.data, result.said
    assert (result.status, result.data["verdict"]) == (DIFFERS, "differs")
    wrong = result.wrong()
    for check, words in named.items():
        if words is not None:
            assert words in wrong[check], wrong
    assert wrong.keys() <= named.keys(), "no other check is wrong"


ON_RANKS_ALONE = {
    "reducer missing": ([(BODY, "body_grads")], {"equal course": "step 1"}),
    "seed of each rank's own, shard 0 on every rank": (
        [("ms.set_seed(5)", "ms.set_seed(5 + (rank_id or 0))"), (SHARDS, ", rank_size, 0)")],
        {"equal start": "differs by", "shards": "read by another rank too"},
    ),
    "shards missing": ([(SHARDS, ")")], {"shards": "read by another rank too"}),
    "unequal steps": (
        [("args.batch, drop_remainder=True)", "args.batch, drop_remainder=True).take(6 - (rank_id or 0))")],
        {"shards": "unequal steps"},
    ),
    "reducers of the other optimizer": (
        [(BODY, "grad_reducer_2(body_grads)"), (HEAD, "grad_reducer(head_grads)")],
        {"starts": "failed in step 1"},
    ),
}


@pytest.mark.parametrize("fault", ON_RANKS_ALONE)
def test_faults_that_ranks_show(fault: str, converted: str, tmp_path: Path, device: str) -> None:
    faults, named = ON_RANKS_ALONE[fault]
    (tmp_path / "train.py").write_text(plant(converted, *faults))
    result = verify(tmp_path, "train.py", "--only", "--device", device, "--steps", "12", "--", "--device", device)
    assert result.data, result.said
    assert (result.status, result.data["verdict"]) == (DIFFERS, "differs")
    for check, words in named.items():
        assert words in result.wrong()[check], result.data["checks"]


def test_no_process_is_left_after_a_time_out(converted: str, tmp_path: Path, device: str) -> None:
    (tmp_path / "train.py").write_text(converted + "\nimport time\ntime.sleep(3600)\n")
    result = verify(tmp_path, "train.py", "--only", "--timeout", "25", "--device", device, "--", "--device", device)
    # All steps were seen before the time was over.
    assert result.data["verdict"] == "proved", result.data
    command = ["pgrep", "-f", str(tmp_path)]
    assert shutil.which("pgrep") is None or subprocess.run(command, capture_output=True).stdout == b""
