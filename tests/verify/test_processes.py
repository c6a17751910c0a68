"""The environment of the runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ms_distify.verify.processes import Running


def run(folder: Path, name: str, text: str) -> str:
    """Run a program in the way of a verification, and return what it printed."""
    config = {"record": str(folder / name), "device": "CPU"}
    # What watches programs is not wanted here.
    running = Running([sys.executable, "-S", "-c", text], folder, config, sys.executable)
    ended = running.wait(60)
    assert ended.status == 0
    return ended.log.read_text()


def test_sets_have_one_order_in_all_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    text = "print([*{*'distribution'}])"
    orders = {run(tmp_path, f"run{number}", text) for number in range(3)}
    assert len(orders) == 1


def test_no_run_believes_to_be_one_of_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK_ID", "RANK_SIZE", "DEVICE_NUM", "MS_ROLE", "MS_WORKER_NUM"):
        monkeypatch.setenv(name, "4")
    text = "import json, os; print(json.dumps(sorted(k for k in os.environ if k.startswith(('RANK', 'DEVICE', 'MS_W', 'MS_R')))))"
    assert json.loads(run(tmp_path, "run", text)) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_who_is_ended_ends_what_it_started(tmp_path: Path, number: signal.Signals) -> None:
    said = tmp_path / "pid"
    child = f"import os, time; open({str(said)!r}, 'w').write(f'{{os.getpid()}} '); time.sleep(600)"
    config = {"record": str(tmp_path / "run"), "device": "CPU"}
    text = (
        "import pathlib, sys\n"
        "from ms_distify.verify.processes import Running, ended_by_signals\n"
        "with ended_by_signals():\n"
        f"    Running([sys.executable, '-S', '-c', {child!r}], pathlib.Path('.'), {config!r}, sys.executable).wait(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", text], stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not (said.exists() and said.read_text().endswith(" ")) and time.monotonic() < until:
        time.sleep(0.05)
    started = int(said.read_text())
    process.send_signal(number)
    assert process.wait(60) != 0
    with pytest.raises(ProcessLookupError):
        os.kill(started, 0)
