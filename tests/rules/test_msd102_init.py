"""MSD102: init, rank and size."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support import HEAD, KEPT, TRAINING, becomes, changed_lines, converted, found, run, unchanged

DATA = 'train = ds.MnistDataset("/d").batch(8, drop_remainder=True)\n'
COMM = "from mindspore.communication import get_group_size, get_rank, init\n"
BLOCK = """\
rank_id = rank_size = None  # one card
if int(os.getenv("RANK_SIZE", "1")) > 1:  # started by run_distribute.sh
    init()
    rank_id, rank_size = get_rank(), get_group_size()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True,
                                 parameter_broadcast=True, device_num=rank_size)
ms.set_seed(0)
"""
SHARDED = 'train = ds.MnistDataset("/d", num_shards=rank_size, shard_id=rank_id).batch(8, drop_remainder=True)\n'
BODY = DATA + TRAINING
SHARDED_BODY = SHARDED + TRAINING


def indent(text: str, by: str = "    ") -> str:
    return "".join(by + line if line.strip() else line for line in text.splitlines(keepends=True))


GUIDE = """\
import os, argparse
import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn, context
from mindspore.communication import init, get_rank, get_group_size
args = argparse.ArgumentParser().parse_args()
device_id = int(os.getenv("DEVICE_ID", "0"))
context.set_context(mode=context.GRAPH_MODE, device_target="Ascend", device_id=device_id)
if args.is_distributed:
    init()
    args.rank = get_rank()
    args.group_size = get_group_size()
    context.reset_auto_parallel_context()
    context.set_auto_parallel_context(parallel_mode=context.ParallelMode.DATA_PARALLEL, gradients_mean=True,
                                      device_num=args.group_size, parameter_broadcast=True)
else:
    context.reset_auto_parallel_context()
    context.set_auto_parallel_context(parallel_mode=context.ParallelMode.STAND_ALONE, device_num=1)
ms.set_seed(0)
train = ds.Cifar10Dataset("/d", usage="train", num_shards=args.group_size, shard_id=args.rank).batch(32)
"""
C05 = """\
from mindspore.communication.management import init, get_rank, get_group_size
import mindspore.dataset as ds
from mindspore import ParallelMode, context, set_seed
from mindspore import Model, nn
init("nccl")
context.set_auto_parallel_context(parallel_mode=ParallelMode.DATA_PARALLEL, gradients_mean=True, parameter_broadcast=True)
set_seed(1)
train = ds.Cifar10Dataset("/d", num_shards=get_group_size(), shard_id=get_rank())
net = nn.Dense(4, 2)
model = Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
model.train(1, train)
"""


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(C05, id="C05"),
        pytest.param(GUIDE + TRAINING, id="by hand as in the guide"),
        pytest.param(
            GUIDE.replace("    init()\n", "    init() if args.t == 'Ascend' else init('nccl')\n") + TRAINING,
            id="by hand, backend by device",
        ),
        pytest.param(
            HEAD
            + BLOCK.replace("rank_id", "rank")
            .replace("ms.set_seed", "import os\nms.set_seed")
            .replace("rank = rank_size = None", "import os\n" + COMM + "rank = rank_size = None")
            + SHARDED_BODY.replace("=rank_id", "=rank"),
            id="our own shape under other names",
        ),
    ],
)
def test_already_distributed(source: str) -> None:
    unchanged(source, code="MSD606", message="already distributed")


def test_c05_without_init() -> None:
    gone, new = changed_lines(C05.replace('init("nccl")\n', ""))
    assert gone == []
    assert new.count("    init()") == 1
    assert 'if int(os.getenv("RANK_SIZE", "1")) > 1:  # started by run_distribute.sh' in new
    assert not any("set_auto_parallel_context" in line or "set_seed" in line for line in new)


def test_c05_without_parallel_context() -> None:
    gone, new = changed_lines("\n".join(line for line in C05.splitlines() if "context.set_auto" not in line))
    assert gone == []
    assert "context.set_auto_parallel_context(parallel_mode=ParallelMode.DATA_PARALLEL, gradients_mean=True," in new
    assert not any("init(" in line or "set_seed" in line or "import" in line for line in new)


def test_c05_without_seed() -> None:
    gone, new = changed_lines(C05.replace("set_seed(1)\n", ""))
    assert (gone, new) == ([], ["set_seed(0)"])


def test_c05_without_shards() -> None:
    gone, new = changed_lines(C05.replace(", num_shards=get_group_size(), shard_id=get_rank()", ""))
    assert gone == ['train = ds.Cifar10Dataset("/d")']
    assert new == [
        "rank_id, rank_size = get_rank(), get_group_size()",
        'train = ds.Cifar10Dataset("/d", num_shards=rank_size, shard_id=rank_id)',
    ]


def test_c01() -> None:
    becomes(
        HEAD + "ms.set_context(mode=ms.GRAPH_MODE)\n" + BODY,
        "import os\n" + HEAD + COMM + "ms.set_context(mode=ms.GRAPH_MODE)\n" + BLOCK + SHARDED_BODY,
    )


def test_c06() -> None:
    source = HEAD + "from mindspore.communication import init\ninit()\n" + BODY
    gone, new = changed_lines(source)
    assert gone == [DATA.rstrip()]
    assert new == [
        "from mindspore.communication import get_group_size, get_rank",
        "rank_id, rank_size = get_rank(), get_group_size()",
        "ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True,",
        "                             parameter_broadcast=True, device_num=rank_size)",
        "ms.set_seed(0)",
        SHARDED.rstrip(),
    ]


def test_c09_after_both_calls() -> None:
    source = HEAD + 'ms.set_context(mode=ms.PYNATIVE_MODE)\nms.set_device("Ascend")\n' + BODY
    head = "import os\n" + HEAD + COMM + 'ms.set_context(mode=ms.PYNATIVE_MODE)\nms.set_device("Ascend")\n'
    becomes(source, head + BLOCK + SHARDED_BODY)


PLACES = {
    "no context": (HEAD + BODY, "import os\n" + HEAD + COMM + BLOCK + SHARDED_BODY),
    "no context, main guard": (
        HEAD + 'if __name__ == "__main__":\n' + indent(BODY),
        "import os\n" + HEAD + COMM + 'if __name__ == "__main__":\n' + indent(BLOCK + SHARDED_BODY),
    ),
    "main()": (
        HEAD + "def main():\n    ms.set_context(mode=0)\n" + indent(BODY) + "main()\n",
        "import os\n"
        + HEAD
        + COMM
        + "def main():\n    ms.set_context(mode=0)\n"
        + indent(BLOCK + SHARDED_BODY)
        + "main()\n",
    ),
    "setup()": (
        HEAD + "def setup():\n    ms.set_context(mode=0)\nsetup()\n" + BODY,
        "import os\n" + HEAD + COMM + "def setup():\n    ms.set_context(mode=0)\nsetup()\n" + BLOCK + SHARDED_BODY,
    ),
    "with": (
        HEAD + "with open('log') as f:\n    ms.set_context(mode=0)\n" + indent(BODY),
        "import os\n"
        + HEAD
        + COMM
        + "with open('log') as f:\n    ms.set_context(mode=0)\n"
        + indent(BLOCK + SHARDED_BODY),
    ),
    "try": (
        HEAD + "try:\n    ms.set_context(mode=0)\nexcept ValueError:\n    ms.set_context(mode=1)\n" + BODY,
        "import os\n"
        + HEAD
        + COMM
        + "try:\n    ms.set_context(mode=0)\nexcept ValueError:\n    ms.set_context(mode=1)\n"
        + BLOCK
        + SHARDED_BODY,
    ),
    "one-line if": (
        HEAD + "if ds: ms.set_context(mode=0)\n" + BODY,
        "import os\n" + HEAD + COMM + "if ds: ms.set_context(mode=0)\n" + BLOCK + SHARDED_BODY,
    ),
    "semicolons": (
        HEAD + "ms.set_context(mode=0); epochs = 1\n" + BODY,
        "import os\n" + HEAD + COMM + "ms.set_context(mode=0); epochs = 1\n" + BLOCK + SHARDED_BODY,
    ),
    "several calls": (
        HEAD + "ms.set_context(mode=0)\nepochs = 1\nms.set_context(device_target='CPU')\n" + BODY,
        "import os\n"
        + HEAD
        + COMM
        + "ms.set_context(mode=0)\nepochs = 1\nms.set_context(device_target='CPU')\n"
        + BLOCK
        + SHARDED_BODY,
    ),
    "a setting later": (
        HEAD + "ms.set_context(mode=0)\n" + DATA + "ms.set_context(save_graphs=0)\n" + TRAINING,
        "import os\n"
        + HEAD
        + COMM
        + "ms.set_context(mode=0)\n"
        + BLOCK
        + SHARDED
        + "ms.set_context(save_graphs=0)\n"
        + TRAINING,
    ),
    "imports in the function": (
        "def main():\n" + indent(HEAD + "ms.set_context(mode=0)\n" + BODY) + "main()\n",
        "import os\n"
        + COMM
        + "def main():\n"
        + indent(HEAD + "ms.set_context(mode=0)\n" + BLOCK + SHARDED_BODY)
        + "main()\n",
    ),
    "tabs": (
        HEAD + "def main():\n\tms.set_context(mode=0)\n" + indent(BODY, "\t") + "main()\n",
        "import os\n"
        + HEAD
        + COMM
        + "def main():\n\tms.set_context(mode=0)\n"
        + indent(
            BLOCK.replace("\n    init", "\n\tinit")
            .replace("\n    rank", "\n\trank")
            .replace("\n    ms", "\n\tms")
            .replace("\n         ", "\n\t     ")
            + SHARDED_BODY,
            "\t",
        )
        + "main()\n",
    ),
    "fire": (
        "import fire\n" + HEAD + "def main():\n    ms.set_context(mode=0)\n" + indent(BODY) + "fire.Fire(main)\n",
        "import os\nimport fire\n"
        + HEAD
        + COMM
        + "def main():\n    ms.set_context(mode=0)\n"
        + indent(BLOCK + SHARDED_BODY)
        + "fire.Fire(main)\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), PLACES.values(), ids=PLACES)
def test_place(before: str, after: str) -> None:
    becomes(before, after)


def test_crlf() -> None:
    source = (HEAD + "ms.set_context(mode=0)\n" + BODY).replace("\n", "\r\n")
    assert run(source.encode()).output.decode() == (
        "import os\n" + HEAD + COMM + "ms.set_context(mode=0)\n" + BLOCK + SHARDED_BODY
    ).replace("\n", "\r\n")


@pytest.mark.parametrize(
    "head",
    [
        pytest.param('"""Docs."""\n', id="docstring"),
        pytest.param("#!/usr/bin/env python\n", id="shebang"),
        pytest.param(
            '#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n"""文档"""\nfrom __future__ import annotations\n',
            id="C40",
        ),
    ],
)
def test_head_of_the_file_stays_first(head: str) -> None:
    output = converted(head + HEAD + "ms.set_context(mode=0)\n" + BODY)
    assert output == head + "import os\n" + HEAD + COMM + "ms.set_context(mode=0)\n" + BLOCK + SHARDED_BODY


def test_no_final_newline() -> None:
    setup = "def main():\n" + indent(BODY) + 'if __name__ == "__main__":\n    ms.set_context(mode=0)\n    main()'
    output = converted(HEAD + setup)
    assert output.endswith("    ms.set_seed(0)\n    main()")


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        pytest.param("rank_id = 'a'\n", "dp_rank_id, rank_size = get_rank(), get_group_size()", id="rank_id"),
        pytest.param(
            "def f(rank_size): return rank_size\n",
            "rank_id, dp_rank_size = get_rank(), get_group_size()",
            id="parameter",
        ),
        pytest.param(
            "def get_rank(): return 1\n",
            "rank_id, rank_size = ms_get_rank(), get_group_size()",
            id="function",
        ),
        pytest.param("class init: pass\n", "    ms_init()", id="class"),
        pytest.param("dp_rank_id = rank_id = 1\n", "dp_rank_id_2, rank_size = get_rank(), get_group_size()", id="both"),
    ],
)
def test_names_of_the_program_are_left_alone(taken: str, expected: str) -> None:
    gone, new = changed_lines(HEAD + taken + "ms.set_context(mode=0)\n" + BODY)
    assert gone == [DATA.rstrip()]
    assert expected.strip() in [line.strip() for line in new]


def test_functions_can_be_imported_from_elsewhere() -> None:
    """Rank and size are known even where the main guard does not run: another file may import `create`."""
    source = HEAD + (
        "def create():\n    return ds.MnistDataset('/d').batch(8, drop_remainder=True)\n"
        "if __name__ == '__main__':\n    ms.set_context(mode=0)\n    train = create()\n" + indent(TRAINING)
    )
    output = converted(source)
    assert "rank_id = rank_size = None  # one card\nif __name__ == '__main__':\n" in output
    assert "    return ds.MnistDataset('/d', num_shards=rank_size, shard_id=rank_id)" in output


TRAINER = (
    HEAD + "class Trainer:\n    def __init__(self, device):\n        ms.set_context(mode=0, device_id=device)\n"
    "        self.net = nn.Dense(4, 2)\n"
    "    def train(self):\n" + indent(DATA + TRAINING.replace("net = nn.Dense(4, 2)", "net = self.net"), "        ")
)


def test_trainer_class() -> None:
    """Between the context and the Cell init, between construction and training rank and size."""
    output = converted(TRAINER + "t = Trainer(0)\nt.train()\n")
    constructor = output[output.index("def __init__") : output.index("def train")]
    assert constructor.index("set_context") < constructor.index("init()\n") < constructor.index("ms.set_seed(0)")
    assert constructor.index("ms.set_seed(0)") < constructor.index("self.net")
    assert "device_num=get_group_size())" in constructor
    assert output.endswith(
        "t = Trainer(0)\n"
        "rank_id = rank_size = None  # one card\n"
        'if int(os.getenv("RANK_SIZE", "1")) > 1:  # started by run_distribute.sh\n'
        "    rank_id, rank_size = get_rank(), get_group_size()\n"
        "t.train()\n"
    )


def test_trainer_class_in_one_statement_starts_up_before_it() -> None:
    lines = converted(TRAINER + "Trainer(0).train()\n").splitlines()
    start = lines.index("rank_id = rank_size = None  # one card")
    assert lines[start + 2 : start + 4] == [
        '    ms.set_context(device_id=int(os.getenv("DEVICE_ID", "0")))',
        "    init()",
    ]
    assert lines[-1] == "Trainer(0).train()"


INIT = (
    HEAD
    + "from mindspore.communication import init, get_rank, get_group_size\nimport argparse\n"
    + ("args = argparse.ArgumentParser().parse_args()\nms.set_context(mode=0)\n")
)


def test_init_under_a_condition() -> None:
    """The seed is set whatever branch is taken; rank and size have their one-card value before it."""
    output = converted(INIT + "if args.distribute:\n    init()\n" + BODY)
    assert (
        output
        == INIT
        + (
            "rank_id = rank_size = None  # one card\n"
            "ms.set_seed(0)\n"
            "if args.distribute:\n"
            "    init()\n"
            "    rank_id, rank_size = get_rank(), get_group_size()\n"
            "    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True,\n"
            "                                 parameter_broadcast=True, device_num=rank_size)\n"
        )
        + SHARDED_BODY
    )
    found_init = found(run(output), "MSD102")
    assert [status for status, _ in found_init] == [KEPT]


def test_init_that_may_fail() -> None:
    """`try: init()` with a handler: rank and size exist where it fails, as it does on one card."""
    output = converted(INIT + "try:\n    init()\nexcept RuntimeError:\n    pass\n" + BODY)
    assert (
        "rank_id = rank_size = None  # one card\nms.set_seed(0)\ntry:\n    init()\n    rank_id, rank_size = " in output
    )


def test_init_in_both_branches() -> None:
    branches = 'if args.target == "Ascend":\n    init("hccl")\nelse:\n    init("nccl")\n'
    output = converted(INIT + branches + BODY)
    behind = output[output.index('    init("nccl")\n') :]
    assert 'if int(os.getenv("RANK_SIZE", "1")) > 1:' in behind
    assert "    rank_id, rank_size = get_rank(), get_group_size()\n    ms.set_auto_parallel_context(" in behind
    assert output.count("init(") == 2


@pytest.mark.parametrize("call", ["setup()\n", "result = setup()\n", "with open('x'):\n    setup()\n"])
def test_init_in_a_function(call: str) -> None:
    output = converted(INIT + "def setup():\n    init()\n" + call + BODY)
    assert "    init()\n    ms.set_auto_parallel_context(" in output
    assert "device_num=get_group_size())\n    ms.set_seed(0)\n" in output
    assert "rank_id, rank_size = get_rank(), get_group_size()\n" + SHARDED in output.replace("    rank_id", "rank_id")


@pytest.mark.parametrize(
    ("before", "inside", "rank", "size"),
    [
        pytest.param(
            "rank = size = None\n",
            "    rank, size = get_rank(), get_group_size()\n",
            "rank",
            "size",
            id="None",
        ),
        pytest.param("r, n = 0, 1\n", "    r = get_rank()\n    n = get_group_size()\n", "r", "n", id="0 and 1"),
        pytest.param("", "    r, n = get_rank(), get_group_size()\nelse:\n    r, n = 0, 1\n", "r", "n", id="else"),
    ],
)
def test_variables_of_the_user_are_used(before: str, inside: str, rank: str, size: str) -> None:
    output = converted(INIT + before + "if args.distribute:\n    init()\n" + inside + BODY)
    assert f"num_shards={size}, shard_id={rank}" in output
    assert "rank_id" not in output
    assert "device_num=get_group_size())" in output  # their variable is not set yet where the context is


def test_variable_without_one_card_value_is_not_used() -> None:
    inside = "    rank, size = get_rank(), get_group_size()\n"
    output = converted(INIT + "if args.distribute:\n    init()\n" + inside + BODY)
    assert "num_shards=rank_size, shard_id=rank_id" in output
    assert "rank_id = rank_size = None  # one card\n" in output


def test_shadowed_variable_is_not_used() -> None:
    function = "def create(rank):\n    return ds.MnistDataset(rank).batch(8, drop_remainder=True)\n"
    source = (
        INIT + "init()\nrank, size = get_rank(), get_group_size()\n" + function + "train = create('/d')\n" + TRAINING
    )
    assert "train = create('/d', num_shards=size, shard_id=rank)" in converted(source)


def run_on_one_card(source: str, folder: Path, *, launched: bool = False) -> str:
    script = folder / "train.py"
    script.write_text(source)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=folder, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return "".join(line for line in done.stdout.splitlines(keepends=True) if line.startswith(">"))


E2E = """\
import numpy as np
import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn
"""
E2E_DATA = (
    "rows = (np.arange(64, dtype=np.float32).reshape(16, 4) / 64, np.ones((16, 2), np.float32))\n"
    'train = ds.NumpySlicesDataset(rows, ["x", "y"], shuffle=False).batch(8, drop_remainder=True)\n'
)
E2E_END = "print('>', net.weight.asnumpy().sum(), train.get_dataset_size())\n"


@pytest.mark.e2e
@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            E2E
            + 'ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU", device_id=0)\nms.set_seed(3)\n'
            + E2E_DATA
            + TRAINING
            + E2E_END,
            id="module",
        ),
        pytest.param(
            E2E + "class Trainer:\n    def __init__(self):\n        ms.set_seed(3)\n"
            '        ms.set_context(device_target="CPU")\n        self.net = nn.Dense(4, 2)\n'
            "    def train(self):\n"
            + indent(E2E_DATA + TRAINING.replace("nn.Dense(4, 2)", "self.net") + E2E_END, " " * 8)
            + 'if __name__ == "__main__":\n    t = Trainer()\n    t.train()\n',
            id="trainer class",
        ),
        pytest.param(
            E2E
            + "np.random.seed(5)\nnet = nn.Dense(4, 2, weight_init='ones')\nms.set_context(device_target='CPU')\n"
            + E2E_DATA.replace("np.ones((16, 2), np.float32)", "np.random.rand(16, 2).astype(np.float32)")
            + TRAINING.replace("net = nn.Dense(4, 2)\n", "")
            + E2E_END,
            id="moved context, NumPy's seed",
        ),
    ],
)
def test_one_card_as_before(source: str, tmp_path: Path) -> None:
    pytest.importorskip("mindspore")
    before = run_on_one_card(source, tmp_path)
    assert before.startswith(">")
    assert run_on_one_card(converted(source), tmp_path) == before
