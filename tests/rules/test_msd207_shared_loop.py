import pytest
from support import HEAD, TRAINING, converted, found, refused, run, sharded

START = (
    HEAD
    + """\
ms.set_context(mode=0)
net = nn.Dense(1, 1)
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
"""
)
RUN = """\
def run(data, training):
    for x, y in data.create_tuple_iterator():
        if training:
            step(x, y)
        else:
            net(x)
"""


@pytest.mark.parametrize(
    ("program", "sharded"),
    [
        pytest.param(
            "train = ds.MnistDataset('/d')\nfor i, (x, y) in enumerate(train.create_tuple_iterator()):\n"
            "    if i % 2:\n        step(x, y)\n",
            1,
            id="one-dataset",
        ),
        pytest.param(
            "def run(data):\n    for x, y in data.create_tuple_iterator():\n        step(x, y)\n"
            "run(ds.MnistDataset('/a'))\nrun(ds.MnistDataset('/b'))\n",
            2,
            id="two-that-train",
        ),
        pytest.param(
            RUN + "run(ds.MnistDataset('/a'), True)\nrun(ds.MnistDataset('/b'), False)  # ms-distify: eval\n",
            1,
            id="settled",
        ),
    ],
)
def test_converted(program: str, sharded: int) -> None:
    assert converted(START + program).count("num_shards=rank_size") == sharded


@pytest.mark.parametrize(
    ("program", "line"),
    [
        pytest.param(
            RUN + "run(ds.MnistDataset('/a'), True)\nrun(ds.MnistDataset('/b'), False)\n", 8, id="function-for-both"
        ),
        pytest.param(
            "loaders = {'train': ds.MnistDataset('/a'), 'val': ds.MnistDataset('/b')}\n"
            "for phase in ('train', 'val'):\n    for x, y in loaders[phase].create_tuple_iterator():\n"
            "        if phase == 'train':\n            step(x, y)\n",
            9,
            id="phases",
        ),
    ],
)
def test_which_of_several_datasets_trains_cannot_be_told(program: str, line: int) -> None:
    refused(START + program, "MSD207", line, "ms-distify: eval")


LOOP = "    for x, y in ROWS.create_tuple_iterator():\n        if TEST:\n            step(x, y)\n        else:\n            net(x)\n"
MADE = "def make(part):\n    return ds.MnistDataset('/d', part).batch(8)\n"


def loop(rows: str, test: str, indent: str = "    ") -> str:
    return LOOP.replace("ROWS", rows).replace("TEST", test).replace("    for", indent + "for", 1)


@pytest.mark.parametrize(
    ("program", "line"),
    [
        pytest.param(
            MADE + "data = {}\nfor part in ('train', 'test'):\n    data[part] = make(part)\n"
            "for part in ('train', 'test'):\n" + loop("data[part]", "part == 'train'"),
            13,
            id="dictionary-filled-in-a-loop",
        ),
        pytest.param(
            "data = [ds.MnistDataset(f'/d{i}').batch(8) for i in range(2)]\nfor i in range(2):\n"
            + loop("data[i]", "i == 0"),
            9,
            id="list-comprehension",
        ),
        pytest.param(
            MADE + "for part in ('train', 'test'):\n    rows = make(part)\n" + loop("rows", "part == 'train'"),
            11,
            id="built-and-read-in-one-loop",
        ),
        pytest.param(
            "def run(part):\n    rows = ds.MnistDataset('/d', part)\n"
            + loop("rows", "part == 'train'")
            + "run('train')\nrun('test')\n",
            9,
            id="function-called-twice",
        ),
        pytest.param(
            "def run(part):\n    rows = ds.MnistDataset('/d', part)\n"
            + loop("rows", "part == 'train'")
            + "for part in ('train', 'test'):\n    run(part)\n",
            9,
            id="function-called-in-a-loop",
        ),
        pytest.param(
            "class Run:\n    def __init__(self, part):\n        self.part = part\n"
            "        self.rows = ds.MnistDataset('/d', part)\n    def go(self):\n"
            "        for x, y in self.rows.create_tuple_iterator():\n            if self.part == 'train':\n"
            "                step(x, y)\nRun('train').go()\nRun('test').go()\n",
            12,
            id="two-objects",
        ),
    ],
)
def test_one_constructor_that_builds_what_trains_and_what_does_not(program: str, line: int) -> None:
    refused(START + program, "MSD207", line, "by a constructor of its own")


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(
            "for k in range(3):\n    rows = ds.MnistDataset(f'/d{k}')\n    for epoch in range(5):\n"
            "        for x, y in rows.create_tuple_iterator():\n            if epoch > 2:\n                step(x, y)\n",
            id="built-anew-and-warmed-up",
        ),
        pytest.param(
            "for k in range(3):\n    rows = ds.MnistDataset(f'/d{k}')\n    for i, (x, y) in enumerate(rows.create_tuple_iterator()):\n"
            "        if i % 2:\n            step(x, y)\n",
            id="every-second-step",
        ),
        pytest.param(
            MADE + "data = [make(part) for part in ('train', 'extra')]\nfor i in range(2):\n"
            "    for x, y in data[i].create_tuple_iterator():\n        if i == 0:\n            step(x, y)\n"
            "        else:\n            step(x, 0 * y)\n",
            id="both-branches-train",
        ),
        pytest.param(
            "rows = ds.MnistDataset('/d')\ndef run(training):\n" + loop("rows", "training") + "run(True)\nrun(False)\n",
            id="one-dataset-for-both",
        ),
    ],
)
def test_one_constructor_whose_datasets_all_train(program: str) -> None:
    assert converted(START + program).count("num_shards=rank_size") == 1


TAKEN = (
    HEAD
    + """\
train = ds.MnistDataset("/d")
val = ds.MnistDataset("/v")PRAGMA
net = nn.Dense(4, 2)
cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params()))
rows, others = train.create_tuple_iterator(), val.create_tuple_iterator()
for i in range(100):
    x, y = rows.__next__()
    cell(x, y)
    v, w = next(others)
    USE
"""
)


def test_rows_taken_beside_a_step_that_they_do_not_reach() -> None:
    evaluated = TAKEN.replace("USE", "print(net(v))")
    refused(evaluated.replace("PRAGMA", ""), "MSD207", 12, "whether they train cannot be told")
    assert len(sharded(evaluated.replace("PRAGMA", "  # ms-distify: eval"))) == 1
    assert len(sharded(TAKEN.replace("USE", "cell(v, w)").replace("PRAGMA", ""))) == 2


def test_rows_that_reach_the_step_through_an_operation() -> None:
    joined = TAKEN.replace("USE", "cell(ops.concat((v, x)), w)").replace("PRAGMA", "")
    assert len(sharded(joined.replace("from mindspore import nn", "from mindspore import nn, ops"))) == 2


LOADERS = (
    HEAD
    + """\
class Loader:
    def __init__(self, data):
        self.rows = data
train = Loader(ds.MnistDataset("/d"))PRAGMA
test = Loader(ds.MnistDataset("/t"))OTHER
net = nn.Dense(4, 2)
model = ms.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
model.train(1, train.rows)
model.eval(test.rows)
"""
)


def test_two_objects_of_one_class_that_hold_a_dataset_each() -> None:
    """The flow does not tell the objects apart: both datasets reach training and evaluation."""
    refused(LOADERS.replace("PRAGMA", "").replace("OTHER", ""), "MSD207", 8, "which of them trains cannot be told")
    settled = LOADERS.replace("PRAGMA", "  # ms-distify: train").replace("OTHER", "  # ms-distify: eval")
    assert len(sharded(settled)) == 1


def test_parts_that_train_and_evaluate_by_turns() -> None:
    source = HEAD + (
        "a, b = ds.MnistDataset('/d').split([0.5, 0.5])\nnet = nn.Dense(4, 2)\n"
        "model = ms.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))\nfor k in range(2):\n"
        "    train, test = (a, b) if k == 0 else (b, a)\n    model.train(1, train)\n    model.eval(test)\n"
    )
    refused(source, "MSD207", 4, "which of them trains cannot be told")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(
            "import sys\nif sys.argv[1:]:\n    d = ds.MnistDataset('/a')\nelse:\n    d = ds.Cifar10Dataset('/b')\n",
            id="one of two",
        ),
        pytest.param("d = ds.MnistDataset('/a') + ds.MnistDataset('/b')\n", id="joined"),
        pytest.param("d = ds.MnistDataset('/a')\n", id="one"),
    ],
)
def test_evaluation_of_what_trains_stays_a_note(data: str) -> None:
    result = run(HEAD + data + TRAINING.replace("train)", "d)") + "model.eval(d)\n")
    assert found(result, "MSD207") == []
    assert not result.refused
