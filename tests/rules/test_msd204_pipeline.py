"""Steps of a training pipeline that ranks must walk alike."""

from __future__ import annotations

import pytest
from support import HEAD, NOTED, TRAINING, found, refused, run, sharded

SHARDS = "num_shards=rank_size, shard_id=rank_id"


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(".map(lambda x: x, ['image']).batch(8, True).repeat(2)", id="map, batch, repeat"),
        pytest.param(".shuffle(100).batch(8, drop_remainder=True)", id="shuffle"),
        pytest.param(".project(['image']).rename(['image'], ['x'])", id="columns"),
    ],
)
def test_harmless_steps(steps: str) -> None:
    source = f'{HEAD}train = ds.MnistDataset("/d"){steps}\n{TRAINING}'
    assert len(sharded(source)) == 1
    assert found(run(source), "MSD204") == []


def test_steps_of_evaluation_data() -> None:
    source = (
        f'{HEAD}train = ds.MnistDataset("/d")\n'
        f'test = ds.MnistDataset("/t").filter(lambda x: x > 1)\n{TRAINING}'
        "model.eval(test)\n"
    )
    assert found(run(source), "MSD204") == []


@pytest.mark.parametrize(
    "join",
    [
        pytest.param("train = (a + b).batch(32)", id="C17 plus"),
        pytest.param("train = a.concat(b)", id="concat"),
        pytest.param("train = a\ntrain += b", id="augmented"),
    ],
)
def test_concat_shards_both_and_says_so(join: str) -> None:
    source = f'{HEAD}a = ds.MnistDataset("/a"); b = ds.MnistDataset("/b")\n{join}\n{TRAINING}'
    assert sharded(source) == [f'a = ds.MnistDataset("/a", {SHARDS}); b = ds.MnistDataset("/b", {SHARDS})']
    assert [status for status, _ in found(run(source), "MSD204")] == [NOTED]


@pytest.mark.parametrize(
    "join",
    [
        pytest.param("ds.zip((a, b))", id="function"),
        pytest.param("a.zip(b)", id="method"),
        pytest.param("ds.ZipDataset((a, b))", id="class"),
    ],
)
def test_c17_zip_of_unshuffled_sides(join: str) -> None:
    source = (
        f'{HEAD}a = ds.MnistDataset("/a", shuffle=False)\nb = ds.MnistDataset("/b", shuffle=False)\n'
        f"train = {join}\n{TRAINING}"
    )
    assert sharded(source) == [f'{n} = ds.MnistDataset("/{n}", shuffle=False, {SHARDS})' for n in "ab"]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        pytest.param('pairs = ds.zip((ds.MnistDataset("/x"), ds.MnistDataset("/y")))\ntrain = pairs', 4, id="C17 zip"),
        pytest.param(
            'from mindspore.dataset import zip as pair\ntrain = pair((ds.MnistDataset("/x"), ds.MnistDataset("/y")))',
            5,
            id="zip under another name",
        ),
        pytest.param('train = ds.MnistDataset("/d").filter(lambda x: x > 1)', 4, id="filter"),
        pytest.param(
            'train = ds.MnistDataset("/d").bucket_batch_by_length(["x"], [1], [2, 3])',
            4,
            id="bucket_batch_by_length",
        ),
        pytest.param(
            'def few(d):\n    return d.filter(lambda x: x > 1)\ntrain = few(ds.MnistDataset("/d"))',
            5,
            id="in a function",
        ),
    ],
)
def test_refused(data: str, line: int) -> None:
    refused(f"{HEAD}{data}\n{TRAINING}", "MSD204", line)
