"""Starts the runs of a verification and ends them, whatever happens."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WATCH = Path(__file__).parent / "watch"
# What would make a program on one card believe that it is one of several.
_CLUSTER = ("RANK_ID", "RANK_SIZE", "DEVICE_ID", "DEVICE_NUM", "RANK_TABLE_FILE", "MINDSPORE_HCCL_CONFIG_PATH", "MS_ROLE",
            "MS_NODE_ID", "MS_WORKER_NUM", "MS_SERVER_NUM", "MS_SCHED_HOST", "MS_SCHED_PORT")  # fmt: skip
GRACE_SECONDS = 20.0


@dataclass(frozen=True)
class Ended:
    """How a run ended.

    Attributes:
        status: its exit status; None where its time was over and it was stopped.
        log: what it printed.
        seconds: how long it took.
    """

    status: int | None
    log: Path
    seconds: float

    def last_line(self) -> str:
        """Return the last line that it printed and that says something."""
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines()]
        return next((line for line in reversed(lines) if line), "")


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Turn signals that would end this process at once into exceptions, so that what it started is ended as well."""

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in filter(None, (signal.SIGTERM, getattr(signal, "SIGHUP", None))):
            # One that is ignored, as under nohup, stays so.
            if signal.getsignal(number) == signal.SIG_DFL:
                before[number] = signal.signal(number, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Running:
    """One process group: a program on one card, or a launcher with its ranks."""

    def __init__(self, command: list[str], folder: Path, config: dict[str, Any], python: str) -> None:
        record = Path(config["record"])
        record.mkdir(parents=True)
        settings = record / "watch.json"
        settings.write_text(json.dumps(config), encoding="utf-8")
        self.log = record / "output.log"
        self.began = time.monotonic()
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env=_environment(python, settings, config["device"]),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self, timeout: float) -> Ended:
        """Wait for the end; stop the run where that takes longer than some seconds."""
        status: int | None
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            self.stop()
        return Ended(status, self.log, time.monotonic() - self.began)

    def stop(self) -> None:
        """End every process of the run that is still there."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(GRACE_SECONDS)
                if number == signal.SIGTERM and not _group_lives(self.process.pid):
                    return


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    time.sleep(0.2)
    return True


def _environment(python: str, settings: Path, device: str) -> dict[str, str]:
    env = {key: value for key, value in os.environ.items() if key not in _CLUSTER}
    # The launcher takes msrun and the interpreter from here; programs that start `python` mean this one.
    env["PYTHON"] = python
    env["PATH"] = f"{Path(python).parent}{os.pathsep}{env.get('PATH', os.defpath)}"
    env["PYTHONPATH"] = os.pathsep.join([str(WATCH), *filter(None, [env.get("PYTHONPATH")])])
    env["PYTHONDONTWRITEBYTECODE"] = env["PYTHONUNBUFFERED"] = "1"
    env["MS_DISTIFY_WATCH"] = str(settings)
    # As the launcher has it: sets of strings in one order in all runs, for vocabularies are made of them.
    env.setdefault("PYTHONHASHSEED", "0")
    env.setdefault("GLOG_v", "3")
    if device == "CPU":
        # Ranks share the cores; one thread each also adds up in one order.
        env.setdefault("OMP_NUM_THREADS", "1")
        # With AVX-512, MindSpore's convolutions end up in a reference kernel that takes ten times as long.
        env.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")
    return env
