"""C22 and C33: N processes, one set of files."""

import pytest
from support import HEAD, TRAINING, changed_lines, found, refused, run, unchanged

START = HEAD + "import os\nms.set_context(mode=0)\ntrain = ds.MnistDataset('/d').batch(8, drop_remainder=True)\n"
NET = "net = nn.Dense(4, 2)\n"


def put_in(program: str) -> list[str]:
    """Return the lines that come in, without those of the start-up and the shards."""
    start = (
        "rank_id = rank_size",
        "if int(os.getenv",
        "init()",
        "rank_id, rank_size",
        "ms.set_",
        "parameter_broadcast",
    )
    return [
        line
        for line in changed_lines(program)[1]
        if not line.strip().startswith(start) and "num_shards" not in line and "import" not in line
    ]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("os.makedirs('out', exist_ok=True)\n", id="exist_ok"),
        pytest.param("os.makedirs('out', 0o777, True)\n", id="exist_ok-positional"),
        pytest.param("if os.getenv('RANK_ID', '0') == '0':\n    os.makedirs('out')\n", id="makedirs-guarded"),
        pytest.param(
            "if os.getenv('RANK_ID', '0') == '0':\n    ms.save_checkpoint(net, 'a.ckpt')\n", id="save-guarded"
        ),
        pytest.param(
            "cb = ms.ModelCheckpoint('a', 'out' + os.getenv('RANK_ID', '0'))\n", id="checkpoint-directory-by-rank"
        ),
    ],
)
def test_what_minds_the_rank_already_is_left_alone(line: str) -> None:
    assert put_in(START + TRAINING + line) == []


@pytest.mark.parametrize(
    ("line", "after"),
    [
        pytest.param(
            "ms.save_checkpoint(net, 'out/last.ckpt')",
            ["if rank_id in (None, 0):", "    ms.save_checkpoint(net, 'out/last.ckpt')"],
            id="C33-save_checkpoint",
        ),
        pytest.param(
            "from mindspore.train.serialization import save_checkpoint\nsave_checkpoint(net,\n                'a.ckpt')",
            ["if rank_id in (None, 0):", "    save_checkpoint(net,", "                    'a.ckpt')"],
            id="save-over-two-lines",
        ),
        pytest.param(
            "ms.save_checkpoint(net, '''a\n.ckpt''')",
            ["if rank_id in (None, 0): ms.save_checkpoint(net, '''a"],
            id="save-with-a-string-over-two-lines",
        ),
        pytest.param(
            "ms.export(net, ms.Tensor([1.0]), file_name='net')",
            ["if rank_id in (None, 0):", "    ms.export(net, ms.Tensor([1.0]), file_name='net')"],
            id="export",
        ),
        pytest.param(
            "os.makedirs('./out')", ["os.makedirs('./out', exist_ok=rank_size is not None)"], id="C33-makedirs"
        ),
        pytest.param(
            "if 1: ms.save_checkpoint(net, 'a.ckpt')",
            ["if 1: ms.save_checkpoint(net, 'a.ckpt') if rank_id in (None, 0) else None"],
            id="save-behind-a-condition-on-one-line",
        ),
        pytest.param(
            "cb = ms.ModelCheckpoint(prefix='m', directory='./out', config=None)",
            [
                "cb = ms.ModelCheckpoint(prefix='m', directory='./out', config=None) if rank_id in (None, 0) "
                "else ms.Callback()"
            ],
            id="C33-ModelCheckpoint",
        ),
        pytest.param(
            "from mindspore.train.callback import ModelCheckpoint\ncbs = [1, ModelCheckpoint('m', a or 'b')]",
            ["cbs = [1, ModelCheckpoint('m', a or 'b') if rank_id in (None, 0) else Callback()]"],
            id="checkpoint-class-by-name",
        ),
        pytest.param(
            "from mindspore.train.callback import Callback, ModelCheckpoint\ncbs = a and ModelCheckpoint('m')",
            ["cbs = a and (ModelCheckpoint('m') if rank_id in (None, 0) else Callback())"],
            id="checkpoint-in-an-expression",
        ),
        pytest.param(
            "Callback = 1\nfrom mindspore.train.callback import ModelCheckpoint\ncb = ModelCheckpoint('m')",
            ["cb = ModelCheckpoint('m') if rank_id in (None, 0) else NoCallback()"],
            id="the-name-Callback-is-taken",
        ),
        pytest.param(
            "cb = ms.ModelCheckpoint('m', a or 'b')\nprint(cb.latest_ckpt_file_name)",
            [
                "cb = ms.ModelCheckpoint('m', (a or 'b') if rank_id in (None, 0) else "
                'os.path.join((a or \'b\') or "", f"rank_{rank_id}"))'
            ],
            id="callback-that-is-looked-into",
        ),
        pytest.param(
            "cb = ms.ModelCheckpoint('m')\nprint(cb.latest_ckpt_file_name)",
            ["cb = ms.ModelCheckpoint('m', directory=None if rank_id in (None, 0) else f\"rank_{rank_id}\")"],
            id="no-directory",
        ),
        pytest.param(
            "cb = ms.SummaryCollector('./log')",
            [
                "cb = ms.SummaryCollector('./log' if rank_id in (None, 0) else "
                "os.path.join('./log', f\"rank_{rank_id}\"))"
            ],
            id="summary",
        ),
    ],
)
def test_files_are_written_once(line: str, after: list[str]) -> None:
    assert put_in(START + "a = ''\n" + TRAINING + line + "\n") == after


def test_a_folder_made_before_the_start_up_asks_the_environment() -> None:
    """rank_size does not exist yet where the folder is made."""
    program = HEAD + "import os\nos.makedirs('out')\nms.set_context(mode=0)\ntrain = ds.MnistDataset('/d')\n" + TRAINING
    assert 'os.makedirs(\'out\', exist_ok=int(os.getenv("RANK_SIZE", "1")) > 1)' in put_in(program)


def test_a_save_in_a_function_that_cannot_see_the_rank_asks_the_environment() -> None:
    program = (
        HEAD + "def save(net):\n    ms.save_checkpoint(net, 'a.ckpt')\n\ndef main():\n    ms.set_context(mode=0)\n"
        "    train = ds.MnistDataset('/d')\n"
        + "".join(f"    {line}\n" for line in TRAINING.splitlines())
        + "    save(net)\n"
        "main()\n"
    )
    assert '    if os.getenv("RANK_SIZE", "1") == "1" or os.getenv("RANK_ID") == "0":' in put_in(program)


def without_the_helper(lines: list[str]) -> list[str]:
    """Leave out the function that waits."""
    if not any(line.startswith("def wait_for_rank_0(") for line in lines):
        return lines
    first = next(i for i, line in enumerate(lines) if line.startswith("def wait_for_rank_0("))
    last = next(i for i, line in enumerate(lines) if "time.sleep" in line)
    return [line for line in lines[:first] + lines[last + 1 :] if line]


def test_all_ranks_wait_for_a_checkpoint_that_is_read_after_training() -> None:
    program = START + TRAINING + "ms.save_checkpoint(net, 'a.ckpt')\nms.load_checkpoint('a.ckpt', net)\n"
    assert found(run(program), "MSD402") == [("changed", 10), ("changed", 11)]
    assert without_the_helper(put_in(program)) == [
        "if rank_id in (None, 0):",
        "    ms.save_checkpoint(net, 'a.ckpt')",
        "wait_for_rank_0(\"to write what ms.load_checkpoint('a.ckpt', net) reads\")",
    ]
    before = START + NET + "ms.load_checkpoint('pre.ckpt', net)\n" + TRAINING + "ms.save_checkpoint(net, 'a.ckpt')\n"
    assert found(run(before), "MSD402") == [("changed", 12)]


def test_all_ranks_wait_before_they_list_what_the_callback_wrote() -> None:
    program = START + "d = 'out'\ncb = ms.ModelCheckpoint('m', d)\n" + TRAINING + "print(os.listdir(d))\n"
    assert found(run(program), "MSD402") == [("changed", 12)]
    assert without_the_helper(put_in(program))[-1] == 'wait_for_rank_0("to write what os.listdir(d) reads")'
    before = START + "d = 'out'\nprint(os.listdir(d))\ncb = ms.ModelCheckpoint('m', d)\n" + TRAINING
    assert found(run(before), "MSD402") == []


def test_all_ranks_wait_for_what_the_callback_wrote() -> None:
    program = START + "cb = ms.ModelCheckpoint('m', 'out')\n" + TRAINING + "ms.load_checkpoint('out/m.ckpt', net)\n"
    assert found(run(program), "MSD402") == [("changed", 11)]


@pytest.mark.parametrize(
    ("line", "status", "after"),
    [
        pytest.param("p = ms.Profiler()", "changed",
                     ['p = ms.Profiler(output_path="./data" if rank_id in (None, 0) else '
                      'os.path.join("./data", f"rank_{rank_id}"))'], id="profiler"),
        pytest.param("p = ms.profiler.Profiler(output_path='o')\np.analyse()", "changed",
                     ["p = ms.profiler.Profiler(output_path='o' if rank_id in (None, 0) else "
                      "os.path.join('o', f\"rank_{rank_id}\"))"], id="profiler-with-a-path"),
        pytest.param("p = ms.Profiler(on_trace_ready=ms.profiler.tensorboard_trace_handler('o'))", "kept", [],
                     id="profiler-with-a-handler"),
        pytest.param("p = ms.Profiler(**a)", "noted", [], id="profiler-hidden"),
        pytest.param("with ms.profiler.profile() as p:\n    p.step()", "kept", [], id="profile"),
        pytest.param("import wandb\nwandb.init(project='p')", "changed",
                     ["wandb.init(project='p', mode=None if rank_id in (None, 0) else \"disabled\")"], id="wandb"),
        pytest.param("import wandb\nwandb.init(mode='off' + 'line')", "changed",
                     ["wandb.init(mode=('off' + 'line') if rank_id in (None, 0) else \"disabled\")"], id="wandb-with-a-mode"),
        pytest.param("import wandb\nwandb.init(**a)", "noted", [], id="wandb-hidden"),
        pytest.param("import wandb\nif os.getenv('RANK_ID', '0') == '0':\n    wandb.init()", None, [], id="wandb-guarded"),
    ],
)  # fmt: skip
def test_what_records_the_training(line: str, status: str, after: list[str]) -> None:
    program = START + "a = {}\n" + TRAINING + line + "\n"
    assert [line for line in put_in(program) if line.strip() != "ms_init()"] == after  # as theirs is called init, too
    assert {status for status, _ in found(run(program), "MSD401")} == {status} - {None}


@pytest.mark.parametrize(
    "load",
    [
        pytest.param(
            "if os.path.exists('a.ckpt'):\n    ms.load_checkpoint('a.ckpt', net)\n", id="if-the-file-is-there"
        ),
        pytest.param("try:\n    ms.load_checkpoint('a.ckpt', net)\nexcept OSError:\n    pass\n", id="try"),
        pytest.param("x = [ms.load_checkpoint('a.ckpt', net) for i in range(2)]\n", id="comprehension"),
        pytest.param("while os.path.exists('b'):\n    ms.load_checkpoint('a.ckpt', net)\n", id="while"),
        pytest.param(
            "def f():\n    if os.path.exists('b'):\n        return\n    ms.load_checkpoint('a.ckpt', net)\nf()\n",
            id="behind-a-return-that-a-file-decides",
        ),
        pytest.param(
            "there = os.path.exists('b')\nif there:\n    ms.load_checkpoint('a.ckpt', net)\n", id="through-a-variable"
        ),
        pytest.param(
            "acc = model.eval(train)\nif acc > 1:\n    ms.load_checkpoint('a.ckpt', net)\n", id="a-metric-decides"
        ),
        pytest.param(
            "for i in range(3):\n    ms.load_checkpoint('a.ckpt', net)\n    if os.path.exists('b'):\n        break\n",
            id="loop-that-a-file-ends",
        ),
        pytest.param("f = lambda: ms.load_checkpoint('a.ckpt', net)\nf()\n", id="lambda"),
    ],
)
def test_ranks_wait_behind_the_save_where_they_may_not_all_come_by_the_load(load: str) -> None:
    save = "ms.save_checkpoint(net, 'a.ckpt')\n"
    wait = "wait_for_rank_0(\"to finish ms.save_checkpoint(net, 'a.ckpt')\")"
    lines = put_in(START + TRAINING + save + load)
    assert [line for line in lines if "a.ckpt" in line] == ["    ms.save_checkpoint(net, 'a.ckpt')", wait]
    guarded = f"if os.getenv('RANK_ID', '0') == '0':\n    {save}"
    assert [line for line in put_in(START + TRAINING + guarded + load) if "a.ckpt" in line] == [wait]
    result = run(START + TRAINING + f"if os.path.exists('d'):\n    {save}" + load)
    assert [status for status, _ in found(result, "MSD402")] == ["changed", "noted"], "nor by the save"
    assert b"wait_for_rank_0" not in result.output


def test_a_load_of_whatever_there_is_is_noted() -> None:
    load = "for path in glob.glob('*.ckpt'):\n    ms.load_checkpoint(path, net)\n"
    result = run("import glob\n" + START + TRAINING + "ms.save_checkpoint(net, 'a.ckpt')\n" + load)
    assert [status for status, _ in found(result, "MSD402")] == ["changed", "noted"]
    assert b"wait_for_rank_0" not in result.output


@pytest.mark.parametrize(
    ("load", "indent"),
    [
        pytest.param("if args.best:\n    ms.load_checkpoint('a.ckpt', net)\n", "    ", id="argument"),
        pytest.param("for i in range(2):\n    ms.load_checkpoint('a.ckpt', net)\n", "    ", id="counted-loop"),
        pytest.param(
            "n = args.n\nfor i in range(n):\n    ms.load_checkpoint('a.ckpt', net)\n", "    ", id="argument-counts"
        ),
        pytest.param("def f():\n    ms.load_checkpoint('a.ckpt', net)\nf()\nf()\n", "    ", id="function"),
        pytest.param(
            "def f():\n    if args.no:\n        return\n    ms.load_checkpoint('a.ckpt', net)\nf()\n",
            "    ",
            id="behind-a-return-that-an-argument-decides",
        ),
        pytest.param("with open('b') as g:\n    ms.load_checkpoint('a.ckpt', net)\n", "    ", id="with"),
    ],
)
def test_a_wait_where_all_ranks_come_alike(load: str, indent: str) -> None:
    program = START.replace(
        "import os\n", "import os, argparse\np = argparse.ArgumentParser()\nargs = p.parse_args()\n"
    )
    lines = put_in(program + TRAINING + "ms.save_checkpoint(net, 'a.ckpt')\n" + load)
    assert indent + "wait_for_rank_0(\"to write what ms.load_checkpoint('a.ckpt', net) reads\")" in lines


def test_a_save_in_a_function_that_is_called_on_rank_0_alone_is_left_alone() -> None:
    program = (
        START
        + TRAINING
        + (
            "def save():\n    ms.save_checkpoint(net, 'a.ckpt')\n    open('b', 'w').write('x')\n    os.makedirs('c')\n"
            "if os.getenv('RANK_ID', '0') == '0':\n    save()\n"
        )
    )
    result = run(program)
    assert [found(result, code) for code in ("MSD402", "MSD405", "MSD403")] == [
        [("kept", 11)],
        [("kept", 12)],
        [("kept", 13)],
    ]


def test_all_ranks_wait_for_an_exported_model_that_is_loaded() -> None:
    program = START + TRAINING + "ms.export(net, train, file_name='n', file_format='MINDIR')\nms.load('n.mindir')\n"
    assert [status for status, _ in found(run(program), "MSD402")] == ["changed", "changed"]
    assert "wait_for_rank_0(\"to write what ms.load('n.mindir') reads\")" in put_in(program)


def test_a_class_of_ones_own_that_writes_checkpoints_is_noted() -> None:
    program = START + TRAINING + "class Mine(ms.ModelCheckpoint):\n    pass\ncb = Mine('m')\n"
    assert found(run(program), "MSD401") == [("noted", 12)]


def test_a_save_inside_a_larger_statement_is_refused() -> None:
    refused(START + TRAINING + "ok = ms.save_checkpoint(net, 'a.ckpt')\n", "MSD402", 10, "line of its own")


WRITER = """\
w = FileWriter('t.mindrecord', 1, overwrite=True)
w.add_schema({'x': {'type': 'int32'}}); w.write_raw_data([{'x': 1}]); w.commit()
"""
MINDRECORD = HEAD + "import os\nfrom mindspore.mindrecord import FileWriter\nms.set_context(mode=0)\n"
ZERO = 'os.getenv("RANK_SIZE", "1") == "1" or os.getenv("RANK_ID") == "0"'


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def test_c22_rank_0_writes_a_mindrecord_and_all_wait_before_it_is_read() -> None:
    program = MINDRECORD + WRITER + "train = ds.MindDataset('t.mindrecord')\n" + TRAINING
    assert without_the_helper(put_in(program)) == [
        "if rank_id in (None, 0):",
        "    w = FileWriter('t.mindrecord', 1, overwrite=True)",
        "if rank_id in (None, 0):",
        "    w.add_schema({'x': {'type': 'int32'}}); w.write_raw_data([{'x': 1}]); w.commit()",
        "wait_for_rank_0(\"to finish FileWriter('t.mindrecord', 1, overwrite=True)\")",
    ]
    text = run(program).output.decode()
    assert text.index('wait_for_rank_0("') < text.index("ds.MindDataset")


@pytest.mark.parametrize(
    ("preparation", "after"),
    [
        pytest.param(
            "def make():\n" + indented(WRITER) + "if not os.path.exists('t.mindrecord'):\n    make()\n",
            ["if rank_id in (None, 0) and not os.path.exists('t.mindrecord'):", 'wait_for_rank_0("to finish make()")'],
            id="if-it-is-not-there",
        ),
        pytest.param(
            "def make():\n" + indented(WRITER) + "if not (os.path.exists('a') and os.path.exists('b')): make()\n",
            [
                "if rank_id in (None, 0) and not (os.path.exists('a') and os.path.exists('b')): make()",
                'wait_for_rank_0("to finish make()")',
            ],
            id="if-on-one-line",
        ),
        pytest.param(
            "def make():\n" + indented(WRITER) + "if (not os.path.exists('a') or not os.path.exists('b')):\n    make()\n",
            [
                "if (rank_id in (None, 0) and (not os.path.exists('a') or not os.path.exists('b'))):",
                'wait_for_rank_0("to finish make()")',
            ],
            id="if-in-brackets",
        ),
        pytest.param(
            "def make():\n    if os.path.exists('t.mindrecord'):\n        return\n" + indented(WRITER) + "make()\n",
            ["if rank_id in (None, 0):", "    make()", 'wait_for_rank_0("to finish make()")'],
            id="function-that-returns-if-it-is-there",
        ),
        pytest.param(
            "class Made:\n    def __init__(self):\n        self.n = 1\n    def make(self):\n        self.n += 1\n"
            + indented(indented(WRITER)) + "def make():\n    m = Made()\n    m.make()\nmake()\n",
            ["if rank_id in (None, 0):", "    make()", 'wait_for_rank_0("to finish make()")'],
            id="object-that-is-made-for-it",
        ),
        pytest.param(
            "from mindspore.mindrecord import Cifar10ToMR\nCifar10ToMR('a', 'b').transform()\n",
            [
                "if rank_id in (None, 0):",
                "    Cifar10ToMR('a', 'b').transform()",
                "wait_for_rank_0(\"to finish Cifar10ToMR('a', 'b')\")",
            ],
            id="converter",
        ),
        pytest.param(
            "import random\ndef make():\n    random.shuffle([1])\n" + indented(WRITER) + "    return 1\nn = make()\n",
            [
                "random.seed(0)",
                "    if rank_id in (None, 0):",
                "        w = FileWriter('t.mindrecord', 1, overwrite=True)",
                "    if rank_id in (None, 0):",
                "        w.add_schema({'x': {'type': 'int32'}}); w.write_raw_data([{'x': 1}]); w.commit()",
                "    wait_for_rank_0(\"to finish FileWriter('t.mindrecord', 1, overwrite=True)\")",
            ],
            id="the-writer-alone-in-a-function-that-draws-and-gives-a-value",
        ),
    ],
)  # fmt: skip
def test_rank_0_prepares_and_all_ranks_wait(preparation: str, after: list[str]) -> None:
    program = MINDRECORD + preparation + "train = ds.MindDataset('t.mindrecord')\n" + TRAINING
    assert without_the_helper(put_in(program)) == after


def test_preparation_before_the_start_up_asks_the_environment() -> None:
    program = MINDRECORD.replace("ms.set_context(mode=0)\n", "") + (
        "def make():\n" + indented(WRITER) + "make()\nms.set_context(mode=0)\n"
    )
    lines = without_the_helper(put_in(program + "train = ds.MindDataset('t.mindrecord')\n" + TRAINING))
    assert lines == [f"if {ZERO}:", "    make()", 'wait_for_rank_0("to finish make()")']


@pytest.mark.parametrize(
    ("preparation", "line", "why"),
    [
        pytest.param(WRITER + "n = w.n\nprint(n)\n", 7, "is used later", id="used-later"),
        pytest.param("if os.path.getsize('a'):\n    pass\nelse:\n" + indented(WRITER), 10, "may not all come", id="else"),
        pytest.param("n = 0\ndef make():\n    global n\n    n = FileWriter('t')\n    n.commit()\nmake()\n", 10,
                     "n is used later", id="global"),
        pytest.param("def make(o):\n    o.w = FileWriter('t')\nmake(net0)\n", 8, "changes o", id="argument-changed"),
        pytest.param("import random\nFileWriter('t').write_raw_data([random.random()])\n", 8, "it draws", id="draws"),
        pytest.param("for f in os.listdir('.'):\n" + indented(WRITER), 8, "may not all come", id="for-each-file"),
        pytest.param("try:\n" + indented(WRITER) + "except OSError:\n    pass\n", 8, "may not all come", id="try"),
    ],
)  # fmt: skip
def test_preparation_that_rank_0_cannot_do_alone_is_refused(preparation: str, line: int, why: str) -> None:
    program = MINDRECORD + preparation + "train = ds.MindDataset('t.mindrecord')\n" + TRAINING
    result = refused(program, "MSD404", line, "a script of its own")
    assert any(f.code == "MSD404" and why in f.message for f in result.findings), result.findings


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("os.chdir('d')", id="working-folder"),
        pytest.param("os.environ['DATA'] = 'd'", id="environment"),
        pytest.param("sys.path.append('d')", id="list-of-a-module"),
        pytest.param("np.random.seed(1)", id="seed"),
    ],
)
def test_what_changes_the_process_is_done_on_all_ranks(change: str) -> None:
    """They would go on in another folder, and wait for each other there; rank 0 does the downloading alone."""
    program = MINDRECORD + (
        f"import sys, urllib.request\nimport numpy as np\ndef make():\n    {change}\n"
        "    urllib.request.urlretrieve('u', 'f')\nmake()\ntrain = ds.MindDataset('f')\n"
    )
    assert without_the_helper(put_in(program + TRAINING)) == [
        "    if rank_id in (None, 0):",
        "        urllib.request.urlretrieve('u', 'f')",
        "    wait_for_rank_0(\"to finish urllib.request.urlretrieve('u', 'f')\")",
    ]


FIRST, THEN = "if rank_id not in (None, 0):", "if rank_id in (None, 0):"
AHEAD = '    wait_for_rank_0("to {}")'


@pytest.mark.parametrize(
    ("preparation", "what"),
    [
        pytest.param(
            "if os.path.exists('t.mindrecord'):\n    n = 1\nelse:\n" + indented(WRITER) + "    n = 2\nprint(n)\n",
            "make or find what comes of FileWriter('t.mindrecord', 1, overwrite=True)",
            id="a-value-goes-on",
        ),
        pytest.param(
            "def make(p):\n    if os.path.exists(p):\n        return 1\n"
            + indented(WRITER).replace("'t.mindrecord'", "p") + "    return 2\nn = make('t.mindrecord')\nprint(n)\n",
            "finish make('t.mindrecord')",
            id="function-that-returns-a-value",
        ),
    ],
)  # fmt: skip
def test_rank_0_makes_first_what_the_others_then_find(preparation: str, what: str) -> None:
    program = MINDRECORD + preparation + "train = ds.MindDataset('t.mindrecord')\n" + TRAINING
    assert without_the_helper(put_in(program)) == [FIRST, AHEAD.format(what), THEN, AHEAD.format(what)]


@pytest.mark.parametrize(
    "test",
    [
        pytest.param("os.path.exists('t.mindrecord') and not net0", id="something-else-decides-too"),
        pytest.param("os.path.exists('other')", id="another-file"),
    ],
)
def test_others_that_might_write_again_are_refused(test: str) -> None:
    program = MINDRECORD + f"if {test}:\n    n = 1\nelse:\n" + indented(WRITER) + "    n = 2\nprint(n)\n"
    refused(program + "train = ds.MindDataset('t.mindrecord')\n" + TRAINING, "MSD404", 10)


def test_nobody_waits_within_what_rank_0_prepares_alone() -> None:
    """A wait of rank 0 alone would meet the wait of the others behind the preparation, and let them go too early."""
    preparation = (
        "import shutil\ndef make():\n    if os.path.exists('out'):\n        shutil.rmtree('out')\n    os.makedirs('out')\n"
        "    open('a', 'w')\n    open('a')\n" + indented(WRITER) + "make()\n"
    )
    program = MINDRECORD + preparation + "train = ds.MindDataset('t.mindrecord')\n" + TRAINING
    assert without_the_helper(put_in(program)) == [THEN, "    make()", 'wait_for_rank_0("to finish make()")']


def test_a_writer_that_the_program_does_not_reach_is_left_alone() -> None:
    program = MINDRECORD + "def make():\n" + indented(WRITER) + "train = ds.MindDataset('t.mindrecord')\n" + TRAINING
    assert found(run(program), "MSD404") == [("kept", 8)]


def test_removals_and_downloads() -> None:
    program = START.replace("import os\n", "import os, shutil, zipfile\nimport urllib.request\n") + (
        "os.mkdir('a')\nif os.path.exists('b'):\n    shutil.rmtree('b')\n"
        "urllib.request.urlretrieve('u', 'f')\nwith zipfile.ZipFile('f') as z:\n    z.extractall('g')\n"
    )
    result = run(program + TRAINING)
    assert found(result, "MSD403") == [("changed", 8), ("changed", 10)]
    assert found(result, "MSD404") == [("changed", 11), ("changed", 12)]
    assert without_the_helper(put_in(program + TRAINING)) == [
        "os.makedirs('a', exist_ok=True) if rank_size is not None else os.mkdir('a')",
        "if rank_id in (None, 0) and os.path.exists('b'):",
        "wait_for_rank_0(\"to finish shutil.rmtree('b')\")",
        "if rank_id in (None, 0):",
        "    urllib.request.urlretrieve('u', 'f')",
        "wait_for_rank_0(\"to finish urllib.request.urlretrieve('u', 'f')\")",
        "if rank_id in (None, 0):",
        "    with zipfile.ZipFile('f') as z:",
        "        z.extractall('g')",
        "wait_for_rank_0(\"to finish zipfile.ZipFile('f')\")",
    ]


def test_removals_and_downloads_that_not_all_ranks_reach_are_noted() -> None:
    program = START.replace("import os\n", "import os, shutil, zipfile\nimport urllib.request\n") + (
        "for f in os.listdir('a'):\n    shutil.rmtree(f)\n    urllib.request.urlretrieve(f, f)\n"
        "z = zipfile.ZipFile('f')\ndata = z.read('g')\nprint(data)\n"
    )
    result = run(program + TRAINING)
    assert found(result, "MSD403") == [("noted", 9)]
    assert found(result, "MSD404") == [("noted", 10), ("noted", 11)]


def test_files_are_copied_before_training_by_rank_0_while_all_wait() -> None:
    program = START.replace("import os\n", "import os, shutil\n") + "shutil.copytree('/nfs/d', 'd')\n" + TRAINING
    program += "shutil.copytree('d', 'e')\n"
    result = run(program)
    assert (found(result, "MSD404"), found(result, "MSD405")) == ([("changed", 7)], [("changed", 11)])
    assert without_the_helper(put_in(program)) == [
        "if rank_id in (None, 0):",
        "    shutil.copytree('/nfs/d', 'd')",
        "wait_for_rank_0(\"to finish shutil.copytree('/nfs/d', 'd')\")",
        "if rank_id in (None, 0):",
        "    shutil.copytree('d', 'e')",
    ]


def test_rows_of_a_dataset_are_saved_by_rank_0_while_all_wait() -> None:
    program = HEAD + "import os\nms.set_context(mode=0)\nds.MnistDataset('/d').batch(2).save('t.mindrecord')\n"
    program += "train = ds.MindDataset('t.mindrecord')\n" + TRAINING
    assert without_the_helper(put_in(program)) == [
        "if rank_id in (None, 0):",
        "    ds.MnistDataset('/d').batch(2).save('t.mindrecord')",
        "wait_for_rank_0(\"to finish ds.MnistDataset('/d').batch(2).save('t.mindrecord')\")",
    ]
    refused(START + "train.save('t.mindrecord')\n" + TRAINING, "MSD404", 7, "trains as well")


def test_several_folders_are_removed_and_made_anew() -> None:
    """No rank writes into a folder before rank 0 has removed the old one."""
    program = START.replace("import os\n", "import os, shutil\n") + (
        "if os.path.exists('out'):\n    shutil.rmtree('out')\nos.makedirs('out')\nos.mkdir('log')\n" + TRAINING
    )
    assert without_the_helper(put_in(program)) == [
        "if rank_id in (None, 0) and os.path.exists('out'):",
        "wait_for_rank_0(\"to finish shutil.rmtree('out')\")",
        "os.makedirs('out', exist_ok=rank_size is not None)",
        "os.makedirs('log', exist_ok=True) if rank_size is not None else os.mkdir('log')",
    ]


def test_folders_of_paths() -> None:
    program = (
        START
        + TRAINING
        + (
            "from pathlib import Path\np = Path('a') / 'b'\np.mkdir()\n(Path('c') / 'd').mkdir(parents=True)\n"
            "Path('e').mkdir(exist_ok=True)\nx = make().mkdir()\n"
        )
    )
    assert found(run(program), "MSD403") == [("changed", 12), ("changed", 13), ("noted", 15)]
    assert put_in(program) == [
        "p.mkdir(exist_ok=rank_size is not None)",
        "(Path('c') / 'd').mkdir(parents=True, exist_ok=rank_size is not None)",
    ]


def test_a_folder_with_the_time_in_its_name_is_noted() -> None:
    program = START + TRAINING + "import time\nd = time.strftime('%Y')\nos.makedirs(d, exist_ok=True)\n"
    assert found(run(program), "MSD403") == [("kept", 12), ("noted", 12)]


def test_nothing_is_guarded_in_a_program_that_does_not_train() -> None:
    unchanged(HEAD + NET + "ms.save_checkpoint(net, 'a.ckpt')\n", code="MSD607")
