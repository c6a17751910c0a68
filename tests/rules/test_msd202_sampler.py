"""Samplers of training data are never dropped and never stand beside num_shards: their rows are dealt."""

from __future__ import annotations

import pytest
from support import CHANGED, HEAD, NOTED, TRAINING, changed_lines, converted, found, refused, run, sharded

SHARDS = "num_shards=rank_size, shard_id=rank_id"


@pytest.mark.parametrize(
    "argument",
    [
        pytest.param("sampler=None", id="None"),
        pytest.param("sampler=chosen", id="a name that is None"),
    ],
)
def test_no_sampler_after_all(argument: str) -> None:
    source = f'{HEAD}chosen = None\ntrain = ds.MnistDataset("/d", {argument})\n{TRAINING}'
    assert sharded(source) == [f'train = ds.MnistDataset("/d", {argument}, {SHARDS})']


def test_sampler_of_evaluation_data() -> None:
    source = (
        f'{HEAD}train = ds.MnistDataset("/d")\n'
        f'test = ds.MnistDataset("/t", sampler=ds.SequentialSampler())\n{TRAINING}'
        "model.eval(test)\n"
    )
    assert sharded(source) == [f'train = ds.MnistDataset("/d", {SHARDS})']
    assert found(run(source), "MSD202") == []


def dealt(constructor: str) -> str:
    return f"train = shard_sampled({constructor}, rank_size, rank_id)"


def test_c10_sampler() -> None:
    source = (
        f"{HEAD}s = ds.RandomSampler(num_samples=500)\n"
        'train = ds.ImageFolderDataset("/d/train", sampler=s).batch(32)\n'
        f"{TRAINING}"
    )
    gone, new = changed_lines(source)
    assert gone == ['train = ds.ImageFolderDataset("/d/train", sampler=s).batch(32)']
    assert dealt('ds.ImageFolderDataset("/d/train", sampler=s)') + ".batch(32)" in new
    start = new.index("def shard_sampled(dataset, num_shards=None, shard_id=None):")
    assert new[start + 2 : start + 5] == [
        "    if num_shards is not None:",
        "        dataset.add_sampler(ds.DistributedSampler(num_shards, shard_id, shuffle=False))",
        "    return dataset",
    ]
    assert found(run(source), "MSD202") == [(CHANGED, 5)]


@pytest.mark.parametrize(
    "constructor",
    [
        pytest.param('ds.MnistDataset("/d", sampler=ds.WeightedRandomSampler([0.1, 0.9], 2))', id="weighted"),
        pytest.param('ds.MnistDataset("/d", "train", None, 4, None, ds.SequentialSampler())', id="positional"),
        pytest.param('ds.MnistDataset("/d", sampler=[0, 2, 4])', id="list"),
        pytest.param('ds.MnistDataset("/d", sampler=ds.SubsetRandomSampler(range(4)))', id="subset"),
        pytest.param('ds.MindDataset("/d", sampler=ds.SequentialSampler(0, 9))', id="MindDataset in order"),
    ],
)
def test_kinds_of_samplers(constructor: str) -> None:
    _, new = changed_lines(f"{HEAD}train = {constructor}\n{TRAINING}")
    assert dealt(constructor) in new


OWN = """\
class Own(ds.Sampler):
    def __init__(self, count{more}):
        self.count = count
    def __iter__(self):
        yield from range(self.count)
"""


def test_own_class() -> None:
    source = HEAD + OWN.format(more="") + 'train = ds.MnistDataset("/d", sampler=Own(9)).batch(9)\n' + TRAINING
    assert dealt('ds.MnistDataset("/d", sampler=Own(9))') + ".batch(9)" in changed_lines(source)[1]


def test_use_sampler_gets_another_on_top() -> None:
    source = f'{HEAD}train = ds.MnistDataset("/d")\ntrain.use_sampler(ds.RandomSampler(True, 9))\n{TRAINING}'
    gone, new = changed_lines(source)
    assert gone == []
    assert new[-2:] == [
        "if rank_size is not None:",
        "    train.add_sampler(ds.DistributedSampler(rank_size, rank_id, shuffle=False))",
    ]


def test_use_sampler_in_a_function_for_both_roles() -> None:
    source = (
        HEAD
        + """\
def create(path, order):
    data = ds.MnistDataset(path)
    data.use_sampler(order)
    return data
train = create("/d", ds.RandomSampler())
test = create("/t", ds.SequentialSampler())
"""
        + TRAINING
        + "model.eval(test)\n"
    )
    gone, new = changed_lines(source)
    assert gone == ["def create(path, order):", 'train = create("/d", ds.RandomSampler())']
    assert "def create(path, order, num_shards=None, shard_id=None):" in new
    assert "    if num_shards is not None:" in new
    assert 'train = create("/d", ds.RandomSampler(), num_shards=rank_size, shard_id=rank_id)' in new


def test_through_a_parameter() -> None:
    source = (
        f"{HEAD}def create(p, s=None):\n    return ds.MnistDataset(p, sampler=s)\n"
        f'train = create("/d", ds.RandomSampler())\n{TRAINING}'
    )
    assert "    return shard_sampled(ds.MnistDataset(p, sampler=s), rank_size, rank_id)" in changed_lines(source)[1]


def test_the_helper_takes_a_free_name_and_is_put_in_once() -> None:
    source = (
        f'{HEAD}shard_sampled = 1\na = ds.MnistDataset("/a", sampler=[1])\n'
        f'b = ds.MnistDataset("/b", sampler=[2])\ntrain = a + b\n{TRAINING}'
    )
    output = converted(source)
    assert output.count("def shard_sampled_2(") == 1
    assert output.count("= shard_sampled_2(") == 2


@pytest.mark.parametrize(
    ("data", "line", "reason"),
    [
        pytest.param('train = ds.MnistDataset("/d", "train", None, 4, None, ds.PKSampler(2))', 4, "tear", id="PK"),
        pytest.param(
            'train = ds.MindDataset("/d", sampler=ds.RandomSampler())', 4, "same rows in every epoch", id="MindDataset"
        ),
        pytest.param(
            OWN.format(more=", batch_size") + 'train = ds.MnistDataset("/d", sampler=Own(9, 3))',
            9,
            "batch_size",
            id="own class with a batch size",
        ),
        pytest.param(
            OWN.format(more=", k") + 'size = 3\ntrain = ds.MnistDataset("/d", sampler=Own(9, size)).batch(size)',
            10,
            "told the batch size (size)",
            id="own class that gets what batch() gets",
        ),
        pytest.param(
            'train = ds.GeneratorDataset([1], ["x"], batch_sampler=[[0]])', 4, "whole batches", id="batch_sampler"
        ),
        pytest.param(
            'train = ds.MnistDataset("/d")\nif train.use_sampler(ds.RandomSampler()): pass',
            5,
            "a statement of its own",
            id="use_sampler in an expression",
        ),
    ],
)
def test_refused(data: str, line: int, reason: str) -> None:
    refused(f"{HEAD}{data}\n{TRAINING}", "MSD202", line, reason)


def test_a_sampler_from_elsewhere_is_noted() -> None:
    source = f'{HEAD}from lab import pick\ntrain = ds.MnistDataset("/d", sampler=pick())\n{TRAINING}'
    assert [status for status, _ in found(run(source), "MSD202")] == [CHANGED, NOTED]


def test_parameter_that_is_filled_for_evaluation_only() -> None:
    source = (
        HEAD
        + """\
def create(p, s=None):
    return ds.MnistDataset(p, sampler=s)
train = create("/d")
test = create("/t", ds.SequentialSampler())
"""
        + TRAINING
        + "model.eval(test)\n"
    )
    assert sharded(source)[-1] == f'train = create("/d", {SHARDS})'


def test_a_sampler_that_deals_to_one_rank_deals_nothing() -> None:
    one = 'ds.MnistDataset("/d", sampler=ds.DistributedSampler(num_shards=1, shard_id=0))'
    assert dealt(one) in changed_lines(f"{HEAD}train = {one}\n{TRAINING}")[1]


def test_a_sampler_that_nobody_tells_rank_and_size() -> None:
    source = (
        HEAD
        + """\
def create(path, training, size=None, rank=None):
    order = None
    if size is not None and training:
        order = ds.DistributedSampler(size, rank)
    return ds.MnistDataset(path, sampler=order)
train = create("/d", True)
"""
        + TRAINING
    )
    # The branch is never taken, so there is no sampler, and shards do not stand beside one.
    shards = "num_shards=rank_size, shard_id=rank_id"
    assert f"    return ds.MnistDataset(path, sampler=order, {shards})" in changed_lines(source)[1]


def test_a_sampler_used_under_a_condition_is_refused() -> None:
    data = 'import sys\ntrain = ds.MnistDataset("/d")\nif sys.argv[1:]:\n    train.use_sampler(ds.RandomSampler())\n'
    refused(HEAD + data + TRAINING, "MSD202", 7, "only under a condition")
    waiting = (
        "def create(path, n=1, r=0):\n    data = ds.MnistDataset(path)\n    if n > 1:\n"
        "        data.use_sampler(ds.DistributedSampler(n, r))\n    return data\ntrain = create('/d')\n"
    )
    refused(HEAD + waiting + TRAINING, "MSD202", 7, "only under a condition")
