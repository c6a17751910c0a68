"""MSD105: nothing is built before the context."""

from __future__ import annotations

import pytest
from support import CHANGED, HEAD, KEPT, NOTED, TRAINING, changed_lines, converted, found, refused, run

DATA = 'train = ds.MnistDataset("/d").batch(8, drop_remainder=True)\n'
REST = "model = ms.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))\nmodel.train(1, train)\n"


@pytest.mark.parametrize(
    "above",
    [
        pytest.param("epochs = 3\n", id="a constant"),
        pytest.param("from mindspore import ops\ncast = ops.Cast()\n", id="a primitive that is only made"),
        pytest.param("class Net(nn.Cell):\n    pass\n", id="a class"),
        pytest.param("def build():\n    return nn.Dense(4, 2)\n", id="a function not called yet"),
        pytest.param("import numpy as np\nx = np.ones(3)\n", id="an array"),
    ],
)
def test_nothing_is_moved(above: str) -> None:
    result = run(HEAD + above + "ms.set_context(mode=0)\n" + DATA + TRAINING)
    assert not result.refused, result.findings
    assert found(result, "MSD105") == []


def test_settings_below_the_first_dataset_stay() -> None:
    result = run(HEAD + 'ms.set_device("CPU")\n' + DATA + "ms.set_context(save_graphs=0)\n" + TRAINING)
    assert not result.refused, result.findings
    assert found(result, "MSD105") == []


def test_c03() -> None:
    source = (
        HEAD + "net = nn.SequentialCell(nn.Dense(8, 8), nn.ReLU())\nms.set_context(mode=ms.GRAPH_MODE)\n" + DATA + REST
    )
    output = converted(source)
    order = [
        "ms.set_context(",
        "init()\n",
        "set_auto_parallel_context(",
        "ms.set_seed(0)",
        "net = nn.Sequ",
        "MnistDataset",
    ]
    assert [output.index(part) for part in order] == sorted(output.index(part) for part in order)
    assert output.count("ms.set_context(") == 1
    assert found(run(source), "MSD105") == [(CHANGED, 5)]


def test_several_calls_move_in_order() -> None:
    source = HEAD + 'net = nn.Dense(4, 2)\nms.set_context(mode=0)\nms.set_device("CPU", 1)\n' + DATA + REST
    output = converted(source)
    order = ["ms.set_context(", "ms.set_device(", "init()\n", "net = nn.Dense"]
    assert [output.index(part) for part in order] == sorted(output.index(part) for part in order)
    assert 'ms.set_device("CPU", int(os.getenv("DEVICE_ID", "1")))' in output


@pytest.mark.parametrize(
    ("body", "device"),
    [
        pytest.param("net = nn.Dense(4, 2)\nmode = 0\nms.set_context(mode=mode)\n", "", id="needs a later name"),
        pytest.param("net = nn.Dense(4, 2)\nif net:\n    ms.set_context(mode=0)\n", "", id="in a branch"),
        pytest.param(
            "def setup():\n    ms.set_context(mode=0, device_target='CPU')\nnet = nn.Dense(4, 2)\nsetup()\n",
            "ms.set_context(device_target='CPU')",
            id="in a function",
        ),
        pytest.param(
            "import argparse\ndef setup(where, number):\n    ms.set_context(device_target=where, device_id=number)\n"
            "args = argparse.ArgumentParser().parse_args()\nnet = nn.Dense(4, 2)\nsetup(args.where, 3)\n",
            'ms.set_context(device_target=args.where, device_id=int(os.getenv("DEVICE_ID", "0")))',
            id="through parameters",
        ),
        pytest.param(
            "def setup(args):\n    target = args.where\n    ms.set_device(target, args.number)\n"
            "import argparse\noptions = argparse.ArgumentParser().parse_args()\nnet = nn.Dense(4, 2)\nsetup(options)\n",
            'ms.set_device(device_target=options.where, device_id=int(os.getenv("DEVICE_ID", "0")))',
            id="set_device",
        ),
        pytest.param("w = ms.Tensor(1)\nnet = nn.Dense(4, 2)\nx = ms.set_context(mode=0)\n", "", id="an assignment"),
    ],
)
def test_starts_up_before_what_is_built_and_chooses_the_device_there(body: str, device: str) -> None:
    """Else the program would start its net or dataset before init; its own call chooses the same device once more."""
    output = converted(HEAD + body + DATA + REST)
    first = next(text for text in ("w = ms.Tensor", "net = nn.Dense") if text in output)
    assert output.index("    init()\n") < output.index(first)
    lines = output.splitlines()
    before = lines[lines.index("    init()") - 1].strip()
    assert before == (device or 'if int(os.getenv("RANK_SIZE", "1")) > 1:  # started by run_distribute.sh')


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        pytest.param(
            "ms.set_context(mode=0)\nnet = nn.Dense(4, 2)\nms.set_device('CPU')\n",
            5,
            "Dense",
            id="set_device without id",
        ),
        pytest.param(
            "def setup(where):\n    ms.set_context(device_target=where)\nnet = nn.Dense(4, 2)\nsetup(input())\n",
            6,
            "Dense",
            id="a target that is not known before",
        ),
        pytest.param(
            "def setup():\n    ms.set_context(device_target='CPU')\n    ms.set_context(device_target='GPU')\n"
            "net = nn.Dense(4, 2)\nsetup()\n",
            7,
            "Dense",
            id="two targets",
        ),
        pytest.param(
            "def setup():\n    ms.set_context(device_target='Ascend', max_device_memory='30GB')\n"
            "net = nn.Dense(4, 2)\nsetup()\n",
            6,
            "Dense",
            id="settings that init would come before",
        ),
    ],
)
def test_built_too_early(body: str, line: int, message: str) -> None:
    refused(HEAD + body + DATA + REST, "MSD105", line, message)


INIT = HEAD + "from mindspore.communication import init, get_rank, get_group_size\n"


def test_built_before_the_users_init() -> None:
    refused(INIT + DATA + "init()\n" + TRAINING, "MSD105", 5, "MnistDataset is built before init()")


def test_device_chosen_below_the_users_init() -> None:
    source = INIT + "init()\nms.set_context(device_target='Ascend', device_id=0)\n" + DATA + TRAINING
    refused(source, "MSD105", 6, "the device is chosen below init()")


def test_mode_below_the_users_init() -> None:
    gone, _ = changed_lines(INIT + "init()\nms.set_context(mode=0)\n" + DATA + TRAINING)
    assert gone == [DATA.rstrip()]


def test_finished_program_is_only_noted() -> None:
    source = (
        INIT
        + (
            "init()\nms.set_context(device_id=get_rank())\n"
            'ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, parameter_broadcast=True)\n'
            "ms.set_seed(1)\n"
            'train = ds.MnistDataset("/d", num_shards=get_group_size(), shard_id=get_rank()).batch(8, drop_remainder=True)\n'
        )
        + TRAINING
    )
    result = run(source)
    assert not result.changed
    assert found(result, "MSD105") == [(NOTED, 6)]
    assert (KEPT, 1) in found(result, "MSD606")
