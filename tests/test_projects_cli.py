"""``ms-distify FOLDER -o DIR``: what is copied, what is written, and that nothing of the user's is lost."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from test_cli import MODULE, OURS, PLAIN, PROGRAM, REFUSED, ROOT, contents, run, run_launcher, spawn

from ms_distify import project_files, tree_copy

DATASET = "import mindspore.dataset as ds\ndef create(path):\n    return ds.MnistDataset(path).batch(8)\n"
TRAIN = PROGRAM.replace("import mindspore.dataset as ds", "from src.dataset import create").replace(
    'ds.MnistDataset("/d").batch(8, drop_remainder=True)', 'create("/d")'
)
EVAL = TRAIN.replace("model.train(1, train)", "model.eval(train)")
PARAMETERS = "def create(path, num_shards=None, shard_id=None):"


def make(folder: Path, **files: str | bytes) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a project in it."""
    files = {
        "train.py": TRAIN,
        "eval.py": EVAL,
        "src/dataset.py": DATASET,
        "src/net.py": MODULE,
        "config.yaml": "a: 1\n",
    }
    make(tmp_path / "project", **files)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files_in(folder: Path) -> set[str]:
    return {name for name, content in contents(folder).items() if content is not None}


# -- what comes out
# ------------------------------------------------------------------------------------------------------


def test_a_runnable_copy(here: Path) -> None:
    before = contents(here / "project")
    ran = run("project", "-o", "dist")
    assert (ran.code, ran.out) == (0, b""), ran.err
    assert contents(here / "project") == before
    copy = contents(here / "dist")
    assert copy.keys() == {*before, "run_distribute.sh", ".ms-distify.json"}
    for name in ("eval.py", "src/net.py", "config.yaml"):
        assert copy[name] == before[name], "nothing to change there"
    assert PARAMETERS.encode() in (copy["src/dataset.py"] or b"")
    assert f'create("/d", {OURS})'.encode() in (copy["train.py"] or b"")
    assert b"SCRIPT=train.py" in (copy["run_distribute.sh"] or b"")
    assert "programs: 1 converted, 0 refused, 3 of 4 files start no training\n" in ran.err
    assert "sites that were changed: MSD102 1, MSD103 1, MSD104 1, MSD201 1\n" in ran.err
    assert "wrote dist: 6 files, 2 rewritten, 1 launcher\n" in ran.err
    assert ran.err.endswith("start with: bash dist/run_distribute.sh -n 8\n")
    assert run("dist", "--check").code == 0, "a second conversion has nothing to do"


@pytest.mark.parametrize(
    "output", ["dist", "../dist", "../out/dist", "src/dist"], ids=lambda path: path.replace("/", "-")
)
def test_of_the_folder_one_is_in(here: Path, monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    """The copy may lie in the project: it is not copied into itself, nor by a second run, nor into another copy."""
    (here / "out").mkdir()
    monkeypatch.chdir(here / "project")
    files = {
        "train.py",
        "eval.py",
        "src/dataset.py",
        "src/net.py",
        "config.yaml",
        "run_distribute.sh",
        ".ms-distify.json",
    }
    for target in (output, output, f"{output}2"):
        ran = run(".", "-o", target)
        assert ran.code == 0, ran.err
        assert files_in(Path(target)) == files
    assert ("an earlier copy" in ran.err) == (not output.startswith(".."))


@pytest.mark.parametrize("paths", [["project", "project/train.py"], ["project/src", "project/eval.py", "project"]])
def test_a_folder_that_holds_the_other_paths(here: Path, paths: list[str]) -> None:
    assert run(*paths, "-o", "dist").code == 0
    assert (here / "dist" / "run_distribute.sh").exists()


def test_several_programs_of_one_folder(here: Path) -> None:
    make(here / "project", **{"finetune.py": TRAIN + "print(1)\n", "tools/warm.py": PROGRAM})
    ran = run("project", "-o", "dist")
    assert ran.code == 0, ran.err
    launchers = {str(path.relative_to(here)) for path in here.rglob("*.sh")}
    assert launchers == {
        "dist/run_distribute_train.sh", "dist/run_distribute_finetune.sh", "dist/tools/run_distribute.sh"
    }  # fmt: skip
    for launcher in launchers:
        assert f"start with: bash {launcher} -n 8\n" in ran.err
    assert (here / "dist/src/dataset.py").read_text().count("num_shards=None") == 1


def test_one_of_several_refused(here: Path) -> None:
    make(here / "project", **{"bad.py": REFUSED, "broken.py": "import mindspore\nx = (\n"})
    ran = run("project", "-o", "dist")
    assert ran.code == 2, "a file could not be read"
    assert "ms-distify: project/broken.py:2: MSD604" in ran.err
    assert "refused: 1 program; the copy holds it unchanged, for one card" in ran.err
    assert "sites that are refused: MSD601 1\n" in ran.err
    assert (here / "dist/bad.py").read_text() == REFUSED
    assert OURS in (here / "dist/train.py").read_text()
    assert sorted(path.name for path in here.rglob("*.sh")) == ["run_distribute.sh"], "no launcher for what is refused"
    (here / "project/broken.py").unlink()
    assert run("project", "-o", "dist").code == 3


@pytest.mark.parametrize(
    ("train", "code"),
    [(REFUSED, 3), (PLAIN, 0), (EVAL, 0), ("import mindspore\nx = (\n", 2)],
    ids=["refused", "plain", "no training", "unreadable"],
)
def test_nothing_is_copied_without_a_converted_program(here: Path, train: str, code: int) -> None:
    (here / "project/train.py").write_text(train)
    ran = run("project", "-o", "dist")
    assert ran.code == code
    assert "no program in project was converted: nothing was copied to dist" in ran.err
    assert os.listdir(here) == ["project"]


def test_a_project_that_is_distributed_already(here: Path) -> None:
    assert run("project", "--in-place").code == 0
    ran = run("project", "-o", "dist")
    assert ran.code == 0
    assert "programs: 0 converted, 0 refused, 1 distributed already, 3 of 4 files start no training" in ran.err
    assert (here / "dist/run_distribute.sh").exists()


def test_quiet(here: Path) -> None:
    (here / "project/a.ckpt").touch()
    assert (run("project", "-o", "dist", "-q").err, (here / "dist/train.py").exists()) == ("", True)


def test_other_modes_of_a_folder(here: Path) -> None:
    before = contents(here)
    ran = run("project", "--dry-run")
    assert ran.code == 0
    assert ran.out.count(b"--- a/") == 2
    assert b"--- a/project/src/dataset.py\n" in ran.out
    assert run("project", "--check").code == 1
    assert contents(here) == before
    done = subprocess.run(["git", "apply", "-"], input=ran.out, cwd=here, check=False)
    assert done.returncode == 0
    assert run("project", "--check").code == 0


def test_the_diff_has_each_file_once(here: Path) -> None:
    make(here / "project", **{"finetune.py": TRAIN + "print(1)\n"})
    diff = run("project", "--dry-run").out
    assert diff.count(b"--- a/project/src/dataset.py\n") == 1
    assert subprocess.run(["git", "apply", "-"], input=diff, cwd=here, check=False).returncode == 0
    assert run("project", "--check").code == 0


def test_launchers_of_the_project(here: Path) -> None:
    make(here / "project", **{"run_distribute.sh": "echo mine\n"})
    ran = run("project", "-o", "dist")
    assert ran.code == 0
    assert (here / "dist/run_distribute.sh").read_text() == "echo mine\n"
    assert "bash dist/run_distribute_train.sh -n 8" in ran.err
    make(here / "project", **{"run_distribute_train.sh": "echo mine\n"})
    ran = run("project", "-o", "dist2")
    assert ran.code == 2
    assert "run_distribute_train.sh: is the name of train.py's launcher; rename it or use --force" in ran.err
    assert not (here / "dist2").exists()


@pytest.mark.parametrize("how", ["a name", "the folder above"])
def test_a_copy_that_would_import_the_originals(here: Path, how: str) -> None:
    folder, output = (here / "project/src", "dist") if how == "a name" else (here / "project", "project/dist")
    added = f"'{folder}'" if how == "a name" else "os.path.dirname(os.path.dirname(os.path.abspath(__file__)))"
    where = "" if how == "a name" else "tools/"
    make(here / "project", **{f"{where}train.py": f"import os, sys\nsys.path.insert(0, {added})\n{TRAIN}"})
    ran = run("project", "-o", output)
    if how == "a name":
        assert ran.code == 3
        assert f"MSD609  project/train.py:2  sys.path leads back to {folder}" in ran.err
    else:
        assert ran.code == 0, "it leads to the copy's own folder"


def test_modules_that_are_not_in_the_copy(here: Path) -> None:
    make(here / "project", **{"local.py": MODULE, ".gitignore": "local.py\n"})
    (here / "project/train.py").write_text("import local\n" + TRAIN)
    ran = run("project", "-o", "dist")
    assert ran.code == 0
    assert f"note: project/train.py imports {here / 'project/local.py'}, which is not in the copy" in ran.err


# -- what stays behind
# ------------------------------------------------------------------------------------------------------


def test_what_stays_behind(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_files, "LIMIT", 1000)
    stays = {
        ".git/config": "", "src/.svn/entries": "", "__pycache__/a.pyc": "", "src/__pycache__/b.pyc": "",
        "env/pyvenv.cfg": "", "env/lib/c.py": PROGRAM, "net.ckpt": "ckpt", "data/train/1.JPG": "123", "data/2.mindrecord": "4",
        "big.txt": "x" * 2000, ".ms-distify-x/new": "",
    }  # fmt: skip
    copied = {".hidden/a.py": PROGRAM, "run.sh": "", "small.json": "{}", "name with ü.txt": "", "src/__init__.py": ""}
    make(here / "project", **stays, **copied)
    ran = run("project", "-o", "dist")
    assert ran.code == 0, ran.err
    assert files_in(here / "dist") == {
        *copied, "train.py", "eval.py", "src/dataset.py", "src/net.py", "config.yaml", "run_distribute.sh", ".ms-distify.json"
    }  # fmt: skip
    assert (here / "dist/.hidden/a.py").read_text() == PROGRAM, (
        "as with other commands, hidden folders are not converted"
    )
    for line in (
        "  big.txt  2.0 kB  (over 10 MB)",
        "  net.ckpt  4 bytes  (data)",
        "  data/  2 files, 4 bytes  (data)",
        "left behind as well: .git, .svn, __pycache__ (2 folders), env/",
    ):
        assert f"{line}\n" in ran.err
    assert not (here / "dist/data").exists(), "so that the real one can be linked there"


def test_many_files_are_named_by_folder(here: Path) -> None:
    make(here / "project", **{f"src/{number}.png": "12" for number in range(20)})
    ran = run("project", "-o", "dist")
    assert "  src/*  20 files, 40 bytes  (data)\n" in ran.err


def test_gitignore(here: Path) -> None:
    """As git has it: the nearest file decides, the last line decides, nothing comes back below a folder."""
    (here / ".git").mkdir()
    ignored = [
        "a.log",
        "src/a.log",
        "out/kept.txt",
        "src/top.txt",
        "top.txt",
        "src/deep/x.tmp",
        "above.txt",
        "odd\udcff.log",
    ]
    kept = ["src/keep.log", "src/deep/top.txt", "src/deep/y.log", "build.py", "#hash"]
    make(here, **{".gitignore": "above.txt\n"})
    make(
        here / "project",
        **dict.fromkeys([*ignored, *kept], ""),
        **{
            ".gitignore": "\ufeff# logs\n*.log\n!keep.log\nout/\n!out/kept.txt\n/top.txt\nsrc/top.txt\n\\#none\nbuild/\n!\n",
            "src/deep/.gitignore": "*.tmp\n!y.log\n",
        },
    )
    ran = run("project", "-o", "dist")
    assert ran.code == 0, ran.err
    copied = files_in(here / "dist")
    assert {name for name in kept if name not in copied} == set()
    assert {name for name in ignored if name in copied} == set()
    assert "(named in .gitignore)" in ran.err
    if subprocess.run(["git", "--version"], capture_output=True, check=False).returncode == 0:
        (here / ".git").rmdir()
        subprocess.run(["git", "init", "-q"], cwd=here, check=True)
        for name in [*kept, *ignored]:
            checked = subprocess.run(["git", "check-ignore", "-q", f"project/{name}"], cwd=here, check=False)
            assert (checked.returncode == 0) == (name in ignored), name


def test_a_folder_that_is_ignored_and_named_all_the_same(here: Path) -> None:
    (here / ".git").mkdir()
    make(here, **{".gitignore": "project/\n"})
    assert run("project", "-o", "dist").code == 0


def test_links(here: Path) -> None:
    project = here / "project"
    make(project, **{"a.ckpt": "1", "real/b.py": PROGRAM})
    for name, target in {
        "alias.py": "train.py", "source": "src", "src/up": "../config.yaml", "b.py": "real/b.py", "nowhere": "gone.txt",
        "absolute": str(project / "config.yaml"), "out": "../elsewhere", "weights": "a.ckpt", "round": "../project/config.yaml",
    }.items():  # fmt: skip
        (project / name).symlink_to(target)
    (here / "elsewhere").mkdir()
    ran = run("project", "-o", "dist")
    assert ran.code == 0, ran.err
    links = {
        str(path.relative_to(here / "dist")): os.readlink(path)
        for path in (here / "dist").rglob("*")
        if path.is_symlink()
    }
    assert links == {
        "alias.py": "train.py", "source": "src", "src/up": "../config.yaml", "b.py": "real/b.py", "nowhere": "gone.txt"
    }  # fmt: skip
    for name in ("absolute", "out", "round"):
        assert f"  {name}  (link that leads out)\n" in ran.err
    assert "  weights  (link to what stays behind)\n" in ran.err
    assert OURS in (here / "dist/b.py").read_text()
    assert run("project", "-o", "dist").code == 0


def test_permissions_and_empty_folders(here: Path) -> None:
    project = here / "project"
    make(project, **{"run.sh": "", "src/secret.py": PLAIN})
    (project / "logs/deep").mkdir(parents=True)
    for name, mode in {"run.sh": 0o755, "train.py": 0o750, "src/secret.py": 0o400, "src": 0o750, "logs": 0o700}.items():
        (project / name).chmod(mode)
    assert run("project", "-o", "dist").code == 0
    for name, mode in {
        "run.sh": 0o755, "train.py": 0o750, "src/secret.py": 0o400, "src": 0o750, "logs": 0o700,
        "run_distribute.sh": 0o750, "": stat.S_IMODE(project.stat().st_mode),
    }.items():  # fmt: skip
        assert stat.S_IMODE((here / "dist" / name).stat().st_mode) == mode, name
    assert (here / "dist/logs/deep").is_dir()


# -- again
# ------------------------------------------------------------------------------------------------------


def test_a_second_run_takes_over_what_changed(here: Path) -> None:
    run("project", "-o", "dist")
    make(here / "dist", **{"device0/train.log": "log\n", "net.ckpt": "weights", "src/mine.py": "x = 1\n"})
    make(here / "project", **{"config.yaml": "a: 2\n", "src/more/new.txt": "new"})
    (here / "project/src/net.py").unlink()
    (here / "project/eval.py").chmod(0o755)
    ran = run("project", "-o", "dist")
    assert ran.code == 0, ran.err
    copy = contents(here / "dist")
    assert (copy["config.yaml"], copy["src/more/new.txt"]) == (b"a: 2\n", b"new")
    assert (copy["device0/train.log"], copy["net.ckpt"], copy["src/mine.py"]) == (b"log\n", b"weights", b"x = 1\n")
    assert "src/net.py" not in copy
    assert "removed dist/src/net.py: the project has it no more" in ran.err
    assert stat.S_IMODE((here / "dist/eval.py").stat().st_mode) == 0o755
    assert not [name for name in copy if name.startswith(".ms-distify-")]


def test_what_the_user_changed_is_not_lost(here: Path) -> None:
    run("project", "-o", "dist")
    (here / "dist/src/net.py").write_text("# mine\n")
    (here / "dist/eval.py").write_text("# mine\n")
    before = contents(here)
    ran = run("project", "-o", "dist")
    assert ran.code == 2
    assert "dist/eval.py: was not written by ms-distify, or was changed since; move it away or use --force" in ran.err
    assert contents(here) == before
    (here / "project/src/net.py").unlink()
    ran = run("project", "-o", "dist", "--force")
    assert ran.code == 0
    assert (here / "dist/eval.py").read_text() == EVAL
    assert (here / "dist/src/net.py").read_text() == "# mine\n", "what is not replaced is not removed either"
    assert "kept dist/src/net.py" in ran.err


def test_all_files_that_the_user_changed_are_named_at_once(here: Path) -> None:
    run("project", "-o", "dist")
    for name in ("src/net.py", "eval.py", "train.py"):
        (here / "dist" / name).write_text("# mine\n")
    before = contents(here)
    for options in ([], ["--check"], ["--dry-run"]):
        ran = run("project", "-o", "dist", *options)
        assert ran.code == 2
        for name in ("src/net.py", "eval.py", "train.py"):
            assert ran.err.count(f"dist/{name}: was not written by ms-distify, or was changed since;") == 1
        assert "nothing was written; put what you want to keep of these 3 files into the project" in ran.err
        assert contents(here) == before
    for name in ("src/net.py", "eval.py"):
        (here / "dist" / name).unlink()
    (here / "dist/train.py").rename(here / "mine.py")
    assert run("project", "-o", "dist").code == 0
    assert OURS in (here / "dist/train.py").read_text()


def test_looking_at_a_copy_writes_nothing(here: Path) -> None:
    before = contents(here)
    ran = run("project", "-o", "dist", "--check")
    assert (ran.code, ran.out) == (1, b"")
    assert "dist would change: 6 files\n" in ran.err
    ran = run("project", "-o", "dist", "--dry-run")
    assert ran.code == 0
    assert ran.out.count(b"--- a/") == 2
    assert b"--- a/project/src/dataset.py\n" in ran.out
    assert contents(here) == before
    run("project", "-o", "dist")
    before = contents(here)
    ran = run("project", "-o", "dist", "--check", "--dry-run")
    assert (ran.code, ran.out.count(b"--- a/")) == (0, 2)
    assert "dist is up to date\n" in ran.err
    assert contents(here) == before


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda project: (project / "train.py").write_text(TRAIN + "print(1)\n"), id="program"),
        pytest.param(lambda project: (project / "config.yaml").write_text("a: 2\n"), id="other file"),
        pytest.param(lambda project: (project / "eval.py").unlink(), id="file gone"),
        pytest.param(lambda project: (project / "eval.py").chmod(0o755), id="permissions"),
        pytest.param(lambda project: (project / "link.py").symlink_to("train.py"), id="link"),
    ],
)
def test_a_copy_that_would_change(here: Path, change: Callable[[Path], object]) -> None:
    run("project", "-o", "dist")
    change(here / "project")
    before = contents(here)
    ran = run("project", "-o", "dist", "--check")
    assert ran.code == 1
    assert "dist would change: 1 file\n" in ran.err or (
        "dist would change: 2 files\n" in ran.err and "print(1)" in (here / "project/train.py").read_text()
    ), "the launcher remembers its program"
    assert contents(here) == before
    run("project", "-o", "dist")
    assert run("project", "-o", "dist", "--check").code == 0


def test_a_copy_of_what_is_refused_is_checked(here: Path) -> None:
    make(here / "project", **{"bad.py": REFUSED})
    run("project", "-o", "dist")
    assert run("project", "-o", "dist", "--check").code == 1
    (here / "project/train.py").write_text(REFUSED)
    before = contents(here)
    assert run("project", "-o", "dist", "--check").code == 1
    assert contents(here) == before


def test_launchers_of_a_copy_are_written_anew_under_their_names(here: Path) -> None:
    make(here / "project", **{"finetune.py": TRAIN + "print(1)\n", "tools/warm.py": PROGRAM})
    run("project", "-o", "dist")
    before = contents(here)
    for name in ("train.py", "finetune.py", "tools/warm.py"):
        assert run_launcher(here / "dist" / name).code == 0
    assert contents(here) == before


def test_a_folder_that_became_a_link_is_somebody_elses(here: Path) -> None:
    make(here / "project", **{"labels/a.txt": "a\n"})
    run("project", "-o", "dist")
    (here / "dist/labels/a.txt").unlink()
    (here / "dist/labels").rmdir()
    (here / "dist/labels").symlink_to(here / "project/labels")
    before = contents(here)
    ran = run("project", "-o", "dist", "--force")
    assert ran.code == 2
    assert "dist/labels: is in the way of a folder; move it away; nothing was written" in ran.err
    assert contents(here) == before
    make(here / "project", **{".gitignore": "labels\n"})
    assert run("project", "-o", "dist").code == 0
    assert (here / "project/labels/a.txt").read_text() == "a\n", "ours, but reached through the user's link"


@pytest.mark.parametrize("record", ["[]", "{", '{"version": 9, "files": {}}', '{"version": 1, "files": 3}', ""])
def test_a_record_that_is_none(here: Path, record: str) -> None:
    run("project", "-o", "dist")
    (here / "dist/.ms-distify.json").write_text(record)
    ran = run("project", "-o", "dist")
    assert ran.code == 2
    assert "dist: is not empty and was not written by ms-distify" in ran.err


def test_a_record_that_leads_out(here: Path) -> None:
    run("project", "-o", "dist")
    (here / "precious").write_text("x")
    record = json.loads((here / "dist/.ms-distify.json").read_text())
    for name in ("../precious", str(here / "precious")):
        record["files"][name] = tree_copy._digest(here / "precious")
    (here / "dist/.ms-distify.json").write_text(json.dumps(record))
    assert run("project", "-o", "dist").code == 0
    assert (here / "precious").exists()


# -- errors
# ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["project", "-o", "project"], "the output is the input; use --in-place", id="the input"),
        pytest.param(["project", "-o", "link"], "the output is the input; use --in-place", id="a link to the input"),
        pytest.param(["project/src", "-o", "project"], "project: holds the project itself", id="above the input"),
        pytest.param(["project", "-o", "."], ".: holds the project itself", id="here"),
        pytest.param(["project", "-o", "used"], "used: is not empty and was not written by ms-distify", id="in use"),
        pytest.param(["project", "-o", "used/file"], "used/file: is not a folder", id="a file"),
        pytest.param(["project", "-o", "used/file/x"], "used/file/x: its folder does not exist", id="below a file"),
        pytest.param(["project", "-o", "gone/x"], "gone/x: its folder does not exist", id="no such folder"),
        pytest.param(["project", "-o", "x" * 300], "name too long", id="long name"),
        pytest.param(["project", "-o", "/proc/x"], "/proc/x: ", id="a place that takes no folders"),
        pytest.param(["project", "gone", "-o", "dist"], "gone: no such file", id="no such path"),
        pytest.param(["project", "used", "-o", "dist"], "ms-distify . -o dist", id="two folders"),
        pytest.param(
            ["project/train.py", "project/src", "-o", "dist"], "ms-distify project -o dist", id="script, folder"
        ),
        pytest.param(["project/train.py", "project/train.py", "-o", "dist"], "ms-distify project -o dist", id="twice"),
        pytest.param(
            ["project", "-o", "used", "--check"], "used: is not empty and was not written", id="check, in use"
        ),
        pytest.param(["project", "-o", "dist", "--in-place"], "choose one", id="and in place"),
    ],
)
def test_usage(here: Path, arguments: list[str], says: str) -> None:
    make(here, **{"used/file": "mine\n"})
    (here / "link").symlink_to("project")
    before = contents(here)
    ran = run(*arguments)
    assert (ran.code, ran.out) == (2, b"")
    assert says.lower() in ran.err.lower()
    assert "Traceback" not in ran.err
    assert contents(here) == before


def test_force_into_a_folder_in_use(here: Path) -> None:
    make(here, **{"used/train.py": "mine\n", "used/other.py": "mine\n"})
    assert run("project", "-o", "used", "--force").code == 0
    assert OURS in (here / "used/train.py").read_text()
    assert (here / "used/other.py").read_text() == "mine\n"


def test_an_empty_folder_is_used(here: Path) -> None:
    (here / "dist").mkdir()
    assert run("project", "-o", "dist/").code == 0
    assert (here / "dist/train.py").exists()


@pytest.mark.parametrize("present", [False, True], ids=["new", "present"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "Ctrl-C"])
@pytest.mark.parametrize(
    ("function", "failing"), [("copy2", 1), ("copy2", 3), ("replace", 1), ("replace", 2), ("symlink", 1)]
)
def test_all_or_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch, function: str, failing: int, present: bool, error: BaseException
) -> None:
    (here / "project/link").symlink_to("train.py")
    if present:
        run("project", "-o", "dist")
        make(here / "project", **{"config.yaml": "a: 2\n", "eval.py": EVAL + "print(1)\n", "new/x.txt": "new"})
        (here / "project/src/net.py").unlink()
    before = contents(here)
    module = tree_copy.shutil if function == "copy2" else tree_copy.os
    works, calls = getattr(module, function), []

    def fails(*arguments: object, **options: object) -> object:
        calls.append(arguments)
        if len(calls) == failing:
            raise error
        return works(*arguments, **options)

    monkeypatch.setattr(module, function, fails)
    ran = run("project", "-o", "dist")
    if function == "replace" and failing == 2 and not present:
        assert ran.code == 0, "a new copy is put in place by a single step"
        return
    assert ran.code == (2 if isinstance(error, OSError) else 130)
    assert ("No space left on device; nothing was written" in ran.err) == isinstance(error, OSError)
    assert contents(here) == before


def test_interrupt_ends_all_processes(here: Path) -> None:
    for number in range(40):
        make(here / "project", **{f"large{number}.py": PROGRAM + "x = 1\n" * 5_000})
    process = subprocess.Popen(
        [sys.executable, "-m", "ms_distify", "project", "-o", "dist"],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    time.sleep(3)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, b"ms-distify: interrupted\n")
    assert os.listdir(here) == ["project"]


def test_nothing_heavy_is_imported_for_a_script(here: Path) -> None:
    script = (
        "import sys; sys.argv = ['ms-distify', 'project', '--check']\n"
        "from ms_distify.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 1\n"
        "assert not {'pathspec', 'concurrent.futures.process', 'rich.progress'} & sys.modules.keys()\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, check=False, cwd=here)
    assert done.returncode == 0, done.stderr


def test_names_that_are_no_text(here: Path) -> None:
    name = os.fsdecode(b"tr\xff.py")
    (here / "project" / name).write_text(PROGRAM)
    for _ in range(2):
        ran = spawn("project", "-o", "dist", cwd=here)
        assert ran.code == 0, ran.err
    assert OURS in (here / "dist" / name).read_text()
    assert (here / "dist" / os.fsdecode(b"run_distribute_tr\xff.sh")).exists()


@pytest.mark.parametrize(("count", "bar"), [(2, False), (20, True)])
def test_progress_on_a_terminal_only(here: Path, count: int, bar: bool) -> None:
    import pty

    make(here / "project", **{f"p{number}.py": PROGRAM for number in range(count)})
    assert "converting" not in run("project", "--check").err
    master, slave = pty.openpty()
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen([sys.executable, "-m", "ms_distify", "project", "--check"], stderr=slave, env=env)
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
    assert process.wait(60) == 1
    assert (b"converting" in seen) == bar
