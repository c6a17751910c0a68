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
    ("body", "line", "message"),
    [
        pytest.param(
            "net = nn.Dense(4, 2)\nmode = 0\nms.set_context(mode=mode)\n", 4, "Dense", id="needs a later name"
        ),
        pytest.param("net = nn.Dense(4, 2)\nif net:\n    ms.set_context(mode=0)\n", 4, "Dense", id="in a branch"),
        pytest.param(
            "def setup():\n    ms.set_context(mode=0)\nnet = nn.Dense(4, 2)\nsetup()\n",
            6,
            "Dense",
            id="in a function",
        ),
        pytest.param(
            "w = ms.Tensor(1)\nnet = nn.Dense(4, 2)\nx = ms.set_context(mode=0)\n",
            4,
            "Tensor",
            id="in an assignment",
        ),
        pytest.param(
            "ms.set_context(mode=0)\nnet = nn.Dense(4, 2)\nms.set_device('CPU')\n",
            5,
            "Dense",
            id="the device chosen too late",
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
