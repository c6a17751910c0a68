"""What watches a program, without MindSpore."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ms_distify.verify.processes import WATCH
from ms_distify.verify.records import read_process

SPEC = importlib.util.spec_from_file_location("watch_log", WATCH / "ms_distify_watch" / "log.py")
assert SPEC is not None
assert SPEC.loader is not None
log = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(log)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        pytest.param("/home/me/train.py", True, id="program"),
        pytest.param(json.__file__, False, id="Python's own library"),
        pytest.param(pytest.__file__, False, id="installed"),
        pytest.param(str(WATCH / "ms_distify_watch" / "course.py"), False, id="what watches"),
        pytest.param("<frozen importlib._bootstrap>", False, id="no file"),
        pytest.param(os.path.join(sys.prefix, "src", "train.py"), True, id="beside an environment"),
    ],
)
def test_whose_a_file_is(file: str, expected: bool) -> None:
    assert log.is_of_program(file) is expected


@pytest.mark.parametrize(
    ("device", "sinks", "said"),
    [
        pytest.param("Ascend", False, ["dataset_sink_mode is False, so that reads and steps are seen"], id="Ascend"),
        pytest.param("CPU", True, [], id="CPU, where MindSpore itself does not sink"),
    ],
)
def test_data_is_not_sunk(monkeypatch: pytest.MonkeyPatch, device: str, sinks: bool, said: list[str]) -> None:
    monkeypatch.syspath_prepend(str(WATCH))
    neutral = importlib.import_module("ms_distify_watch.neutral")
    seen: list[Any] = []

    class Model:
        def train(self, epoch: int, train_dataset: Any, dataset_sink_mode: bool = True, sink_size: int = -1) -> None:
            seen.append((epoch, train_dataset, dataset_sink_mode, sink_size))

    changes: list[str] = []
    neutral._Device(device, changes.append)._model(SimpleNamespace(Model=Model))
    Model().train(3, "rows", sink_size=10)
    Model().train(3, "rows", False)
    assert seen == [(3, "rows", sinks, 10 if sinks else -1), (3, "rows", False, -1)]
    assert changes == said


RULE = "-" * 66
PIPELINE = f"\n\n{RULE}\n- Dataset Pipeline Error Message: \n{RULE}\n[ERROR] FOUND\n\n{RULE}\n- C++ Call Stack: (For framework developers) \n"
STACK = f'\n\n{RULE}\n- Python Call Stack: \n{RULE}\nTraceback (most recent call last):\n  File "a.py", line 4\nOSError: no picture 3\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("\nNo such file: a\nand more\n", "No such file: a", id="first-line"),
        pytest.param(
            "Exception thrown from dataset pipeline. Refer to it. " + PIPELINE.replace("FOUND", "Invalid cifar10 file"),
            "Invalid cifar10 file",
            id="pipeline",
        ),
        pytest.param(
            "Syntax error. " + PIPELINE.replace("FOUND", "no rows"), "no rows", id="pipeline-that-is-not-built"
        ),
        pytest.param(
            "Exception thrown from user defined Python function in dataset. "
            + STACK
            + PIPELINE.replace("FOUND", "Execute user Python code failed, check 'Python Call Stack' above."),
            "OSError: no picture 3",
            id="own-function",
        ),
    ],
)
def test_the_line_of_an_error_that_says_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, text: str, expected: str
) -> None:
    monkeypatch.syspath_prepend(str(WATCH))
    assert importlib.import_module("ms_distify_watch.errors").first_line(text) == expected


def test_made_up_data_has_one_name_in_all_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(WATCH))
    made_up = importlib.import_module("ms_distify_watch.made_up")
    places = set()
    for run in ("original", "ranks"):
        (tmp_path / run).mkdir()
        monkeypatch.chdir(tmp_path / run)
        for path in (str(tmp_path / run / "data" / "train"), "./data/train"):
            places.add(made_up._place("/made", path))
        assert made_up._inside(str(tmp_path / run / "data")) == "data"
    assert places == {"/made/data/train"}
    assert made_up._place("/made", "../x") == "/made/up/x"


def test_what_was_there_before_is_not_written_over(tmp_path: Path) -> None:
    """Everything in one process of its own, for an audit hook stays."""
    for name in ("work", "project", "elsewhere", "record"):
        (tmp_path / name).mkdir()
    for name in ("project/data.bin", "elsewhere/old.ckpt", "work/train.txt"):
        (tmp_path / name).write_text("mine")
    program = f"""
import os, shutil, sys, time
sys.path.insert(0, {str(WATCH)!r})
from ms_distify_watch import files
from ms_distify_watch.log import Log
config = dict(record="record", work="work", protect=["project"], began=time.time() + 1)
files.watch(config, Log("record", "one"))
refused = []
def tries(what, *arguments):
    try:
        what(*arguments)
    except PermissionError:
        refused.append(arguments[0])
tries(open, "project/data.bin", "a")
tries(open, "project/new.txt", "w")
tries(os.mkdir, "project/new")
tries(os.rename, "project/data.bin", "work/moved.bin")
tries(os.remove, "elsewhere/old.ckpt")
tries(open, "elsewhere/old.ckpt", "wb")
tries(os.rename, "elsewhere/old.ckpt", "elsewhere/other.ckpt")
assert refused == ["project/data.bin", "project/new.txt", "project/new", "project/data.bin"] + ["elsewhere/old.ckpt"] * 3
open("project/data.bin").read()
os.makedirs("project", exist_ok=True)
open("work/train.txt", "w").close()
open("elsewhere/new.ckpt", "w").close()
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=60)
    assert (tmp_path / "project" / "data.bin").read_text() == "mine"
    assert (tmp_path / "elsewhere" / "old.ckpt").read_text() == "mine"


def test_files_that_mindspore_writes_past_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(WATCH))
    after, files = (importlib.import_module(f"ms_distify_watch.{name}") for name in ("after", "files"))
    told: list[str] = []
    monkeypatch.setattr(files.sys, "audit", lambda event, path: told.append(path))

    class ShardWriter:
        def open(self, paths: list[str], override: bool) -> str:
            return "opened"

    class Dataset:
        def save(self, file_name: str, num_files: int = 1, file_type: str = "mindrecord") -> str:
            return "saved"

    actions = after.Actions()
    files.watch_libraries(actions)
    for module, content in (
        ("mindspore.mindrecord.core.shardwriter", SimpleNamespace(ShardWriter=ShardWriter)),
        ("mindspore.dataset.engine.datasets", SimpleNamespace(Dataset=Dataset)),
    ):
        for action in actions.by_module[module]:
            action(content)
    assert ShardWriter().open(["a", "b"], False) == "opened"
    assert told == ["a", "a.db", "b", "b.db"]
    del told[:]
    assert Dataset().save("one", file_type="mindrecord") == Dataset().save("many", 11) == "saved"
    assert told[:4] == ["one", "one.db", "many00", "many00.db"]
    assert told[-2:] == ["many10", "many10.db"]


class Value:
    """A parameter of one number."""

    name = "w"

    def __init__(self) -> None:
        self.number = 0.0

    def asnumpy(self) -> np.ndarray[Any, Any]:
        return np.array([self.number], np.float32)

    def put(self, number: float) -> None:
        self.number = number


def test_loading_is_no_step(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Weights that come from a file before the second step, and after an evaluation, are seen by none of the checks."""
    monkeypatch.syspath_prepend(str(WATCH))
    module = importlib.import_module("ms_distify_watch.course")
    monkeypatch.setitem(sys.modules, "mindspore", SimpleNamespace(get_context=lambda name: name))
    said: list[tuple[str, dict[str, Any]]] = []
    seen = SimpleNamespace(
        write=lambda event, **what: said.append((event, what)), owned=True, path=lambda end: str(tmp_path / f"x{end}")
    )
    course, weight = module.Course({"steps": 9}, seen), Value()
    course.optimizer(SimpleNamespace(parameters=[weight]))
    for iterator, read, number in ((0, 0, 1.0), (1, 0, 1.0), (1, 1, 1.0)):  # a training read and two that evaluate
        course.before_read()
        course.after_read((iterator, read))
        weight.put(number)
    assert course.load(lambda: weight.put(5.0)) is None
    course.before_read()
    course.after_read((0, 1))
    weight.put(6.0)
    course.before_read()
    steps = [what["reads"] for event, what in said if event == "step"]
    assert steps == [[(0, 0)], [(1, 0), (1, 1), (0, 1)]]


def test_files_of_processes_that_the_program_starts_are_its_own(tmp_path: Path) -> None:
    program = f"""
import os, sys
sys.path.insert(0, {str(WATCH)!r})
from ms_distify_watch.log import Log
log = Log({str(tmp_path)!r}, "0")
log.write("write", path="early")
log.open()
child = os.fork()
if child == 0:
    log.write("write", path="forked")
    log.write("step", k=9)
    os._exit(0)
os.waitpid(child, 0)
log.write("write", path="own")
other = Log({str(tmp_path)!r}, "0")
other.open()
other.write("write", path="started")
other.write("step", k=9)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    process = read_process(tmp_path, "0")
    assert process.writes() == {"early", "forked", "own", "started"}
    assert process.steps == 0, "steps are the program's alone"
