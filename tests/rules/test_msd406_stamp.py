"""One time for all ranks: names with the time in them under which rank 0 writes and all ranks read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import HEAD, TRAINING, changed_lines, converted, found, refused, run

IMPORTS = """\
import argparse
import datetime
import os
import random
import tempfile
import time
import uuid
import numpy as np
"""
START = IMPORTS + HEAD + "ms.set_context(mode=0)\n"
DATA = "train = ds.MnistDataset('/d').batch(8, drop_remainder=True)\n"
SAVE = "ms.save_checkpoint(net, out + '/best.ckpt')\n"
LOAD = "ms.load_checkpoint(out + '/best.ckpt', net)\n"


def shared(program: str) -> list[str]:
    """Return the lines in which a value of rank 0's is taken."""
    return [line.strip() for line in changed_lines(program)[1] if "same_on_all_ranks(" in line and "def " not in line]


@pytest.mark.parametrize(
    ("stamp", "use"),
    [
        pytest.param("out = 'runs'\n", SAVE + LOAD, id="no-time"),
        pytest.param("out = time.strftime('%H%M')\n", SAVE, id="rank-0-alone-uses-it"),
        pytest.param("out = time.strftime('%H%M')\n", SAVE + "if os.getenv('RANK_ID', '0') == '0':\n    " + LOAD,
                     id="read-by-rank-0-alone"),
        pytest.param("day = time.strftime('%Y%m%d')\n", "np.load(day + '.npy')\n", id="read-and-not-written"),
        pytest.param("out = tempfile.mkdtemp()\n", "np.save(out + '/a.npy', 1)\nnp.load(out + '/a.npy')\n",
                     id="each-rank-in-its-own-temporary-folder"),
        pytest.param("out = time.strftime('%H') + os.getenv('RANK_ID', '0')\n", SAVE + LOAD, id="the-rank-is-in-it"),
        pytest.param("class C:\n    pass\nc = C()\nc.out = 'runs'\nc.out = time.strftime('%H') + str(ms.communication.get_rank())\n"
                     "out = c.out\n", SAVE + LOAD, id="the-rank-is-in-an-attribute"),
        pytest.param("out = 'runs'\nstart = time.time()\n", SAVE + LOAD + "print(time.time() - start)\n", id="no-name"),
    ],
)  # fmt: skip
def test_a_time_that_ranks_need_not_share_is_left_alone(stamp: str, use: str) -> None:
    program = START + stamp + DATA + TRAINING + use
    assert shared(program) == []
    assert found(run(program), "MSD406") == []


@pytest.mark.parametrize(
    ("stamp", "use", "after"),
    [
        pytest.param("out = os.path.join('runs', time.strftime('%H%M'))\nos.makedirs(out)\n", SAVE + LOAD,
                     "out = os.path.join('runs', same_on_all_ranks(time.strftime('%H%M')))", id="strftime"),
        pytest.param("out = f'runs/{datetime.datetime.now():%H%M}'\n", SAVE + LOAD,
                     "out = f'runs/{same_on_all_ranks(datetime.datetime.now()):%H%M}'", id="formatted"),
        pytest.param("now = datetime.datetime.now()\nout = 'runs/' + now.strftime('%H')\n", SAVE + LOAD,
                     "now = same_on_all_ranks(datetime.datetime.now())", id="in-two-steps"),
        pytest.param("out = time.strftime('%H', time.localtime())\n", SAVE + LOAD,
                     "out = same_on_all_ranks(time.strftime('%H', time.localtime()))", id="one-time-within-another"),
        pytest.param("out = 'runs' + str(uuid.uuid4())\n", SAVE + LOAD,
                     "out = 'runs' + str(same_on_all_ranks(uuid.uuid4()))", id="uuid"),
        pytest.param("out = tempfile.mkdtemp()\n", SAVE + LOAD,
                     "out = same_on_all_ranks(lambda: tempfile.mkdtemp())", id="temporary-folder-is-made-once"),
        pytest.param("out = 'runs' + str(time.time())\ncb = ms.ModelCheckpoint('m', out)\n",
                     "ms.load_checkpoint(os.path.join(out, 'm-1_9.ckpt'))\n",
                     "out = 'runs' + str(same_on_all_ranks(time.time()))", id="callback"),
        pytest.param("p = argparse.ArgumentParser()\np.add_argument('-o', '--out-dir', default=time.strftime('%H'))\n"
                     "args = p.parse_args()\nout = args.out_dir\n", SAVE + LOAD,
                     "p.add_argument('-o', '--out-dir', default=same_on_all_ranks(time.strftime('%H')))", id="argument"),
        pytest.param("class T:\n    def __init__(self):\n        self.out = time.strftime('%H')\n    def save(self, net):\n"
                     "        ms.save_checkpoint(net, self.out + '/b')\n    def load(self):\n"
                     "        ms.load_checkpoint(self.out + '/b')\nt = T()\n", "t.save(net)\nt.load()\n",
                     "self.out = same_on_all_ranks(time.strftime('%H'))", id="attribute"),
    ],
)  # fmt: skip
def test_all_ranks_take_the_time_of_rank_0(stamp: str, use: str, after: str) -> None:
    program = START + stamp + DATA + TRAINING + use
    assert shared(program) == [after]
    [(status, _)] = found(run(program), "MSD406")
    assert status == "changed"
    assert [status for status, _ in found(run(converted(program)), "MSD406")] == ["kept"]


def test_what_lies_under_a_shared_name_is_written_by_rank_0() -> None:
    """A temporary folder is a rank's own until ranks share it."""
    program = START + "out = tempfile.mkdtemp()\n" + DATA + TRAINING + "np.save(out + '/a.npy', 1)\n"
    assert [status for status, _ in found(run(program), "MSD405")] == ["kept"]
    program += SAVE + LOAD
    assert [status for status, _ in found(run(program), "MSD405")] == ["changed"]


@pytest.mark.parametrize(
    ("stamp", "line"),
    [
        pytest.param("out = ''\nif os.path.exists('a'):\n    out = time.strftime('%H')\n", 15, id="under-a-condition"),
        pytest.param("out = ''\nfor f in os.listdir('.'):\n    out = time.strftime('%H')\n", 15, id="for-each-file"),
        pytest.param("name = lambda: time.strftime('%H')\nout = name()\n", 13, id="in-a-lambda"),
    ],
)
def test_a_time_that_ranks_cannot_share_is_refused(stamp: str, line: int) -> None:
    refused(START + stamp + DATA + TRAINING + SAVE + LOAD, "MSD406", line, "from the command line")


SCRIPT = """\
import os
import pickle
import sys
import time
{helpers}
time.sleep(float(sys.argv[1]))
print([same_on_all_ranks(os.getpid()), same_on_all_ranks(lambda: os.getpid() + 1)])
"""


def test_the_function_gives_every_rank_the_value_of_rank_0(tmp_path: Path) -> None:
    """Run by real processes, rank 0 last; and on one card."""
    lines = converted(START + "out = time.strftime('%H')\n" + DATA + TRAINING + SAVE + LOAD).splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("def wait_for_rank_0("))
    last = next(i for i, line in enumerate(lines) if line == "    return value")
    (tmp_path / "same.py").write_text(SCRIPT.format(helpers="\n".join(lines[first : last + 1])))
    (tmp_path / ".value_of_rank_0.1").write_bytes(b"left by a run that was killed")
    started = [
        subprocess.Popen(
            [sys.executable, "same.py", str(1 - 0.5 * rank)], cwd=tmp_path, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "RANK_ID": str(rank), "RANK_SIZE": "3", "MS_SCHED_PORT": "1"},
        )
        for rank in range(3)
    ]  # fmt: skip
    said = [process.communicate(timeout=60)[0] for process in started]
    zero = started[0].pid
    assert said == [f"[{zero}, {zero + 1}]\n"] * 3
    assert [path.name for path in tmp_path.iterdir()] == ["same.py"]
    env = {key: value for key, value in os.environ.items() if key not in ("RANK_ID", "RANK_SIZE")}
    alone = subprocess.Popen([sys.executable, "same.py", "0"], cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True)
    assert alone.communicate(timeout=60)[0] == f"[{alone.pid}, {alone.pid + 1}]\n"
