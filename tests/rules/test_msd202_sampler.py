"""Samplers of training data are never dropped and never stand beside num_shards."""

from __future__ import annotations

import pytest
from support import HEAD, TRAINING, found, refused, run, sharded

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


def test_c10_sampler() -> None:
    source = (
        f"{HEAD}s = ds.RandomSampler(num_samples=500)\n"
        'train = ds.ImageFolderDataset("/d/train", sampler=s).batch(32)\n'
        f"{TRAINING}"
    )
    refused(source, "MSD202", 5, "RandomSampler, train.py:4")


@pytest.mark.parametrize(
    ("data", "line"),
    [
        pytest.param('train = ds.MnistDataset("/d", "train", None, 4, None, ds.PKSampler(2))', 4, id="positional"),
        pytest.param('train = ds.MnistDataset("/d", sampler=ds.WeightedRandomSampler([0.1, 0.9]))', 4, id="weighted"),
        pytest.param('train = ds.MnistDataset("/d")\ntrain.use_sampler(ds.SequentialSampler())', 5, id="use_sampler"),
        pytest.param(
            "def create(p, s=None):\n    return ds.MnistDataset(p, sampler=s)\n"
            'train = create("/d", ds.RandomSampler())',
            5,
            id="through a parameter",
        ),
        pytest.param(
            "class Own(ds.Sampler):\n    def __iter__(self):\n        yield 1\n"
            'train = ds.MnistDataset("/d", sampler=Own())',
            7,
            id="own class",
        ),
    ],
)
def test_refused(data: str, line: int) -> None:
    refused(f"{HEAD}{data}\n{TRAINING}", "MSD202", line, "DistributedSampler")


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
