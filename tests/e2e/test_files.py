"""Contract point 6 (DESIGN 1): what two ranks write, watched from outside, and what reads it later."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e
pytest.importorskip("numpy", reason="NumPy comes with MindSpore, which is not installed")

from harness import convert, environment, one_card  # noqa: E402
from test_shards import free_port  # noqa: E402

PROGRAM = Path(__file__).parent / "programs" / "files.py"
SLOW = 8  # seconds that the preparation of the data takes
_OPENED = re.compile(r'(?:openat\(\w+, |open\(|creat\()"([^"]+)"(?:, ([A-Z_|]+))?.* = \d+')
_RENAMED = re.compile(r'rename(?:at2?)?\(.*"([^"]+)"(?:, 0)?\) = 0')


@dataclass
class Run:
    """The folder that ranks ran in, and the files in it that each of them opened for writing."""

    folder: Path
    written: list[set[str]]

    def seen(self, rank: str) -> dict[str, list[list[float]]]:
        found: dict[str, list[list[float]]] = json.loads((self.folder / f"seen{rank}.json").read_text())
        return found


def traced() -> bool:
    """Whether this machine lets one process watch what another opens."""
    strace = shutil.which("strace")
    return (
        strace is not None and subprocess.run([strace, "-o", os.devnull, "true"], capture_output=True).returncode == 0
    )


def two_ranks(folder: Path, *arguments: str) -> list[set[str]]:
    """Run the converted program on two ranks, each watched; return which files of the folder each wrote."""
    scheduler = {"MS_WORKER_NUM": "2", "MS_SCHED_HOST": "127.0.0.1", "MS_SCHED_PORT": str(free_port())}
    traces = [folder.parent / f"{folder.name}.{rank}.trace" for rank in range(2)]
    started: list[subprocess.Popen[bytes]] = []
    logs = []
    try:
        for role in ("sched", 0, 1):
            env = {**environment(None), **scheduler, "RANK_SIZE": "2"}
            command = [sys.executable, "train_dist.py", *arguments]
            if role == "sched":
                env["MS_ROLE"] = "MS_SCHED"
                command = [sys.executable, "-c", "import mindspore.communication as c; c.init()"]
            else:
                env.update(MS_ROLE="MS_WORKER", MS_NODE_ID=str(role), RANK_ID=str(role), DEVICE_ID=str(role))
                assert isinstance(role, int)
                watched = "trace=openat,open,creat,rename,renameat,renameat2"
                command = [
                    "strace",
                    "-f",
                    "--seccomp-bpf",
                    "-s",
                    "400",
                    "-e",
                    watched,
                    "-o",
                    str(traces[role]),
                    *command,
                ]
            log = folder.parent / f"{folder.name}.{role}.log"
            logs.append(log)
            with log.open("wb") as output:
                started.append(
                    subprocess.Popen(
                        command, cwd=folder, env=env, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
                    )
                )
        for process in started[1:]:
            process.wait(timeout=240)
        said = "\n".join(log.read_text(errors="replace")[-3000:] for log in logs)
        assert [process.returncode for process in started[1:]] == [0, 0], said
    finally:
        for process in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return [written(folder, trace) for trace in traces]


def written(folder: Path, trace: Path) -> set[str]:
    """Return the files in a folder that a traced process opened for writing or renamed something to."""
    found = set()
    for line in trace.read_text(errors="replace").splitlines():
        match = _OPENED.search(line)
        if match is not None and not (match.group(2) and re.search("O_WRONLY|O_RDWR|O_CREAT", match.group(2))):
            continue
        match = match or _RENAMED.search(line)
        if match is not None:
            path = Path(os.path.normpath(folder / match.group(1)))
            if folder in path.parents:
                found.add(str(path.relative_to(folder)))
    return found


def contents(folder: Path) -> set[str]:
    """Return the files below a folder, without what MindSpore and Python leave there by themselves; all times alike."""
    return {
        re.sub(r"^runs/[\d.]+/", "runs/time/", str(path.relative_to(folder)))
        for path in folder.rglob("*")
        if path.is_file() and not {"__pycache__", "kernel_meta"} & set(path.parts) and path.suffix not in (".py", ".sh")
    }


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mindspore")
    folder = tmp_path_factory.mktemp("files")
    shutil.copy(PROGRAM, folder / "train.py")
    convert(folder / "train.py", folder / "train_dist.py")
    return folder


def fresh(source: Path, name: str) -> Path:
    folder = source / name
    folder.mkdir()
    for script in ("train.py", "train_dist.py"):
        shutil.copy(source / script, folder)
    return folder


@pytest.fixture(scope="module")
def run(source: Path) -> Run:
    if not traced():
        pytest.skip("strace is not here or may not trace: what ranks write cannot be watched")
    folder = fresh(source, "ranks")
    return Run(folder, two_ranks(folder, "--slow", str(SLOW)))


@pytest.fixture(scope="module")
def single(source: Path) -> dict[str, Run]:
    """The program before and after the conversion, on one card."""
    runs = {}
    for name, script in (("before", "train.py"), ("after", "train_dist.py")):
        folder = fresh(source, name)
        one_card(folder / script)
        runs[name] = Run(folder, [])
    return runs


def test_one_card_writes_what_it_wrote(single: dict[str, Run]) -> None:
    before, after = single["before"], single["after"]
    assert "out/best.ckpt" in contents(before.folder)
    assert contents(before.folder) == contents(after.folder)
    assert before.seen("") == after.seen("")
    for name in ("out/losses.txt", "out/weights.npy"):
        assert (before.folder / name).read_bytes() == (after.folder / name).read_bytes()


def test_no_two_ranks_write_one_file(run: Run) -> None:
    first, second = run.written
    assert {"out/last.ckpt", "out/best.ckpt", "out/losses.txt", "run.log", "train.mindrecord", "seen0.json"} <= first
    assert "seen1.json" in second, "the watch sees what rank 1 writes, too"
    assert not first & second


def test_rank_1_writes_only_what_is_its_own(run: Run) -> None:
    own = {
        name for name in run.written[1] if "__pycache__" not in name and not name.startswith(("kernel_meta", "rank_"))
    }
    assert {name for name in own if not name.startswith(".rank_1_waits")} == {"seen1.json"}


def test_two_ranks_leave_the_files_of_one_card(run: Run, single: dict[str, Run]) -> None:
    """The same names, and one line an epoch; checkpoints are named by steps, of which there are half as many."""

    def plain(folder: Path) -> set[str]:
        return {
            name
            for name in contents(folder)
            if not name.startswith(("seen", "rank_")) and not re.match(r"out/net-\d+_\d+\.ckpt", name)
        }

    assert plain(run.folder) == plain(single["after"].folder)
    assert len(list((run.folder / "out").glob("net-*.ckpt"))) == 2
    assert len((run.folder / "out" / "losses.txt").read_text().splitlines()) == 2
    assert (run.folder / "run.log").read_text().count("the end") == 1


def test_all_ranks_waited_for_the_slow_preparation_and_read_what_rank_0_wrote(run: Run) -> None:
    """Rank 1 trained on whole data (a half-written MindRecord cannot be opened) and read the finished files."""
    assert run.seen("0") == run.seen("1")
    assert any(name.startswith(".rank_1_waits_for_rank_0") for name in run.written[1])
    assert not list(run.folder.glob(".rank_*")), "the marks are taken away again"


def test_rank_0_made_the_cache_and_rank_1_found_it_whole(run: Run) -> None:
    logs = [(run.folder.parent / f"{run.folder.name}.{rank}.log").read_text() for rank in range(2)]
    assert "the cache of 2 is made" in logs[0]
    assert "the cache of 2 is found" in logs[1]
    assert "cache.json" in run.written[0]


def test_both_ranks_used_the_folder_with_the_time_of_rank_0(run: Run) -> None:
    """Rank 1 has read a checkpoint from there, or it would have failed."""
    [folder] = (run.folder / "runs").iterdir()
    assert [path.name for path in folder.iterdir()] == ["best.ckpt"]
    assert not list(run.folder.glob(".value_of_rank_0*"))


def test_training_resumes_from_the_checkpoint_on_one_and_on_two_ranks(run: Run) -> None:
    checkpoint = sorted((run.folder / "out").glob("net-*.ckpt"))[-1].relative_to(run.folder)
    losses = run.folder / "out" / "losses.txt"
    before = [float(line) for line in losses.read_text().splitlines()]
    one_card(run.folder / "train_dist.py", "--resume", str(checkpoint))
    alone = [float(line) for line in losses.read_text().splitlines()]
    assert len(alone) == 4
    assert max(alone[2:]) < before[0], "it goes on from there"
    first, second = two_ranks(run.folder, "--resume", str(checkpoint))
    assert not first & second
    together = [float(line) for line in losses.read_text().splitlines()]
    assert len(together) == 6
    assert max(together[4:]) < before[0]
    assert run.seen("0") == run.seen("1")
