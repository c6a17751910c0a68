"""Runs programs for real: one card directly, several ranks through the launcher that ms-distify writes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

RECORDER = Path(__file__).parent / "recorder"
CLUSTER = ("RANK_ID", "RANK_SIZE", "DEVICE_ID", "RANK_TABLE_FILE", "MS_ROLE", "MS_NODE_ID", "MS_WORKER_NUM")


@dataclass
class Process:
    """What one process of a run recorded.

    Attributes:
        initial: parameters when their optimizer was built, by number.
        final: parameters when the process ended, by number.
        reads: for each dataset iterator in the order of first use, its batches' first column, in order.
    """

    initial: dict[str, np.ndarray] = field(default_factory=dict)
    final: dict[str, np.ndarray] = field(default_factory=dict)
    reads: list[list[np.ndarray]] = field(default_factory=list)


def environment(record: Path | None) -> dict[str, str]:
    env = {key: value for key, value in os.environ.items() if key not in CLUSTER}
    # msrun starts `python`: it must be this one.
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', '')}"
    env["GLOG_v"] = "3"
    env["OMP_NUM_THREADS"] = "1"
    # With AVX-512, MindSpore's convolutions end up in a reference kernel that takes ten times as long.
    env.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")
    if record is not None:
        record.mkdir(parents=True, exist_ok=True)
        env["RECORD_TO"] = str(record)
        env["PYTHONPATH"] = str(RECORDER)
    return env


def one_card(script: Path, *arguments: str, record: Path | None = None, timeout: float = 240) -> str:
    """Run a script directly, in its folder; return what it prints."""
    command = [sys.executable, script.name, *arguments]
    return _run(command, script.parent, environment(record), timeout)


def ranks(launcher: Path, number: int, *arguments: str, record: Path | None = None, timeout: float = 300) -> str:
    """Run a launcher with some ranks; return what it and its ranks print."""
    command = ["bash", str(launcher), "-n", str(number), "--", *arguments]
    try:
        return _run(command, launcher.parent, environment(record), timeout)
    except AssertionError as error:
        logs = "\n".join(f"{log}:\n{log.read_text()[-3000:]}" for log in launcher.parent.glob("device*/train.log"))
        raise AssertionError(f"{error}\n{logs}") from None


def _run(command: list[str], folder: Path, env: dict[str, str], timeout: float) -> str:
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout)
    except BaseException:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        raise
    assert process.returncode == 0, f"{command} ended with {process.returncode}:\n{output[-4000:]}"
    return output


def convert(script: Path, output: Path, *options: str) -> str:
    """Convert with the command a user types; return what it says."""
    command = [sys.executable, "-m", "ms_distify", str(script), "-o", str(output), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stderr


def recorded(folder: Path, name: str) -> Process:
    """Read what a process recorded ("one", or a rank)."""
    process = Process()
    reads: dict[str, list[np.ndarray]] = {}
    with np.load(folder / f"{name}.npz") as arrays:
        for key in arrays.files:
            kind, _, rest = key.partition("/")
            if kind == "batch":
                reads.setdefault(rest.partition("/")[0], []).append(arrays[key])
            else:
                getattr(process, kind)[rest] = arrays[key]
    process.reads = [reads[key] for key in sorted(reads, key=int)]
    return process


def largest_difference(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> float:
    """Return the largest difference between two recordings of the same parameters."""
    assert first.keys() == second.keys()
    assert first
    return max(float(np.max(np.abs(first[name] - second[name]))) for name in first)


def fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
