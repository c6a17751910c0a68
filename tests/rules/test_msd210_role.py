"""A training whose dataset is not known is refused, never left on all rows silently."""

from __future__ import annotations

import pytest
from support import CHANGED, HEAD, KEPT, NOTED, TRAINING, found, refused, run, sharded, unchanged

MODEL = TRAINING.replace("model.train(1, train)\n", "")
CELL = """\
net = nn.Dense(4, 2)
cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
"""


def test_no_training_at_all() -> None:
    unchanged(HEAD + "for i in range(3):\n    print(registry[i])\n", code="MSD607")


def test_loops_around_and_inside_a_fed_loop_need_no_dataset() -> None:
    source = (
        HEAD
        + 'train = ds.MnistDataset("/d")\n'
        + CELL
        + "for epoch in range(3):\n    for x, y in train:\n        for again in range(2):\n"
        "            cell(x, y)\n"
    )
    assert len(sharded(source)) == 1
    assert found(run(source), "MSD210") == []


def test_lost_evaluation_is_noted() -> None:
    source = HEAD + 'train = ds.MnistDataset("/d")\n' + TRAINING + "model.eval(load('/t'))\n"
    assert found(run(source), "MSD210") == [(NOTED, 8)]


@pytest.mark.parametrize(
    ("program", "line", "message"),
    [
        pytest.param("train = registry['x']\n" + TRAINING, 7, "registry", id="model.train"),
        pytest.param(
            "from src.data import create\ntrain = create('/d')\n" + TRAINING,
            8,
            "src.data.create",
            id="missing file",
        ),
        pytest.param("args = (1, 2)\n" + MODEL + "model.train(*args)\n", 7, "* or **", id="hidden in *"),
        pytest.param(
            "import sys\ntrain = registry['x'] if sys.argv else ds.MnistDataset('/d')\n" + TRAINING,
            8,
            "registry",
            id="one way of two",
        ),
        pytest.param(
            "class Data(ds.GeneratorDataset):\n    pass\ntrain = Data([1], ['x'])\n" + TRAINING,
            9,
            "class Data",
            id="subclass",
        ),
        pytest.param("sets = []\n" + MODEL + "model.train(1, sets[0])\n", 7, "put in here", id="empty list"),
        pytest.param(
            "data = {'a': ds.MnistDataset('/d')}\n" + MODEL + "model.train(1, data['b'])\n",
            7,
            "no entry 'b'",
            id="other key",
        ),
        pytest.param(
            CELL + "for e in range(3):\n    for x, y in registry['x']:\n        cell(x, y)\n",
            7,
            "the loop",
            id="inner loop",
        ),
        pytest.param(
            "import numpy as np\n" + CELL + "for x in np.ones((4, 2, 4)):\n    cell(x, x)\n",
            7,
            "no MindSpore dataset",
            id="arrays",
        ),
        pytest.param(CELL + "for i in range(9):\n    cell(i, i)\n", 6, "no MindSpore dataset", id="numbers"),
        pytest.param(CELL + "cell(1, 2)\n", 6, "no MindSpore dataset", id="a step alone"),
        pytest.param(
            "import fire\ndef main(model, data):\n    model.train(1, data)\nfire.Fire(main)\n",
            6,
            "main",
            id="may be a Model",
        ),
        pytest.param(
            'train = ds.MnistDataset("/d")  # ms-distify: eval\n' + TRAINING, 7, "nothing is dealt out", id="kept whole"
        ),
    ],
)
def test_refused(program: str, line: int, message: str) -> None:
    refused(HEAD + program, "MSD210", line, message)


def test_pragmas_settle_it() -> None:
    source = (
        HEAD
        + """\
a = ds.MnistDataset("/a")  # ms-distify: train
b = ds.MnistDataset("/b")  # ms-distify: eval
train = registry["x"]
"""
        + TRAINING
    )
    assert found(run(source), "MSD201") == [(CHANGED, 4), (KEPT, 5)]
    assert sharded(source) == ['a = ds.MnistDataset("/a", num_shards=rank_size, shard_id=rank_id)  # ms-distify: train']


def test_one_pragma_is_not_enough_where_another_role_is_open() -> None:
    source = (
        HEAD
        + 'a = ds.MnistDataset("/a")  # ms-distify: train\nb = ds.MnistDataset("/b")\ntrain = registry["x"]\n'
        + TRAINING
    )
    refused(source, "MSD210", 9)


def test_accepted_by_pragma() -> None:
    source = HEAD + 'train = registry["x"]\n' + MODEL + "model.train(1, train)  # ms-distify: ignore[MSD210]\n"
    assert found(run(source), "MSD210") == [(NOTED, 7)]


def test_pragma_over_flow() -> None:
    """What the user says about a constructor counts, whatever it flows to."""
    source = HEAD + 'train = ds.MnistDataset("/d")\nseen = ds.MnistDataset("/o")  # ms-distify: train\n' + TRAINING
    assert len(sharded(source)) == 2
