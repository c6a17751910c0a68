"""Programs that share files: converted so that what is shared works for each, or refused by name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import HEAD

from ms_distify import Conversion, cores, together
from ms_distify.model import CHANGED, REFUSED, Finding
from ms_distify.together import BugError, Together, convert_together

ROOT = Path(__file__).resolve().parent.parent
NET = "net = nn.Dense(4, 2)\nmodel = ms.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))\n"
START = HEAD + "import data\nms.set_context(mode=0)\n" + NET
DATA = """\
import mindspore.dataset as ds
def first():
    return ds.MnistDataset("/a").batch(4, drop_remainder=True)
def second():
    return ds.MnistDataset("/b").batch(4, drop_remainder=True)
"""
SHARD = "num_shards=num_shards, shard_id=shard_id"
FIRST = DATA.replace("first()", "first(num_shards=None, shard_id=None)").replace('"/a"', f'"/a", {SHARD}')
BOTH = FIRST.replace("second()", "second(num_shards=None, shard_id=None)").replace('"/b"', f'"/b", {SHARD}')


def write(folder: Path, **texts: str) -> list[Path]:
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    return [folder / f"{name}.py" for name in texts]


def new(done: Together) -> dict[str, str]:
    return {path.name: content.decode() for path, content in done.contents.items()}


def refusals(done: Together) -> dict[str, list[str]]:
    return {
        file.name: [f.message for f in result.findings if f.status == REFUSED]
        for file, result in done.results
        if result.refused
    }


def test_a_file_that_one_program_changes(tmp_path: Path) -> None:
    """The other evaluates on the same data: it is not changed, and still gets all of it."""
    train = START + "model.train(1, data.first())\n"
    evaluate = START + "model.eval(data.first())\n"
    done = convert_together(write(tmp_path, train=train, evaluate=evaluate, data=DATA), None)
    assert new(done).keys() == {"train.py", "data.py"}
    assert new(done)["data.py"] == FIRST, "its defaults are None: evaluate.py has the whole data"
    assert [result.trains for _, result in done.results] == [True, False, False]


def test_a_file_that_two_programs_change_alike(tmp_path: Path) -> None:
    train = START + "model.train(1, data.first())\n"
    done = convert_together(write(tmp_path, a=train, b=train + "print(1)\n", data=DATA), None)
    assert refusals(done) == {}
    assert new(done)["data.py"] == FIRST
    for name in ("a.py", "b.py"):
        assert "data.first(num_shards=rank_size, shard_id=rank_id)" in new(done)[name]


def test_a_file_that_two_programs_change_differently(tmp_path: Path) -> None:
    """Each trains on what the other evaluates on: both edits are in, and no evaluation is sharded."""
    a = START + "model.train(1, data.first())\nmodel.eval(data.second())\n"
    b = START + "model.train(1, data.second())\nmodel.eval(data.first())\n"
    done = convert_together(write(tmp_path, a=a, b=b, data=DATA), None)
    assert refusals(done) == {}
    texts = new(done)
    assert texts["data.py"] == BOTH
    passed = "num_shards=rank_size, shard_id=rank_id"
    assert texts["a.py"].endswith(f"model.train(1, data.first({passed}))\nmodel.eval(data.second())\n")
    assert texts["b.py"].endswith(f"model.train(1, data.second({passed}))\nmodel.eval(data.first())\n")
    for path, content in done.contents.items():
        path.write_bytes(content)
    assert new(convert_together([tmp_path / f"{name}.py" for name in ("a", "b", "data")], None)) == {}, "stable"


def test_a_program_that_is_refused_leaves_the_others_alone(tmp_path: Path) -> None:
    a = START + "model.train(1, data.first())\n"
    b = "from mindspore import *\n" + START + "model.train(1, data.second())\n"
    done = convert_together(write(tmp_path, a=a, b=b, data=DATA), None)
    assert refusals(done).keys() == {"b.py"}
    assert new(done).keys() == {"a.py", "data.py"}
    assert new(done)["data.py"] == FIRST


def faked(monkeypatch: pytest.MonkeyPatch, wants: dict[str, str]) -> None:
    """Let a program add its word to data.py unless it is there; whoever finds a word it cannot bear is refused.

    ``wants`` has for each program its word, and behind a minus sign one that it cannot bear.
    """

    def convert(source: bytes, path: str, *_: object, file: Path, overlay: dict[Path, bytes], **__: object) -> object:
        word, _, hated = wants.get(file.name, "").partition("-")
        data = (file.parent / "data.py").resolve()
        present = overlay.get(data, data.read_bytes())
        files = (file.resolve(), data) if file.name in wants else (file.resolve(),)
        if not word:
            return Conversion(path, source, source, (), trains=bool(hated) and hated.encode() in present, files=files)
        if hated and hated.encode() in present:
            return Conversion(path, source, source, (Finding("MSD999", REFUSED, path, 1, 1, hated),), True, files=files)
        modules = () if word.encode() in present else ((data, present + f"# {word}\n".encode()),)
        return Conversion(path, source, source, (Finding("X", CHANGED, path, 1, 1, ""),), True, modules, files)

    monkeypatch.setattr(together, "convert", convert)


@pytest.mark.parametrize(
    ("wants", "refused", "data"),
    [
        pytest.param({"a.py": "one", "b.py": "two"}, set(), "# one\n# two\n", id="both fit"),
        pytest.param({"a.py": "one", "b.py": "two-one"}, {"b.py"}, "# one\n", id="the later does not bear the earlier"),
        pytest.param({"a.py": "one-two", "b.py": "two"}, {"b.py"}, "# one\n", id="the earlier not the later"),
        pytest.param({"a.py": "one", "b.py": "-one"}, {"a.py"}, "", id="another program would start to train"),
        pytest.param(
            {"a.py": "one", "b.py": "two-one", "c.py": "six-two"}, {"b.py"}, "# one\n# six\n", id="the third goes on"
        ),
    ],
)
def test_what_does_not_go_together_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wants: dict[str, str], refused: set[str], data: str
) -> None:
    files = write(tmp_path, a="mindspore\n", b="mindspore\n", c="mindspore\n", data="")
    faked(monkeypatch, wants)
    done = convert_together(files, None)
    assert refusals(done).keys() == refused
    assert new(done).get("data.py", "") == data
    for messages in refusals(done).values():
        assert len(messages) == 1
        assert "it shares" in messages[0]
        assert "data.py with " in messages[0]
        assert "does not go together" in messages[0]


def test_the_bug_says_which_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> object:
        raise AssertionError("the output does not parse")

    monkeypatch.setattr(together, "convert", broken)
    with pytest.raises(BugError) as caught:
        convert_together(write(tmp_path, a=""), None)
    assert (caught.value.file, caught.value.text) == (
        str(tmp_path / "a.py"),
        "AssertionError: the output does not parse",
    )


def test_a_link_and_its_file_are_one(tmp_path: Path) -> None:
    [file] = write(tmp_path, a=HEAD)
    (tmp_path / "link.py").symlink_to("a.py")
    done = convert_together([tmp_path / "link.py", file], None)
    assert [name.name for name, _ in done.results] == ["link.py"]


@pytest.mark.parametrize("count", [0, 1, 40])
def test_many_on_all_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Other processes give the same as this one, in the same order."""
    monkeypatch.setattr(cores.os, "cpu_count", lambda: 2)
    train = START + "model.train(1, data.first())\n"
    names = [f"p{number}" for number in range(count)]
    files = write(
        tmp_path, **{name: f"# {name}\n{train}" for name in names}, broken="import mindspore\nx = (\n", data=DATA
    )
    steps: list[None] = []
    done = convert_together(files, None, recheck=False, advance=lambda: steps.append(None))
    assert len(steps) == len(files)
    assert [file.stem for file, _ in done.results] == [*names, "data"]
    assert len(done.failures) == 1
    assert "broken.py:2: MSD604" in done.failures[0]
    assert set(new(done)) == ({f"{name}.py" for name in names} | {"data.py"} if count else set())
    assert all(new(done)[f"{name}.py"].startswith(f"# {name}\n") for name in names)


def _ends(item: int) -> int:
    if cores.multiprocessing.parent_process() is not None:
        os._exit(9)
    return item


def test_what_a_killed_process_left_is_done_here() -> None:
    script = "import test_together as t; t.os.cpu_count = lambda: 2; print(t.cores.run_all(t._ends, range(16)) == list(range(16)))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == "True\n", done.stderr
