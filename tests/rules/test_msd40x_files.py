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
            "cb = ms.ModelCheckpoint(prefix='m', directory='./out', config=None)",
            [
                "cb = ms.ModelCheckpoint(prefix='m', directory='./out' if rank_id in (None, 0) else "
                "os.path.join('./out', f\"rank_{rank_id}\"), config=None)"
            ],
            id="C33-ModelCheckpoint",
        ),
        pytest.param(
            "from mindspore.train.callback import ModelCheckpoint\ncb = ModelCheckpoint('m', a or 'b')",
            [
                "cb = ModelCheckpoint('m', (a or 'b') if rank_id in (None, 0) else "
                'os.path.join((a or \'b\') or "", f"rank_{rank_id}"))'
            ],
            id="directory-is-an-expression",
        ),
        pytest.param(
            "cb = ms.ModelCheckpoint('m')",
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


def test_a_checkpoint_read_after_training_is_noted() -> None:
    program = START + TRAINING + "ms.save_checkpoint(net, 'a.ckpt')\nms.load_checkpoint('a.ckpt', net)\n"
    assert found(run(program), "MSD402", "noted") == [("noted", 11)]
    before = START + NET + "ms.load_checkpoint('pre.ckpt', net)\n" + TRAINING + "ms.save_checkpoint(net, 'a.ckpt')\n"
    assert found(run(before), "MSD402", "noted") == []


def test_a_save_inside_a_larger_statement_is_refused() -> None:
    refused(START + TRAINING + "ok = ms.save_checkpoint(net, 'a.ckpt')\n", "MSD402", 10, "line of its own")


def test_c22_a_mindrecord_written_by_the_program_is_refused() -> None:
    program = HEAD + (
        "from mindspore.mindrecord import FileWriter\nms.set_context(mode=0)\n"
        "w = FileWriter('t.mindrecord', 1, overwrite=True)\n"
        "w.add_schema({'x': {'type': 'int32'}}); w.write_raw_data([{'x': 1}]); w.commit()\n"
        "train = ds.MindDataset('t.mindrecord')\n"
    )
    refused(program + TRAINING, "MSD404", 6, "a script of its own")


def test_downloads_folders_and_removals_are_noted() -> None:
    program = START.replace("import os\n", "import os, shutil\nimport urllib.request\n") + (
        "os.mkdir('a')\nshutil.rmtree('b')\nurllib.request.urlretrieve('u', 'f')\n"
    )
    result = run(program + TRAINING)
    assert found(result, "MSD403") == [("noted", 8), ("noted", 9)]
    assert found(result, "MSD404") == [("noted", 10)]


def test_nothing_is_guarded_in_a_program_that_does_not_train() -> None:
    unchanged(HEAD + NET + "ms.save_checkpoint(net, 'a.ckpt')\n", code="MSD607")
