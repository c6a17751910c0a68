"""What a program writes by itself: rank 0 writes, and whoever reads it later still finds it."""

import pytest
from support import HEAD, TRAINING, changed_lines, converted, found, run, unchanged

IMPORTS = """\
import argparse
import csv
import gzip
import json
import logging
import os
import pickle
import time
import cv2
import h5py
import numpy as np
import pandas as pd
import matplotlib.pyplot as plt
from logging.handlers import RotatingFileHandler
from pathlib import Path
"""
START = IMPORTS + HEAD + "ms.set_context(mode=0)\ntrain = ds.MnistDataset('/d').batch(8, drop_remainder=True)\n"
LINE = START.count("\n") + TRAINING.count("\n") + 1
ELSEWHERE = ("rank_id = rank_size", "if int(os.getenv", "init()", "rank_id, rank_size", "ms.set_", "parameter_broadcast",
             "from ", "import ")  # fmt: skip
HELPER = "def wait_for_rank_0("


def put_in(program: str) -> list[str]:
    """Return the lines that come in, without the start-up, the shards and the function that waits."""
    lines = [line for line in changed_lines(program)[1] if line]
    if any(line.startswith(HELPER) for line in lines):
        first = next(i for i, line in enumerate(lines) if line.startswith(HELPER))
        last = next(i for i, line in enumerate(lines) if "time.sleep" in line)
        lines = lines[:first] + lines[last + 1 :]
    return [line for line in lines if not line.strip().startswith(ELSEWHERE) and "num_shards" not in line]


@pytest.mark.parametrize(
    ("line", "statuses"),
    [
        pytest.param("open('a')\n", [], id="open-reads"),
        pytest.param("open('a', 'r')\nopen('a', mode='rb')\n", [], id="modes-that-read"),
        pytest.param("open('a%s' % os.getenv('RANK_ID', '0'), 'w')\n", ["kept"], id="path-by-rank"),
        pytest.param("r = int(os.getenv('RANK_ID', '0'))\nopen(f'a{r}', 'w')\n", ["kept"], id="path-by-rank-variable"),
        pytest.param("open(f'a{os.getpid()}', 'w')\n", ["kept"], id="path-by-process"),
        pytest.param("if os.getenv('RANK_ID', '0') == '0':\n    open('a', 'w')\n", ["kept"], id="guarded"),
        pytest.param("open(os.devnull, 'w')\n", ["kept"], id="null-device"),
        pytest.param("def f():\n    np.save('a', 1)\nif os.getenv('RANK_ID', '0') == '0':\n    f()\n", ["kept"],
                     id="function-called-on-rank-0"),
        pytest.param("open('a', args.mode)\n", ["noted"], id="mode-unknown"),
        pytest.param("open('a', 'r+')\n", ["noted"], id="reads-and-writes"),
        pytest.param("h5py.File('a', 'r')\n", [], id="h5-reads"),
        pytest.param("h5py.File(a(), 'w')\n", ["noted"], id="h5-path-that-is-made-by-a-call"),
        pytest.param("import sqlite3\nsqlite3.connect('a')\n", ["noted"], id="database"),
        pytest.param("os.system('rm a')\n", ["noted"], id="command"),
        pytest.param("import subprocess\nif os.getenv('RANK_ID', '0') == '0':\n    subprocess.run(['a'])\n", [],
                     id="command-guarded"),
        pytest.param("import sys\nfrom loguru import logger\nlogger.add(sys.stderr)\nlogger.add(print)\n", [],
                     id="loguru-not-to-a-file"),
        pytest.param("import shutil\nb = shutil.copy('a', 'b')\n", ["noted"], id="copy-whose-value-is-used"),
        pytest.param("net.save('a')\n", [], id="another-save"),
        pytest.param("ok = cv2.imwrite('a', 1)\n", ["noted"], id="value-used"),
        pytest.param("np.save('a', np.random.rand(3))\n", ["noted"], id="draws"),
        pytest.param("np.save('a', b := 1)\n", ["noted"], id="binds"),
        pytest.param("np.save(*args)\n", ["noted"], id="hidden"),
        pytest.param("def step():\n    model.train(1, train)\nnp.save('a', step())\n", ["noted"], id="trains"),
        pytest.param("logging.basicConfig(level=1)\n", [], id="log-to-the-terminal"),
        pytest.param("class A:\n    def savefig(self, x):\n        pass\nA().savefig('a')\n", [], id="savefig-of-ones-own"),
        pytest.param("def write(f):\n    pass\nwrite('a')\njson.dumps({})\n", [], id="nothing-written"),
    ],
)  # fmt: skip
def test_what_is_left_alone(line: str, statuses: list[str]) -> None:
    program = START + TRAINING + line
    assert put_in(program) == []
    assert [status for status, _ in found(run(program), "MSD405")] == statuses


@pytest.mark.parametrize(
    ("line", "after"),
    [
        pytest.param("log = open('a', 'w')", ["log = open('a' if rank_id in (None, 0) else os.devnull, 'w')"], id="open"),
        pytest.param("open('a', 'a', encoding='utf8')", None, id="append"),
        pytest.param("open(mode='wb', file=a)", ["open(mode='wb', file=a if rank_id in (None, 0) else os.devnull)"],
                     id="keywords"),
        pytest.param("open(a, 'x')", ["open(a if rank_id in (None, 0) else str(a) + f\".rank_{rank_id}\", 'x')"],
                     id="must-be-new"),
        pytest.param("open('a' + b, 'w')", ["open(('a' + b) if rank_id in (None, 0) else os.devnull, 'w')"], id="sum"),
        pytest.param("open(('a'), 'w')", ["open((('a') if rank_id in (None, 0) else os.devnull), 'w')"], id="brackets"),
        pytest.param("open(lambda: 1, 'w')", ["open((lambda: 1) if rank_id in (None, 0) else os.devnull, 'w')"],
                     id="lambda"),
        pytest.param("m = 'w'\nopen(a, m)", ["open(a if rank_id in (None, 0) else os.devnull, m)"], id="mode-by-name"),
        pytest.param("gzip.open('a', 'wt')", ["gzip.open('a' if rank_id in (None, 0) else os.devnull, 'wt')"], id="gzip"),
        pytest.param("with open('a', 'w') as f, open('b') as g:\n    csv.writer(f).writerow(g)",
                     ["with open('a' if rank_id in (None, 0) else os.devnull, 'w') as f, open('b') as g:"], id="with"),
        pytest.param("json.dump({}, open('a', 'w'))",
                     ["json.dump({}, open('a' if rank_id in (None, 0) else os.devnull, 'w'))"], id="json"),
        pytest.param("with open('a', 'wb') as f:\n    pickle.dump(a, f)\n    np.save(f, a)",
                     ["with open('a' if rank_id in (None, 0) else os.devnull, 'wb') as f:"], id="pickle"),
        pytest.param("f = open('a', 'w+')\nf.write('x')",
                     ["f = open('a' if rank_id in (None, 0) else os.devnull, 'w+')"], id="plus-that-only-writes"),
        pytest.param("f = open('a', 'w+')\nf.seek(0)",
                     ["f = open('a' if rank_id in (None, 0) else str('a') + f\".rank_{rank_id}\", 'w+')"],
                     id="plus-that-is-read-again"),
        pytest.param("with Path('a').open('w') as f:\n    f.write('x')",
                     ["with (Path('a') if rank_id in (None, 0) else Path(os.devnull)).open('w') as f:"], id="path-open"),
        pytest.param("Path('a').write_text('x')", ["if rank_id in (None, 0):", "    Path('a').write_text('x')"],
                     id="write_text"),
        pytest.param("logging.basicConfig(filename='a')",
                     ["logging.basicConfig(filename='a' if rank_id in (None, 0) else os.devnull)"], id="basicConfig"),
        pytest.param("h = logging.FileHandler(a)",
                     ["h = logging.FileHandler(a if rank_id in (None, 0) else os.devnull)"], id="FileHandler"),
        pytest.param("h = RotatingFileHandler(a, maxBytes=9)",
                     ["h = RotatingFileHandler(a if rank_id in (None, 0) else str(a) + f\".rank_{rank_id}\", maxBytes=9)"],
                     id="a-log-that-is-renamed"),
        pytest.param("np.save('a',\n        1)", ["if rank_id in (None, 0):", "    np.save('a',", "            1)"],
                     id="save"),
        pytest.param("if b: np.savetxt('a', 1)",
                     ["if b: np.savetxt('a', 1) if rank_id in (None, 0) else None"], id="save-on-one-line"),
        pytest.param("plt.plot(a); plt.savefig('a')",
                     ["plt.plot(a); plt.savefig('a') if rank_id in (None, 0) else None"], id="two-on-a-line"),
        pytest.param("plt.gcf().savefig('a')", ["if rank_id in (None, 0):", "    plt.gcf().savefig('a')"], id="figure"),
        pytest.param("pd.DataFrame(a).to_csv('a')", ["if rank_id in (None, 0):", "    pd.DataFrame(a).to_csv('a')"],
                     id="to_csv"),
        pytest.param("with h5py.File('a', 'w') as f:\n    f['x'] = 1",
                     ["if rank_id in (None, 0):", "    with h5py.File('a', 'w') as f:", "        f['x'] = 1"], id="h5-with"),
        pytest.param("h = h5py.File(a, 'w')",
                     ["h = h5py.File(a if rank_id in (None, 0) else os.path.join(os.path.dirname(a), f\"rank_{rank_id}_\""
                      " + os.path.basename(a)), 'w')"], id="h5-whose-handle-goes-on"),
        pytest.param("with pd.ExcelWriter('a.xlsx') as w:\n    n = 1\nprint(n)",
                     ["with pd.ExcelWriter('a.xlsx' if rank_id in (None, 0) else os.path.join(os.path.dirname('a.xlsx'), "
                      "f\"rank_{rank_id}_\" + os.path.basename('a.xlsx'))) as w:"], id="excel-in-a-with-that-is-needed"),
        pytest.param("from loguru import logger\nlogger.add('a.log', rotation='1 MB')",
                     ["logger.add('a.log' if rank_id in (None, 0) else str('a.log') + f\".rank_{rank_id}\", rotation='1 MB')"],
                     id="loguru"),
        pytest.param("import shutil\nshutil.copytree('a', 'b')",
                     ["if rank_id in (None, 0):", "    shutil.copytree('a', 'b')"], id="copy-of-results"),
        pytest.param("os.rename('a', 'b')", ["if rank_id in (None, 0):", "    os.rename('a', 'b')"], id="rename"),
        pytest.param("from PIL import Image\nImage.fromarray(a).save('a.png')",
                     ["if rank_id in (None, 0):", "    Image.fromarray(a).save('a.png')"], id="picture"),
        pytest.param("os.remove('a')", ["if rank_id in (None, 0):", "    os.remove('a')"], id="remove"),
        pytest.param("os.chmod('a', 0o600)", ["if rank_id in (None, 0):", "    os.chmod('a', 0o600)"], id="mode-of-a-file"),
        pytest.param("cv2.imwrite('a', a)", ["if rank_id in (None, 0):", "    cv2.imwrite('a', a)"], id="image"),
        pytest.param("from tensorboardX import SummaryWriter\nw = SummaryWriter('a')",
                     ["w = SummaryWriter('a' if rank_id in (None, 0) else os.path.join('a', f\"rank_{rank_id}\"))"],
                     id="tensorboard"),
    ],
)  # fmt: skip
def test_rank_0_writes(line: str, after: list[str] | None) -> None:
    program = START + "a = b = ''\n" + TRAINING + line + "\n"
    assert put_in(program) == (after or ["open('a' if rank_id in (None, 0) else os.devnull, 'a', encoding='utf8')"])


def test_a_writer_that_comes_before_the_start_up_asks_the_environment() -> None:
    program = IMPORTS + "logging.basicConfig(filename='a')\n" + START.removeprefix(IMPORTS) + TRAINING
    zero = 'os.getenv("RANK_SIZE", "1") == "1" or os.getenv("RANK_ID") == "0"'
    assert put_in(program) == [f"logging.basicConfig(filename='a' if {zero} else os.devnull)"]


def test_writing_in_a_callback_is_guarded_and_the_callback_is_not() -> None:
    callback = (
        "class Eval(ms.Callback):\n    def epoch_end(self, context):\n        acc = model.eval(train)\n"
        "        with open('acc', 'a') as f:\n            f.write(str(acc))\n"
    )
    text = converted(START + callback + TRAINING.replace("train)\n", "train, callbacks=[Eval()])\n"))
    assert "        acc = model.eval(train)\n" in text
    assert "with open('acc' if rank_id in (None, 0) else os.devnull, 'a') as f:" in text
    assert "callbacks=[Eval()]" in text


WAIT = 'wait_for_rank_0("to write what {} reads")'


@pytest.mark.parametrize(
    ("lines", "after"),
    [
        pytest.param(
            "np.save('a.npy', 1)\nx = np.load('./a.npy')\n",
            ["if rank_id in (None, 0):", "    np.save('a.npy', 1)", WAIT.format("np.load('./a.npy')")],
            id="load",
        ),
        pytest.param(
            "if not os.path.exists('a.npy'):\n    np.save('a.npy', 1)\nx = np.load('a.npy')\n",
            ["    if rank_id in (None, 0):", "        np.save('a.npy', 1)", WAIT.format("np.load('a.npy')")],
            id="made-if-it-is-not-there",
        ),
        pytest.param(
            "p = os.path.join('x', 'y')\nwith open(p, 'w') as f:\n    f.write('')\nwith open(p) as f:\n    f.read()\n",
            [
                "with open(p if rank_id in (None, 0) else os.devnull, 'w') as f:",
                WAIT.format("open(p)"),
            ],
            id="opened-again",
        ),
        pytest.param(
            "def w(p):\n    np.save(p, 1)\ndef r(q):\n    return np.load(q)\nw('a')\nr('a')\n",
            ["    if rank_id in (None, 0):", "        np.save(p, 1)", "    " + WAIT.format("np.load(q)")],
            id="through-parameters",
        ),
        pytest.param(
            "json.dump([], open(args.o, 'w'))\ncoco.loadRes(args.o)\n",
            [
                "json.dump([], open(args.o if rank_id in (None, 0) else os.devnull, 'w'))",
                WAIT.format("coco.loadRes(args.o)"),
            ],
            id="read-by-a-library",
        ),
        pytest.param(
            "for i in range(3):\n    cv2.imwrite(os.path.join('out', str(i)), 1)\nfor f in os.listdir('out'):\n    print(f)\n",
            [
                "    if rank_id in (None, 0):",
                "        cv2.imwrite(os.path.join('out', str(i)), 1)",
                WAIT.format("os.listdir('out')"),
            ],
            id="its-folder-is-listed",
        ),
    ],
)
def test_all_ranks_wait_where_a_file_is_read_back(lines: str, after: list[str]) -> None:
    program = START + "args = argparse.ArgumentParser().parse_args()\nimport coco\n" + TRAINING + lines
    assert put_in(program) == after


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("np.save('a', 1)\nmodel.train(1, train)\nif os.path.exists('a'):\n    np.load('a')\n",
                     id="training-in-between"),
        pytest.param("for f in os.listdir('.'):\n    if os.path.exists('a'):\n        np.load('a')\n    else:\n"
                     "        np.save('a', 1)\n        model.train(1, train)\n", id="training-within"),
        pytest.param("class C(ms.Callback):\n    def epoch_end(self, context):\n        if os.path.exists('a'):\n"
                     "            np.load('a')\n        else:\n            np.save('a', 1)\nmodel.train(1, train, callbacks=[C()])\n",
                     id="where-ranks-cannot-be-made-to-wait"),
        pytest.param("if os.path.exists('a'):\n    x = np.load('a')\nelse:\n    x = np.random.rand(3)\n    np.save('a', x)\n"
                     "y = np.random.rand(3)\n", id="draws-that-others-do-not-make"),
    ],
)  # fmt: skip
def test_what_is_read_back_and_cannot_be_waited_for_is_noted(lines: str) -> None:
    program = START + TRAINING + lines
    assert [line for line in put_in(program) if "random" not in line] == []
    assert [status for status, _ in found(run(program), "MSD405")] == ["noted"]


FIRST, THEN = "if rank_id not in (None, 0):", "if rank_id in (None, 0):"


def turn(what: str, *within: str, indent: str = "") -> list[str]:
    """Return the lines of a cache that rank 0 makes first."""
    wait = f'{indent}    wait_for_rank_0("to {what}")'
    return [indent + FIRST, wait, *within, indent + THEN, wait]


SAVE = [f"    {THEN}", "        np.save('a', x)"]
MAKE = "make or find what comes of np.save('a', x)"


@pytest.mark.parametrize(
    ("lines", "after"),
    [
        pytest.param("if os.path.exists('a'):\n    x = np.load('a')\nelse:\n    x = 1\n    np.save('a', x)\n",
                     turn(MAKE, *SAVE), id="load-or-make"),
        pytest.param("if not os.path.isfile('a'):\n    x = 1\n    np.save('a', x)\nelse:\n    x = np.load('a')\n",
                     turn(MAKE, *SAVE), id="make-or-load"),
        pytest.param("there = os.path.exists('a')\nif there:\n    x = np.load('a')\nelse:\n    x = 1\n    np.save('a', x)\n",
                     turn(MAKE, *SAVE), id="asked-before"),
        pytest.param("if os.path.exists('a') and not args.anew:\n    x = np.load('a')\nelse:\n    x = 1\n    np.save('a', x)\n",
                     turn(MAKE, *SAVE), id="an-argument-decides-too"),
        pytest.param("try:\n    x = np.load('a')\nexcept OSError:\n    x = 1\n    np.save('a', x)\n",
                     turn(MAKE, *SAVE), id="tried"),
        pytest.param("p = Path('a')\nif p.exists():\n    x = np.load(p)\nelse:\n    x = 1\n    np.save(p, x)\n",
                     turn("make or find what comes of np.save(p, x)", f"    {THEN}", "        np.save(p, x)"), id="pathlib"),
        pytest.param("if os.path.exists('a'):\n    with open('a', 'rb') as f:\n        x = pickle.load(f)\nelse:\n    x = 1\n"
                     "    with open('a', 'wb') as f:\n        pickle.dump(x, f)\n",
                     turn("make or find what comes of open('a', 'wb')",
                          "    with open('a' if rank_id in (None, 0) else os.devnull, 'wb') as f:"), id="pickle"),
        pytest.param("def get(p):\n    if os.path.exists(p):\n        return np.load(p)\n    x = 1\n    np.save(p, x)\n    return x\n"
                     "x = get('a')\ny = get('b')\n",
                     [f"    {THEN}", "        np.save(p, x)", *turn("finish get('a')"), *turn("finish get('b')")],
                     id="function-that-returns-early"),
        pytest.param("def load(p):\n    return np.load(p)\ndef save(p, x):\n    np.save(p, x)\n"
                     "if os.path.exists('a'):\n    x = load('a')\nelse:\n    x = 1\n    save('a', x)\n",
                     [f"    {THEN}", "        np.save(p, x)", *turn("finish save('a', x)")], id="functions-that-load-and-save"),
        pytest.param("class D:\n    def __init__(self, p):\n        self.p = p\n        if os.path.exists(self.p):\n"
                     "            self.x = np.load(self.p)\n        else:\n            self.x = 1\n            np.save(self.p, self.x)\n"
                     "d = D('a')\n",
                     turn("make or find what comes of np.save(self.p, self.x)", f"            {THEN}",
                          "                np.save(self.p, self.x)", indent="        "), id="in-a-class"),
        pytest.param("for i in range(3):\n    p = f'a{i}'\n    if os.path.exists(p):\n        x = np.load(p)\n    else:\n"
                     "        np.save(p, i)\n",
                     turn("make or find what comes of np.save(p, i)", f"        {THEN}", "            np.save(p, i)"),
                     id="one-wait-for-a-whole-loop"),
        pytest.param("if os.path.exists('a'):\n    x = np.load('a')\nelse:\n    x = 1\n    np.save('a', x)\n    x = np.load('a')\n",
                     turn(MAKE, *SAVE), id="loaded-in-both-ways"),
        pytest.param("np.save('a', 1)\nif os.path.exists('a'):\n    np.load('a')\n",
                     turn("make or find what comes of np.save('a', 1)", THEN, "    np.save('a', 1)"), id="a-question-behind"),
        pytest.param("def f(p):\n    np.save(p, 1)\n    [np.load(p) for i in 'ab']\nf('a')\n",
                     turn("make or find what comes of np.save(p, 1)", f"    {THEN}", "        np.save(p, 1)", indent="    "),
                     id="comprehension"),
        pytest.param("def inner(p):\n    if os.path.exists(p):\n        return np.load(p)\n    np.save(p, 1)\n"
                     "if os.path.exists('a'):\n    x = np.load('a')\nelse:\n    x = inner('b')\n    np.save('a', x)\n",
                     [f"    {THEN}", "        np.save(p, 1)", *turn("finish inner('b')", *SAVE)], id="a-cache-within-a-cache"),
    ],
)  # fmt: skip
def test_a_cache_is_made_by_rank_0_before_the_others_look_for_it(lines: str, after: list[str]) -> None:
    program = START + "args = argparse.ArgumentParser().parse_args()\n" + TRAINING + lines
    assert put_in(program) == after


def test_a_cache_before_the_start_up_asks_the_environment() -> None:
    cache = "if os.path.exists('a'):\n    x = np.load('a')\nelse:\n    x = 1\n    np.save('a', x)\n"
    program = IMPORTS + cache + START.removeprefix(IMPORTS) + TRAINING
    zero = 'os.getenv("RANK_SIZE", "1") == "1" or os.getenv("RANK_ID") == "0"'
    wait = f'    wait_for_rank_0("to {MAKE}")'
    assert put_in(program) == [f"if not ({zero}):", wait, f"    if {zero}:", SAVE[1], f"if {zero}:", wait]


def test_rank_0_is_not_sent_ahead_over_the_start_up() -> None:
    """init() waits for all ranks: rank 0 would never come back."""
    program = START.replace(
        "ms.set_context(mode=0)\n",
        "if os.path.exists('a'):\n    x = np.load('a')\nms.set_context(mode=0)\nif not os.path.exists('a'):\n    np.save('a', 1)\n",
    )
    program += TRAINING
    assert "wait_for_rank_0" not in converted(program)
    assert [status for status, _ in found(run(program), "MSD405")] == ["noted"]


def test_what_an_earlier_start_wrote_is_read_without_a_wait() -> None:
    program = (
        START + "if os.path.exists('h'):\n    h = json.load(open('h'))\n" + TRAINING + "json.dump([], open('h', 'w'))\n"
    )
    assert put_in(program) == ["json.dump([], open('h' if rank_id in (None, 0) else os.devnull, 'w'))"]


def test_the_same_word_in_another_function_is_another_file() -> None:
    program = START + TRAINING + "def w(p):\n    np.save(p, 1)\ndef r(p):\n    return np.load(p)\nw('a')\nr('b')\n"
    assert put_in(program) == ["    if rank_id in (None, 0):", "        np.save(p, 1)"]


def test_a_name_of_the_programs_own_is_not_taken_for_the_function_that_waits() -> None:
    program = START + TRAINING + "wait_for_rank_0 = 1\nnp.save('a', 1)\nnp.load('a')\n"
    text = converted(program)
    assert "def wait_for_rank_0_2(what" in text
    assert "\nwait_for_rank_0_2(\"to write what np.load('a') reads\")\n" in text


def test_nothing_is_changed_in_a_program_that_does_not_train() -> None:
    unchanged(HEAD + "open('a', 'w')\n", code="MSD607")


@pytest.mark.parametrize(
    ("write", "read"),
    [
        pytest.param("cv2.imwrite(f'd/{i}.png', i)", "ds.ImageFolderDataset('d')", id="f-string"),
        pytest.param("cv2.imwrite(f'./d/{i}/{i}.png', i)", "ds.ImageFolderDataset('d/')", id="folders-within"),
        pytest.param("cv2.imwrite('d/%d.png' % i, i)", "os.listdir('d')", id="percent"),
        pytest.param("cv2.imwrite(os.path.join('d', 'e', str(i)), i)", "os.listdir('d/e')", id="join"),
        pytest.param("p = os.path.join(out, str(i))\n    cv2.imwrite(p, i)", "os.listdir(out)", id="through-a-name"),
        pytest.param(
            "c = os.path.join(out, str(i))\n    cv2.imwrite(os.path.join(c, 'x.png'), i)",
            "ds.ImageFolderDataset(out)",
            id="folder-through-a-name",
        ),
        pytest.param("np.save(f'd/{i}.npy', i)", "glob.glob('d/*.npy')", id="pattern"),
    ],
)
def test_files_of_a_folder_that_is_read_after_they_are_written(write: str, read: str) -> None:
    """How many files there are is not known here, so rank 0 writes them one by one, and all wait for the last."""
    program = (
        START + f"import glob, sys\nout = 'd'\nfor i in range(len(sys.argv[1])):\n    {write}\n{read}\n" + TRAINING
    )
    lines = put_in(program)
    assert any(line.startswith('wait_for_rank_0("') for line in lines), lines


@pytest.mark.parametrize(
    "read",
    [
        pytest.param("os.listdir('e')", id="another-folder"),
        pytest.param("ds.ImageFolderDataset('dd')", id="begins-alike"),
        pytest.param("os.listdir('.')", id="around-it-and-not-within"),
    ],
)
def test_other_folders_need_no_wait(read: str) -> None:
    program = START + f"for i in range(3):\n    cv2.imwrite(f'd/{{i}}.png', i)\n{read}\n" + TRAINING
    assert put_in(program) == ["    if rank_id in (None, 0):", "        cv2.imwrite(f'd/{i}.png', i)"]
