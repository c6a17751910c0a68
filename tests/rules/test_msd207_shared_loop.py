import pytest
from support import HEAD, converted, refused, sharded

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
