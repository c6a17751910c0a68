"""Parts of a split: the constructor stays whole, the part that trains is dealt."""

from __future__ import annotations

import pytest
from support import CHANGED, HEAD, TRAINING, changed_lines, found, refused, run

SAMPLER = "use_sampler(ds.DistributedSampler(rank_size, rank_id, shuffle=False))"


@pytest.mark.parametrize(
    ("data", "part"),
    [
        pytest.param('train, val = ds.MnistDataset("/d").split([0.9, 0.1])', "train", id="tuple"),
        pytest.param('val, train = ds.MnistDataset("/d").split([0.1, 0.9])', "train", id="second part"),
        pytest.param(
            'd = ds.MnistDataset("/d")\ntrain, val = d.split([9, 1], randomize=False)', "train", id="in order"
        ),
        pytest.param('train = ds.MnistDataset("/d").split([0.9, 0.1])[0]', "train", id="one part"),
        pytest.param('p = ds.MnistDataset("/d").split([0.9, 0.1])\ntrain = p[0].batch(2, True)', "p[0]", id="list"),
        pytest.param(
            'a, b = ds.MnistDataset("/d").split([9, 1])\ntrain = a.map(str, "x").batch(2, True)', "a", id="map"
        ),
    ],
)
def test_the_part_that_trains_is_dealt(data: str, part: str) -> None:
    gone, new = changed_lines(f"{HEAD}{data}\n{TRAINING}")
    assert gone == []
    assert new[new.index("if rank_size is not None:") + 1] == f"    {part}.{SAMPLER}"
    assert "num_shards" not in " ".join(new)


def test_in_a_function_that_gives_both_parts() -> None:
    source = (
        HEAD
        + """\
def create(path):
    train, test = ds.MnistDataset(path).split([0.9, 0.1])
    return train.batch(8, True), test.batch(8)
train, test = create("/d")
"""
        + TRAINING
        + "model.eval(test)\n"
    )
    new = changed_lines(source)[1]
    assert f"        train.{SAMPLER}" in new
    assert not any("test.use_sampler" in line for line in new)
    result = run(source)
    assert found(result, "MSD206") == [(CHANGED, 5)]
    assert found(result, "MSD503") == [("kept", 11)], "the other part is whole"


def test_attributes_and_two_parts_that_train() -> None:
    source = (
        HEAD
        + """\
class Data:
    def __init__(self, path):
        self.first, self.second = ds.MnistDataset(path).split([0.5, 0.5])
data = Data("/d")
net = nn.Dense(4, 2)
model = ms.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
model.train(1, data.first)
model.train(1, data.second)
"""
    )
    new = changed_lines(source)[1]
    assert f"            self.first.{SAMPLER}" in new
    assert f"            self.second.{SAMPLER}" in new


@pytest.mark.parametrize(
    ("data", "line", "reason"),
    [
        pytest.param(
            'train, val = ds.MnistDataset("/d").batch(8).split([0.9, 0.1])', 4, "behind batch()", id="behind batch"
        ),
        pytest.param('train, val = ds.TextFileDataset("/d").split([9, 1])', 4, "take no sampler", id="text"),
        pytest.param('train, val = ds.MindDataset("/d").split([9, 1])', 4, "no longer shuffle", id="MindDataset"),
        pytest.param('train, *rest = ds.MnistDataset("/d").split([1, 1, 1])', 4, "have no name", id="star"),
        pytest.param(
            'train = ds.MnistDataset("/d").split([9, 1])[0].batch(8, True)', 4, "have no name", id="in an expression"
        ),
    ],
)
def test_refused(data: str, line: int, reason: str) -> None:
    refused(f"{HEAD}{data}\n{TRAINING}", "MSD206", line, reason)


@pytest.mark.parametrize(("part", "dealt"), [("train", True), ("val", False)])
def test_a_split_is_dealt_where_the_part_that_trains_has_the_sampler(part: str, dealt: bool) -> None:
    program = (
        HEAD.replace("import mindspore as ms", "import os\nimport mindspore as ms", 1)
        + "ms.set_context(mode=0)\ntrain, val = ds.MnistDataset('/d').split([0.8, 0.2])\n"
        + "ranks, rank = int(os.getenv('RANK_SIZE', '1')), int(os.getenv('RANK_ID', '0'))\n"
        + f"{part}.use_sampler(ds.DistributedSampler(ranks, rank, shuffle=True))\ntrain = train.batch(8, True)\n"
        + TRAINING
    )
    result = run(program)
    assert not result.refused, result.findings
    assert "num_shards" not in result.output.decode()
    assert found(result, "MSD206") == ([] if dealt else [(CHANGED, 6)])


def test_a_sampler_in_front_of_a_split_stays_as_it_is() -> None:
    """Dealt twice, the rows would be too few, and the part that evaluates would not be whole."""
    gone, new = changed_lines(
        HEAD + 'train, val = ds.MnistDataset("/d", sampler=ds.SequentialSampler()).split([9, 1], False)\n' + TRAINING
    )
    assert gone == []
    assert not any("shard_sampled" in line for line in new)
    assert f"    train.{SAMPLER}" in new
