"""Rank and size reach every training dataset, or the program is refused where the way ends."""

from __future__ import annotations

import pytest
from support import HEAD, TRAINING, converted, refused, sharded

EVAL = "model.eval(test)\n"


def test_the_name_is_the_functions_own() -> None:
    source = (
        HEAD
        + """\
def create(path):
    num_shards = 3
    return ds.MnistDataset(path).batch(num_shards)
train = create("/a")
test = create("/b")
"""
    )
    refused(source + TRAINING + EVAL, "MSD211", 6, "uses the name num_shards")


def test_lambda_for_both_roles() -> None:
    source = 'create = lambda p: ds.MnistDataset(p)\ntrain = create("/a")\ntest = create("/b")\n'
    refused(HEAD + source + TRAINING + EVAL, "MSD211", 4)


def test_built_before_the_start_up() -> None:
    source = (
        HEAD
        + 'train = ds.MnistDataset("/d")\ndef main():\n    ms.set_context(mode=0, device_target="CPU")\n'
        + "".join(f"    {line}\n" for line in TRAINING.splitlines())
        + "main()\n"
    )
    output = converted(source)
    assert '    ms.set_context(device_target="CPU")\n    init()\n' in output
    assert output.index("init()\n") < output.index("train = ds.Mnist")


def test_parameters_behind_star_arguments() -> None:
    source = (
        HEAD
        + """\
import sys
def create(path, num_shards=None, shard_id=None):
    return ds.MnistDataset(path, num_shards=num_shards, shard_id=shard_id)
train = create(*sys.argv)
test = create("/b")
"""
    )
    refused(source + TRAINING + EVAL, "MSD201", 6)


@pytest.mark.parametrize(
    ("signature", "after"),
    [
        pytest.param("p", "p, num_shards=None, shard_id=None", id="plain"),
        pytest.param("p, *rest", "p, *rest, num_shards=None, shard_id=None", id="star"),
        pytest.param("p, **rest", "p, num_shards=None, shard_id=None, **rest", id="double star"),
        pytest.param("p, *, q=1", "p, *, q=1, num_shards=None, shard_id=None", id="keyword only"),
        pytest.param("p: str = '/d'", "p: str = '/d', num_shards=None, shard_id=None", id="annotated"),
    ],
)
def test_signatures(signature: str, after: str) -> None:
    source = (
        f"{HEAD}def create({signature}):\n    return ds.MnistDataset(p)\ntrain = create('/a')\ntest = create('/b')\n"
    )
    assert sharded(source + TRAINING + EVAL)[0] == f"def create({after}):"
