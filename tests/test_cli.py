"""The command line: exit codes, streams, files. What becomes of code is tested with the rules."""

from __future__ import annotations

import inspect
import os
import signal
import stat
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import HEAD, TRAINING
from typer.testing import CliRunner

import ms_distify
from ms_distify import cli
from ms_distify.writing import files

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = HEAD + 'ms.set_context(mode=0)\ntrain = ds.MnistDataset("/d").batch(8, drop_remainder=True)\n' + TRAINING
MODULE = HEAD + "def build():\n    return nn.Dense(4, 2)\n"
REFUSED = PROGRAM.replace(
    "import mindspore.dataset as ds\n", "import mindspore.dataset as ds\nfrom mindspore import *\n"
)
PLAIN = "print('no framework')\n"
OURS = "num_shards=rank_size, shard_id=rank_id"


@dataclass
class Ran:
    code: int
    out: bytes
    err: str


def run(*arguments: object, stdin: bytes = b"") -> Ran:
    separate = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}
    result = CliRunner(**separate).invoke(cli.app, [str(a) for a in arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout_bytes, result.stderr)


def spawn(*arguments: object, stdin: bytes = b"", env: dict[str, str] | None = None, **options: object) -> Ran:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "ms_distify", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
        check=False,
        timeout=120,
        **options,  # type: ignore[call-overload]
    )
    return Ran(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(f.relative_to(folder)): f.read_bytes() if f.is_file() else None for f in sorted(folder.rglob("*"))}


# -- nothing happens
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("", "does not use MindSpore", id="empty"),
        pytest.param(" \n\t\n", "does not use MindSpore", id="white space"),
        pytest.param(PLAIN, "does not use MindSpore", id="no MindSpore"),
        pytest.param("print 'python 2'\n", "does not use MindSpore", id="Python 2 without MindSpore"),
        pytest.param(MODULE, "not a training program", id="module"),
    ],
)
@pytest.mark.parametrize("mode", [["--check"], ["--dry-run"], ["--in-place"], ["-o", "out.py"]], ids=lambda m: m[0])
def test_nothing_to_do(here: Path, text: str, says: str, mode: list[str]) -> None:
    (here / "train.py").write_text(text)
    before = contents(here)
    ran = run("train.py", *mode)
    assert (ran.code, ran.out) == (0, b"")
    assert says in ran.err
    assert "nothing to do for train.py" in ran.err
    assert contents(here) == before


def test_a_second_run_has_nothing_to_do(here: Path) -> None:
    assert run("train.py", "--in-place").code == 0
    before = contents(here)
    for mode in (["--check"], ["--in-place"], ["--dry-run"], ["--check", "--dry-run"]):
        ran = run("train.py", *mode)
        assert (ran.code, ran.out) == (0, b""), mode
        assert "already distributed" in ran.err
    assert contents(here) == before


@pytest.mark.parametrize(
    ("mode", "code"),
    [
        pytest.param(["--check"], 1, id="check"),
        pytest.param(["--check", "--dry-run"], 1, id="check and diff"),
        pytest.param(["--dry-run"], 0, id="diff"),
    ],
)
def test_looking_writes_nothing(here: Path, mode: list[str], code: int) -> None:
    before = contents(here)
    ran = run("train.py", *mode)
    assert ran.code == code
    assert bool(ran.out) == ("--dry-run" in mode)
    assert "would    MSD201  train.py:5" in ran.err
    assert "would change" in ran.err
    assert contents(here) == before


# -- output
# ------------------------------------------------------------------------------------------------------


def test_output_and_launcher(here: Path) -> None:
    ran = run("train.py", "-o", "train_dist.py")
    assert (ran.code, ran.out) == (0, b"")
    assert sorted(contents(here)) == ["run_distribute.sh", "train.py", "train_dist.py"]
    assert (here / "train.py").read_text() == PROGRAM
    assert OURS in (here / "train_dist.py").read_text()
    assert "train_dist.py" in (here / "run_distribute.sh").read_text()
    assert ran.err.rstrip().endswith(
        "wrote train_dist.py and run_distribute.sh; start with: bash run_distribute.sh -n 8"
    )


def test_output_again_after_the_input_changed(here: Path) -> None:
    run("train.py", "-o", "train_dist.py")
    (here / "train.py").write_text(PROGRAM + "print('more')\n")
    assert run("train.py", "-o", "train_dist.py").code == 0
    assert (here / "train_dist.py").read_text().endswith("print('more')\n")


def test_output_in_another_folder_with_spaces(here: Path) -> None:
    (here / "my out").mkdir()
    ran = run("train.py", "-o", "my out/train dist.py")
    assert ran.code == 0
    assert "bash 'my out/run_distribute.sh' -n 8" in ran.err
    assert OURS in (here / "my out" / "train dist.py").read_text()


def test_second_program_gets_a_launcher_of_its_own(here: Path) -> None:
    run("train.py", "-o", "a_dist.py")
    first = (here / "run_distribute.sh").read_bytes()
    ran = run("train.py", "-o", "b_dist.py")
    assert ran.code == 0
    assert "bash run_distribute_b_dist.sh -n 8" in ran.err
    assert (here / "run_distribute.sh").read_bytes() == first
    assert "b_dist.py" in (here / "run_distribute_b_dist.sh").read_text()


def test_mode_bits(here: Path) -> None:
    (here / "train.py").chmod(0o640)
    run("train.py", "-o", "out.py")
    assert stat.S_IMODE((here / "out.py").stat().st_mode) == 0o640
    assert stat.S_IMODE((here / "run_distribute.sh").stat().st_mode) == 0o750
    (here / "out.py").chmod(0o600)
    run("train.py", "-o", "out.py")
    assert stat.S_IMODE((here / "out.py").stat().st_mode) == 0o600
    (here / "train.py").chmod(0o755)
    run("train.py", "--in-place")
    assert stat.S_IMODE((here / "train.py").stat().st_mode) == 0o755


def test_links_stay_links(here: Path) -> None:
    (here / "real").mkdir()
    (here / "train.py").rename(here / "real" / "train.py")
    (here / "train.py").symlink_to("real/train.py")
    (here / "out.py").symlink_to("real/out.py")
    assert run("train.py", "-o", "out.py").code == 0
    assert (here / "out.py").is_symlink()
    assert OURS in (here / "real" / "out.py").read_text()
    assert run("train.py", "--in-place").code == 0
    assert (here / "train.py").is_symlink()
    assert OURS in (here / "real" / "train.py").read_text()


def test_in_place_rewrites_only_what_is_named(here: Path) -> None:
    (here / "other.py").write_text(PROGRAM)
    ran = run("train.py", "--in-place")
    assert (ran.code, ran.out) == (0, b"")
    assert "rewrote train.py" in ran.err
    assert OURS in (here / "train.py").read_text()
    assert (here / "other.py").read_text() == PROGRAM
    assert sorted(contents(here)) == ["other.py", "train.py"]


def test_folder(here: Path) -> None:
    for name in ("src/a.py", "src/deep/b.py", "src/.hidden/c.py", "src/env/lib/d.py", "src/notes.txt"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(PROGRAM)
    (here / "src/env/pyvenv.cfg").touch()
    (here / "src/plain.py").write_text(PLAIN)
    ran = run("src", "--in-place")
    assert ran.code == 0
    rewritten = [f for f in contents(here) if f.startswith("src/") and OURS in str(contents(here)[f])]
    assert rewritten == ["src/a.py", "src/deep/b.py"]
    assert "programs: 2 converted, 0 refused, 1 of 3 files start no training\n" in ran.err


@pytest.mark.parametrize("name", ["..", "../sub/..", "/absolute"])
def test_folder_whose_own_name_has_dots(here: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "sub").mkdir()
    monkeypatch.chdir(here / "sub")
    ran = run(str(here) if name == "/absolute" else name, "--check")
    assert ran.code == 1
    assert "MSD201" in ran.err


def test_folder_without_python(here: Path) -> None:
    (here / "empty").mkdir()
    ran = run("empty", "--check")
    assert (ran.code, ran.out) == (0, b"")
    assert "no Python files" in ran.err


def test_seed(here: Path) -> None:
    assert b"+ms.set_seed(7)\n" in run("train.py", "--dry-run", "--seed", 7).out
    assert b"+ms.set_seed(0)\n" in run("train.py", "--dry-run").out


def test_quiet(here: Path) -> None:
    ran = run("train.py", "-o", "out.py", "--quiet")
    assert (ran.code, ran.out, ran.err) == (0, b"", "")
    (here / "train.py").write_text(REFUSED)
    ran = run("train.py", "--in-place", "-q")
    assert ran.code == 3
    assert "refused  MSD601" in ran.err
    assert "changed" not in ran.err


def test_version_and_module() -> None:
    ran = spawn("--version")
    assert (ran.code, ran.out, ran.err) == (0, f"ms-distify {ms_distify.__version__}\n".encode(), "")


def test_rules_and_explain() -> None:
    ran = spawn("rules", env={"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"})
    assert (ran.code, ran.err) == (0, "")
    assert b"MSD201  " in ran.out
    ran = spawn("explain", "msd201")
    assert (ran.code, ran.out[:8]) == (0, b"MSD201: ")
    ran = spawn("explain", "MSD999")
    assert (ran.code, ran.out) == (2, b"")
    assert "there is no rule MSD999" in ran.err


# -- standard input
# ------------------------------------------------------------------------------------------------


def test_standard_input(here: Path) -> None:
    ran = run("-", "--stdin-filename", "piped.py", stdin=PROGRAM.encode())
    assert ran.code == 0
    assert OURS.encode() in ran.out
    assert "MSD201  piped.py:5" in ran.err
    assert run("-", stdin=ran.out).out == ran.out, "a second run changes nothing"
    assert sorted(contents(here)) == ["train.py"]


@pytest.mark.parametrize("text", [b"", PLAIN.encode(), PLAIN.encode().replace(b"\n", b"\r\n"), b"x = '\xff'"])
def test_standard_input_passes_through(text: bytes) -> None:
    ran = run("-", stdin=text)
    assert (ran.code, ran.out) == (0, text)


@pytest.mark.parametrize(
    ("arguments", "code", "written"),
    [
        pytest.param(["--check"], 1, False, id="check"),
        pytest.param(["--dry-run"], 0, True, id="dry run"),
        pytest.param(["--check", "--dry-run"], 1, True, id="both"),
    ],
)
def test_standard_input_modes(arguments: list[str], code: int, written: bool) -> None:
    ran = run("-", *arguments, stdin=PROGRAM.encode())
    assert (ran.code, bool(ran.out)) == (code, written)
    if written:
        assert ran.out.startswith(b"--- a/stdin\n+++ b/stdin\n")


def test_standard_input_refused() -> None:
    ran = run("-", stdin=REFUSED.encode())
    assert (ran.code, ran.out) == (3, b"")
    assert "MSD601" in ran.err


# -- the diff
# ------------------------------------------------------------------------------------------------------

FORMS = [
    pytest.param(PROGRAM.encode(), id="LF"),
    pytest.param(PROGRAM.replace("\n", "\r\n").encode(), id="CRLF"),
    pytest.param(PROGRAM.rstrip("\n").encode(), id="no final newline"),
    pytest.param(PROGRAM.replace("\n", "\r\n").rstrip().encode(), id="CRLF, no final newline"),
    pytest.param(b"\xef\xbb\xbf" + PROGRAM.encode(), id="BOM"),
    pytest.param(("# -*- coding: gbk -*-\n# 训练\n" + PROGRAM).encode("gbk"), id="GBK"),
    pytest.param(("# coding: latin-1\n# é\n" + PROGRAM).encode("latin-1"), id="latin-1"),
    pytest.param((HEAD + "# one\rx = 1\r" + PROGRAM[len(HEAD) :]).encode(), id="lone CR"),
]


@pytest.mark.parametrize("tool", ["git", "patch"])
@pytest.mark.parametrize("name", ["train.py", "a b/tr ain.py", "训练.py", 'q"uo\\te.py'])
@pytest.mark.parametrize("content", FORMS)
def test_the_diff_applies(here: Path, content: bytes, name: str, tool: str) -> None:
    file = here / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    for argument in (name, file):
        diff = run(argument, "--dry-run").out
        assert diff.startswith(b"--- ")
        command = ["git", "apply", "-"] if tool == "git" else ["patch", "-p1", "--binary", "--no-backup-if-mismatch"]
        done = subprocess.run(command, input=diff, capture_output=True, cwd=here, check=False)
        assert done.returncode == 0, (done, diff)
        applied = file.read_bytes()
        file.write_bytes(content)
        run(name, "--in-place")
        assert applied == file.read_bytes() != content
        file.write_bytes(content)
    assert sorted(f.name for f in here.rglob("*.py")) == sorted({"train.py", file.name})


def test_the_diff_of_a_file_elsewhere(here: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("else where") / "t.py"
    file.write_text(PROGRAM)
    diff = run(os.path.relpath(file), "--dry-run").out
    assert diff.startswith(f"--- a{file}\t\n+++ b{file}\t\n".encode())
    done = subprocess.run(["patch", "-p1", "-d", "/"], input=diff, capture_output=True, check=False)
    assert done.returncode == 0, done
    assert OURS in file.read_text()


# -- refusals
# ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "code"),
    [
        (["-o", "out.py"], 3),
        (["--in-place"], 3),
        (["--dry-run"], 3),
        (["--check"], 1),
        (["--check", "--dry-run"], 1),
    ],
    ids=["output", "in place", "diff", "check", "check and diff"],
)
def test_refused(here: Path, mode: list[str], code: int) -> None:
    (here / "train.py").write_text(REFUSED)
    before = contents(here)
    ran = run("train.py", *mode)
    assert (ran.code, ran.out) == (code, b"")
    assert "refused  MSD601  train.py:3" in ran.err
    assert "nothing was written" in ran.err
    assert contents(here) == before


def test_one_of_several_refused(here: Path) -> None:
    (here / "bad.py").write_text(REFUSED)
    ran = run("train.py", "bad.py", "--in-place")
    assert ran.code == 3
    assert OURS in (here / "train.py").read_text()
    assert (here / "bad.py").read_text() == REFUSED


def test_one_of_several_unreadable(here: Path) -> None:
    (here / "bad.py").write_text("import mindspore\nx = (\n")
    ran = run("bad.py", "train.py", "--in-place")
    assert ran.code == 2
    assert "ms-distify: bad.py:2: MSD604" in ran.err
    assert OURS in (here / "train.py").read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param([], "PATHS", id="nothing"),
        pytest.param(["train.py"], "say what to do: -o train_dist.py", id="no mode"),
        pytest.param(["train.py", "-o", "a.py", "--in-place"], "choose one", id="output in place"),
        pytest.param(["train.py", "--in-place", "--dry-run"], "choose one", id="in place and diff"),
        pytest.param(["train.py", "--in-place", "--check"], "choose one", id="in place and check"),
        pytest.param(
            ["train.py", "-o", "other.py", "--check"], "other.py: was not written by ms-distify", id="check not ours"
        ),
        pytest.param(["train.py", "--seed", "x", "--check"], "--seed", id="seed no number"),
        pytest.param(["train.py", "--seed", "-1", "--check"], "--seed", id="seed negative"),
        pytest.param(["train.py", "--seed", str(2**32), "--check"], "--seed", id="seed too large"),
        pytest.param(["train.py", "--bogus"], "--bogus", id="unknown option"),
        pytest.param(["gone.py", "--check"], "gone.py: no such file", id="no file"),
        pytest.param(["broken.py", "--check"], "broken.py: no such file", id="broken link"),
        pytest.param(["x" * 5000, "--check"], "name too long", id="long name"),
        pytest.param(["train.py/x", "--check"], "train.py/x: Not a directory", id="below a file"),
        pytest.param(["fifo", "--check"], "fifo: is not a regular file", id="FIFO"),
        pytest.param(["/dev/null", "--check"], "/dev/null: is not a regular file", id="device"),
        pytest.param(["-", "train.py", "--check"], "does not go with other files", id="stdin and a file"),
        pytest.param(["-", "-o", "a.py"], "standard input", id="stdin and output"),
        pytest.param(["-", "--in-place"], "standard input", id="stdin in place"),
        pytest.param(["folder", "--seed", "1"], "say what to do: -o ../folder_dist", id="no mode for a folder"),
        pytest.param(["train.py", "other.py", "-o", "a.py"], "-o takes one script", id="two and output"),
        pytest.param(["folder", "-o", "a.py"], "a.py: a folder is copied to a folder", id="folder and output"),
        pytest.param(["train.py", "-o", "folder"], "folder: is a directory", id="output a folder"),
        pytest.param(["train.py", "-o", "train.py"], "use --in-place", id="output the input"),
        pytest.param(["train.py", "-o", "./train.py"], "use --in-place", id="output the input, spelled otherwise"),
        pytest.param(["train.py", "-o", "link.py"], "use --in-place", id="output a link to the input"),
        pytest.param(["train.py", "-o", "gone/a.py"], "gone/a.py: its folder does not exist", id="no such folder"),
        pytest.param(["train.py", "-o", "other.py/a.py"], "Not a directory", id="output below a file"),
        pytest.param(["train.py", "-o", "fifo"], "fifo: is not a regular file", id="output a FIFO"),
        pytest.param(["train.py", "-o", "/dev/null"], "/dev/null: is not a regular file", id="output a device"),
        pytest.param(["train.py", "-o", "/proc/a.py"], "/proc/a.py: ", id="output in a folder that takes no files"),
        pytest.param(["train.py", "-o", "run_distribute.sh"], "the launcher's name", id="output the launcher"),
        pytest.param(["train.py", "-o", "other.py"], "other.py: was not written by ms-distify", id="not ours"),
        pytest.param(["train.py", "-o", "a" * 300 + ".py"], "name too long", id="output name too long"),
    ],
)
def test_usage(here: Path, arguments: list[str], says: str) -> None:
    (here / "other.py").write_text("mine\n")
    (here / "folder").mkdir()
    (here / "link.py").symlink_to("train.py")
    (here / "broken.py").symlink_to("nowhere.py")
    os.mkfifo(here / "fifo")
    before = contents(here)
    ran = run(*arguments)
    assert (ran.code, ran.out) == (2, b"")
    assert says.lower() in ran.err.lower()
    assert "Traceback" not in ran.err
    assert contents(here) == before


def test_changed_output_is_not_overwritten(here: Path) -> None:
    run("train.py", "-o", "out.py")
    (here / "out.py").write_text("# mine now\n")
    (here / "train.py").write_text(PROGRAM + "print()\n")
    before = contents(here)
    ran = run("train.py", "-o", "out.py")
    assert ran.code == 2
    assert "out.py: was not written by ms-distify, or was changed since; use --force" in ran.err
    assert contents(here) == before
    assert run("train.py", "-o", "out.py", "--force").code == 0
    assert OURS in (here / "out.py").read_text()


def test_foreign_launcher_is_not_overwritten(here: Path) -> None:
    (here / "run_distribute.sh").write_text("#!/bin/bash\necho mine\n")
    before = contents(here)
    ran = run("train.py", "-o", "out.py")
    assert ran.code == 2
    assert "run_distribute.sh: was not written by ms-distify" in ran.err
    assert contents(here) == before
    assert run("train.py", "-o", "out.py", "--force").code == 0
    assert "echo mine" not in (here / "run_distribute.sh").read_text()


@pytest.mark.parametrize("failing", [1, 2], ids=["first", "second"])
@pytest.mark.parametrize("present", [False, True], ids=["new", "present"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "Ctrl-C"])
def test_all_or_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch, failing: int, present: bool, error: BaseException
) -> None:
    if present:
        run("train.py", "-o", "out.py")
        (here / "train.py").write_text(PROGRAM + "print()\n")
    before = contents(here)
    calls: list[object] = []
    replace = os.replace

    def fails(source: str, target: Path) -> None:
        calls.append(target)
        if len(calls) == failing:
            raise error
        replace(source, target)

    monkeypatch.setattr(files.os, "replace", fails)
    ran = run("train.py", "-o", "out.py")
    assert ran.code == (2 if isinstance(error, OSError) else 130)
    assert len(ran.err.rstrip().splitlines()[-1]) > 10
    assert ("No space left on device; nothing was written" in ran.err) == isinstance(error, OSError)
    assert contents(here) == before


def test_full_disk_while_writing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(here)

    def full(*_: object, **__: object) -> object:
        raise OSError(28, "No space left on device", "/some/temporary")

    monkeypatch.setattr(files.tempfile, "mkstemp", full)
    ran = run("train.py", "-o", "out.py")
    assert ran.code == 2
    assert "ms-distify: out.py: No space left on device; nothing was written" in ran.err
    assert contents(here) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable(here: Path) -> None:
    (here / "train.py").chmod(0o444)
    ran = run("train.py", "--in-place")
    assert ran.code == 2
    assert "train.py: it may not be written" in ran.err


def test_a_bug_is_one_line_and_a_traceback_on_demand(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> object:
        raise ValueError("first\nsecond")

    monkeypatch.setattr(sys.modules["ms_distify.convert"], "_decide", broken)
    before = contents(here)
    ran = run("train.py", "--in-place")
    assert (ran.code, ran.out) == (4, b"")
    assert ran.err.count("\n") == 1
    assert "internal error: ValueError: first second; nothing was written" in ran.err
    ran = run("train.py", "--in-place", "--debug")
    assert ran.code == 4
    assert "Traceback" in ran.err
    assert ", in broken" in ran.err
    assert contents(here) == before


def test_endless_recursion_of_ours_is_a_bug(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*arguments: object) -> object:
        return endless(*arguments)

    monkeypatch.setattr(sys.modules["ms_distify.convert"], "_decide", endless)
    assert run("train.py", "--check").code == 4


# -- input that is no program
# ----------------------------------------------------------------------------------------

USES = "import mindspore\n"
UNREADABLE = [
    pytest.param(USES.encode() + b"print 'x'\n", ":2:", "Python 2", id="Python 2 print"),
    pytest.param(USES.encode() + b"raise E, 'x'\n", ":2:", "Python 2", id="Python 2 raise"),
    pytest.param(USES.encode() + b"%matplotlib inline\n", ":2:", "notebook command", id="magic"),
    pytest.param(USES.encode() + b"!pip install x\n", ":2:", "notebook command", id="shell"),
    pytest.param(b'{"cells": ["import mindspore"], "nbformat": 4}', ":", "notebook", id="notebook"),
    pytest.param(USES.encode() + b"x = (\n", ":2:", "not valid Python: ", id="open bracket"),
    pytest.param(USES.encode() + b"def f():\npass\n", ":3:", "indented block", id="no indentation"),
    pytest.param(USES.encode() + b"x = '\0'\n", ":2:", "NUL bytes", id="NUL"),
    pytest.param(USES.encode("utf-16"), ":", "UTF-16", id="UTF-16"),
    pytest.param(b"\n# coding: klingon\n" + USES.encode(), ":2:", "unknown encoding: klingon", id="unknown cookie"),
    pytest.param(b"# coding: ascii\n" + USES.encode() + b"# \xc3\xa9\n", ":3:", "not valid ascii", id="wrong cookie"),
    pytest.param(b"# coding: hex\n" + USES.encode(), ":1:", "hex", id="a cookie that is no text encoding"),
    pytest.param(b"\xef\xbb\xbf# coding: gbk\n" + USES.encode(), ":1:", "encoding", id="BOM and another cookie"),
    pytest.param(USES.encode() + b"# \xff\n", ":2:", "not valid utf-8", id="invalid UTF-8 early"),
    pytest.param(USES.encode() * 3 + b"# \xff\n", ":4:", "not valid utf-8", id="invalid UTF-8"),
    pytest.param(USES.encode() + b"x = " + b"[" * 2000 + b"]" * 2000, ":2:", "brackets nest 2000", id="brackets"),
    pytest.param(USES.encode() + b"x = " + b"(" * 99999 + b"\n", ":2:", "brackets nest 99999", id="open brackets"),
    pytest.param(USES.encode() + b"x = 1" + b"+1" * 20000, ":2:", "20000 operators", id="sum"),
    pytest.param(USES.encode() + b"x = " + b"-" * 20000 + b"1", ":2:", "20000 operators", id="minus"),
    pytest.param(USES.encode() + b"x = a" + b".b" * 20000, ":2:", "20000 operators", id="attributes"),
]


@pytest.mark.parametrize(("content", "line", "says"), UNREADABLE)
def test_unreadable(here: Path, content: bytes, line: str, says: str) -> None:
    (here / "bad.py").write_bytes(content)
    for mode in (["--check"], ["-o", "out.py"]):
        ran = run("bad.py", *mode)
        assert (ran.code, ran.out) == (2, b""), ran.err
        assert ran.err.count("\n") == 1
        assert ran.err.startswith(f"ms-distify: bad.py{line}")
        assert says in ran.err
    assert not (here / "out.py").exists()


DEEP = [
    pytest.param("x = " + "[" * 190 + "]" * 190 + "\n", id="brackets"),
    pytest.param("x = a" + ".b" * 1000 + "\n", id="attributes"),
    pytest.param("x = 1" + "+1" * 1000 + "\n", id="sum"),
    pytest.param("x = " + "-" * 1500 + "1\n", id="minus"),
    pytest.param("x = " + "not " * 1500 + "1\n", id="not"),
    pytest.param("x = a" + " and a" * 2000 + "\n", id="and"),
    pytest.param("x = " + "1 if a else " * 1000 + "2\n", id="ternaries"),
    pytest.param("x = (" + "\n    'a'" * 2000 + "\n)\n", id="joined strings"),
    pytest.param("".join(" " * i + f"def f{i}():\n" for i in range(90)) + " " * 90 + "pass\n", id="functions"),
    pytest.param("if a == 0:\n    pass\n" + "elif a == 1:\n    pass\n" * 2900, id="elif"),
]


@pytest.mark.parametrize("statement", DEEP)
def test_what_python_compiles_is_not_refused_for_its_depth(here: Path, statement: str) -> None:
    (here / "deep.py").write_text(HEAD + statement + PROGRAM[len(HEAD) :])
    ran = spawn("deep.py", "--in-place", cwd=here)  # in a process of its own: it must not crash
    assert ran.code == 0, ran.err
    assert statement in (here / "deep.py").read_text()
    assert OURS in (here / "deep.py").read_text()


def test_large_file(here: Path) -> None:
    (here / "large.py").write_text(HEAD + "x = 1  # a plain statement\n" * 6_000 + PROGRAM[len(HEAD) :])
    assert run("large.py", "--check").code == 1


# -- streams
# -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["train.py", "--dry-run"], ["-"]], ids=["diff", "script"])
def test_closed_pipe(here: Path, arguments: list[str]) -> None:
    text = (PROGRAM + "# padding\n" * 20_000).encode()
    (here / "train.py").write_bytes(text.replace(b"ms.set", b"ms . set"))
    process = subprocess.Popen(
        [sys.executable, "-m", "ms_distify", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(text, timeout=60)
    assert process.returncode == 0
    assert b"Traceback" not in err
    assert b"BrokenPipe" not in err


def test_full_standard_output(here: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ms_distify", "train.py", "--dry-run"],
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.rstrip().endswith(b"ms-distify: standard output: No space left on device")


def test_stderr_that_cannot_encode(here: Path) -> None:
    (here / "训练.py").write_text(PROGRAM)
    ran = spawn("训练.py", "--dry-run", env={"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}, cwd=here)
    assert ran.code == 0, ran.err
    assert "Traceback" not in ran.err
    assert "--- a/训练.py".encode() in ran.out


def test_name_that_is_no_text(here: Path) -> None:
    name = os.fsdecode(b"tr\xff.py")
    (here / name).write_text(PROGRAM)
    ran = spawn(name, "--dry-run", cwd=here)
    assert ran.code == 0, ran.err
    assert ran.out.startswith(b"--- a/tr\xff.py\n")
    ran = spawn(name, "-o", os.fsdecode(b"out\xff.py"), cwd=here)
    assert ran.code == 0, ran.err
    assert (here / os.fsdecode(b"out\xff.py")).exists()


@pytest.mark.parametrize("no_color", [None, "1"], ids=["colour", "NO_COLOR"])
def test_colour_on_a_terminal_only(here: Path, no_color: str | None) -> None:
    import pty

    assert b"\x1b" not in run("train.py", "--dry-run").out
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"PYTHONPATH": str(ROOT)}
    if no_color:
        env["NO_COLOR"] = no_color
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "ms_distify", "train.py", "--dry-run"]
    process = subprocess.Popen(command, stdout=slave, stderr=slave, env=env)
    os.close(slave)
    seen = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.close(master)
    assert process.wait(60) == 0
    assert (b"\x1b[32mwould " in seen) == (no_color is None)
    assert (b"\x1b[32m+ms.set_seed(0)\x1b[0m" in seen) == (no_color is None)
    assert b"+ms.set_seed(0)" in seen


def test_interrupt(here: Path) -> None:
    (here / "large.py").write_text(HEAD + "x = 1\n" * 60_000 + PROGRAM[len(HEAD) :])
    process = subprocess.Popen(
        [sys.executable, "-m", "ms_distify", "large.py", "-o", "out.py"],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err == b"ms-distify: interrupted\n"
    assert sorted(contents(here)) == ["large.py", "train.py"]


def test_nothing_heavy_is_imported_for_a_file_without_mindspore(here: Path) -> None:
    (here / "plain.py").write_text(PLAIN)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    script = (
        "import typer, sys; before = set(sys.modules); sys.argv = ['ms-distify', 'plain.py', '--check']\n"
        "from ms_distify.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "heavy = {'libcst', 'rich', 'mindspore', 'numpy', 'tomllib', 'difflib', 'ast'}\n"
        "print(sorted(heavy & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, env=env, check=True)
    assert done.stdout == b"[]\n"


def test_options_survive_python_3_9() -> None:
    """With postponed annotations, typer loses ``-o`` on Python 3.9 without an error."""
    lines = Path(cli.__file__).read_text().splitlines()
    assert "from __future__ import annotations" not in lines


def run_launcher(script: Path, *options: str) -> Ran:
    command = [sys.executable, "-m", "ms_distify", "launcher", str(script), *options]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    return Ran(done.returncode, done.stdout, done.stderr.decode())


def test_launcher_for_a_converted_program(here: Path) -> None:
    assert run("train.py", "--in-place").code == 0
    script = here / "train.py"
    done = run_launcher(script)
    assert done.code == 0, done.err
    written = here / "run_distribute.sh"
    assert "SCRIPT=train.py" in written.read_text()
    assert str(written) in done.err
    written.write_text("mine\n")
    assert run_launcher(script).code == 2
    assert written.read_text() == "mine\n"


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        pytest.param(PROGRAM, 3, "is not converted yet: every card would train by itself", id="not converted"),
        pytest.param("from other import create\n" + PROGRAM.replace("ds.MnistDataset(", "create("), 3,
                     "is not converted yet", id="a module is not converted"),
        pytest.param(REFUSED, 3, "cannot be converted: {}:3: MSD601", id="refused"),
        pytest.param(MODULE, 3, "not a training program", id="no training"),
        pytest.param(PLAIN, 3, "does not use MindSpore; there is nothing to start", id="plain"),
        pytest.param("import mindspore\nx = (\n", 2, "MSD604", id="unreadable"),
    ],
)  # fmt: skip
def test_launcher_for_another_program(here: Path, text: str, code: int, says: str) -> None:
    """It starts as many single-card trainings as there are cards; that has to be asked for."""
    script = here / "train.py"
    script.write_text(text)
    (here / "other.py").write_text(
        "import mindspore.dataset as ds\ndef create(path):\n    return ds.MnistDataset(path)\n"
    )
    before = contents(here)
    done = run_launcher(script)
    assert done.code == code, done.err
    assert says.format(script) in done.err
    assert contents(here) == before
    assert run_launcher(script, "--force").code == 0
    assert (here / "run_distribute.sh").exists()


def test_launcher_and_output_choose_the_same_name(here: Path) -> None:
    for name in ("a.py", "b.py"):
        run("train.py", "-o", name)
    before = contents(here)
    for name in ("a.py", "b.py"):
        assert run_launcher(here / name).code == 0
    assert contents(here) == before


@pytest.mark.parametrize("options", [["--check"], ["--dry-run"], ["--check", "--dry-run"]], ids=lambda some: some[-1])
def test_looking_at_an_output_writes_nothing(here: Path, options: list[str]) -> None:
    before = contents(here)
    ran = run("train.py", "-o", "out.py", *options)
    assert ran.code == ("--check" in options)
    assert "out.py and run_distribute.sh would be written" in ran.err
    assert (b"--- a/train.py\n" in ran.out) == ("--dry-run" in options)
    assert contents(here) == before
    run("train.py", "-o", "out.py")
    before = contents(here)
    ran = run("train.py", "-o", "out.py", *options)
    assert ran.code == 0
    assert "out.py is up to date" in ran.err
    (here / "train.py").write_text(PROGRAM + "print()\n")
    assert run("train.py", "-o", "out.py", "--check").code == 1
    (here / "train.py").write_text(REFUSED)
    assert run("train.py", "-o", "out.py", *options).code == (1 if "--check" in options else 3)
    assert contents(here) == {**before, "train.py": REFUSED.encode()}


def test_the_line_for_msrun_says_how_many(here: Path) -> None:
    (here / "pyproject.toml").write_text("[tool.ms-distify]\nranks = 4\n")
    ran = run("train.py", "--in-place")
    assert ran.err.endswith("or with msrun --worker_num=4 --local_worker_num=4 --join=True train.py\n")
