"""The function that waits, run by real processes: all wait for a slow rank 0, left-overs deceive nobody, it ends."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import HEAD, TRAINING, converted

PROGRAM = HEAD + (
    "import shutil\nshutil.rmtree('a')\nms.set_context(mode=0)\n"
    "train = ds.MnistDataset('/d').batch(8, drop_remainder=True)\n"
)
SCRIPT = """\
import os
import sys
import time
{helper}
for seconds in sys.argv[2:]:
    time.sleep(float(seconds))
    print(f"{{time.time():.2f}} comes", flush=True)
    wait_for_rank_0("to make the data", timeout=float(sys.argv[1]))
    print(f"{{time.time():.2f}} goes", flush=True)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    lines = converted(PROGRAM + TRAINING).splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("def wait_for_rank_0("))
    last = next(i for i, line in enumerate(lines) if "time.sleep" in line)
    path = tmp_path / "wait.py"
    path.write_text(SCRIPT.format(helper="\n".join(lines[first : last + 1])))
    return path


def start(
    script: Path, rank: int, size: int, timeout: float, *seconds: float, port: str = "1"
) -> "subprocess.Popen[str]":
    env = {**os.environ, "RANK_ID": str(rank), "RANK_SIZE": str(size), "MS_SCHED_PORT": port}
    return subprocess.Popen(
        [sys.executable, script.name, str(timeout), *map(str, seconds)],
        cwd=script.parent, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def times(process: "subprocess.Popen[str]") -> list[tuple[float, float]]:
    """Return when a process came and went, for each wait."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    found = [float(line.split()[0]) for line in out.splitlines()]
    return list(zip(found[::2], found[1::2]))


def test_nobody_goes_on_before_rank_0_is_there(script: Path) -> None:
    """Twice in a row, and once with one of the others later than rank 0."""
    seconds = [(2.0, 0.0), (0.0, 1.5), (0.5, 1.0)]
    processes = [start(script, rank, 3, 30, *seconds[rank]) for rank in range(3)]
    zero, *others = [times(process) for process in processes]
    for other in others:
        for (came, _), (_, went) in zip(zero, other):
            assert went >= came
    assert [path.name for path in script.parent.iterdir()] == ["wait.py"], "nothing is left behind"


def test_what_a_killed_run_left_lets_nobody_pass(script: Path) -> None:
    killed = start(script, 1, 2, 30, 0)
    flag = script.parent / ".rank_1_waits_for_rank_0.1"
    end = time.monotonic() + 20
    while not flag.exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    killed.kill()
    killed.communicate()
    assert flag.exists()
    early, late = start(script, 0, 2, 30, 0), start(script, 1, 2, 30, 3)
    zero, one = times(early)[0], times(late)[0]
    assert zero[1] >= one[0], "rank 0 does not take the left-over for the rank"
    assert not flag.exists()


@pytest.mark.parametrize(
    ("rank", "missing"),
    [pytest.param(1, "rank 0 to make the data", id="rank 1"), pytest.param(0, "rank 1", id="rank 0")],
)
def test_it_ends_and_says_what_it_waited_for(script: Path, rank: int, missing: str) -> None:
    process = start(script, rank, 2, 1, 0)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert f"TimeoutError: rank {rank} waited 1.0 s for {missing} (by files in {script.parent})" in err
    assert [path.name for path in script.parent.iterdir()] == ["wait.py"]


def test_one_card_does_not_wait(script: Path) -> None:
    env = {key: value for key, value in os.environ.items() if key not in ("RANK_ID", "RANK_SIZE")}
    done = subprocess.run(
        [sys.executable, script.name, "1", "0"], cwd=script.parent, env=env, capture_output=True, timeout=30
    )
    assert done.returncode == 0
    assert [path.name for path in script.parent.iterdir()] == ["wait.py"]


def test_two_jobs_in_one_folder_do_not_mix(script: Path) -> None:
    first = start(script, 1, 2, 3, 0, port="1")
    second = start(script, 0, 2, 3, 0, port="2")
    for process in (first, second):
        process.communicate(timeout=30)
        assert process.returncode == 1
