"""Names that hide what is built: star imports, run-time choices, ** arguments, wrapper libraries, no
training."""

from __future__ import annotations

import pytest
from support import HEAD, TRAINING, found, refused, run, sharded

SHARDS = "num_shards=rank_size, shard_id=rank_id"
MODEL = TRAINING.replace("model.train(1, train)\n", "")


# -- MSD601 star imports -------------------------------------------------------------------------------------


def test_star_import_of_another_library() -> None:
    source = f'{HEAD}from math import *\ntrain = ds.MnistDataset("/d")\n{TRAINING}'
    assert len(sharded(source)) == 1


def test_c35_star_import() -> None:
    source = """\
from mindspore.dataset import *
from mindspore import *
train = MnistDataset("/d").batch(8)
net = nn.Dense(4, 2)
model = Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
model.train(1, train)
"""
    result = refused(source, "MSD601", 1, "mindspore.dataset")
    assert found(result, "MSD601") == [("refused", 1), ("refused", 2)]


# -- MSD602 names that may be a dataset class ----------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        pytest.param("Data = ds.MnistDataset\n", id="alias"),
        pytest.param("Data = getattr(ds, 'MnistDataset')\n", id="getattr of a literal"),
        pytest.param(
            "try:\n    from mindspore.dataset import MnistDataset as Data\nexcept ImportError:\n    Data = None\n",
            id="try",
        ),
    ],
)
def test_one_class(names: str) -> None:
    assert sharded(f"{HEAD}{names}train = Data('/d')\n{TRAINING}") == [f"train = Data('/d', {SHARDS})"]


@pytest.mark.parametrize(
    ("names", "line"),
    [
        pytest.param("import sys\nData = ds.MnistDataset if sys.argv else ds.Cifar10Dataset\n", 6, id="two classes"),
        pytest.param("import sys\nData = ds.MnistDataset if sys.argv else list\n", 6, id="class or function"),
        pytest.param("import sys\nData = getattr(ds, sys.argv[1])\n", 6, id="getattr"),
    ],
)
def test_run_time_choice(names: str, line: int) -> None:
    refused(f"{HEAD}{names}train = Data('/d')\n{TRAINING}", "MSD602", line, "name the class in the call")


def test_run_time_choice_in_the_call() -> None:
    refused(f"{HEAD}import sys\ntrain = getattr(ds, sys.argv[1])('/d')\n{TRAINING}", "MSD602", 5)


# -- MSD603 ** arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        pytest.param('options = {"shuffle": True}\n', id="literal"),
        pytest.param("options = dict(shuffle=True)\n", id="dict()"),
        pytest.param('options = {}\noptions["shuffle"] = True\n', id="filled later"),
        pytest.param('base = {"shuffle": True}\noptions = {**base, "num_samples": 4}\n', id="merged"),
    ],
)
def test_known_keywords(options: str) -> None:
    source = f'{HEAD}{options}train = ds.MnistDataset("/d", **options)\n{TRAINING}'
    assert sharded(source) == [f'train = ds.MnistDataset("/d", **options, {SHARDS})']


def test_keywords_of_all_callers() -> None:
    source = (
        HEAD
        + """\
def create(path, **options):
    return ds.MnistDataset(path, **options)
train = create("/a", shuffle=True)
test = create("/b", num_samples=3)
"""
        + TRAINING
        + "model.eval(test)\n"
    )
    assert sharded(source) == [
        "def create(path, num_shards=None, shard_id=None, **options):",
        "return ds.MnistDataset(path, **options, num_shards=num_shards, shard_id=shard_id)",
        f'train = create("/a", shuffle=True, {SHARDS})',
    ]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        pytest.param("import json\noptions = json.load(open('c.json'))\n", 6, id="read"),
        pytest.param('options = {"sampler": None}\n', 5, id="may carry a sampler"),
        pytest.param("options = {}\noptions[input()] = 1\n", 6, id="unknown key"),
        pytest.param("options = {}\noptions.update(load())\n", 6, id="updated"),
    ],
)
def test_unknown_keywords(options: str, line: int) -> None:
    refused(f'{HEAD}{options}train = ds.MnistDataset("/d", **options)\n{TRAINING}', "MSD603", line)


def test_star_arguments() -> None:
    refused(f'{HEAD}values = ["/d"]\ntrain = ds.MnistDataset(*values)\n{TRAINING}', "MSD603", 5)


# -- MSD605 wrapper libraries --------------------------------------------------------------------------------


def test_wrapper_for_other_things() -> None:
    source = f'{HEAD}from mindcv.models import create_model\ntrain = ds.MnistDataset("/d")\n{TRAINING}'
    assert found(run(source), "MSD605") == []


@pytest.mark.parametrize(
    ("program", "line"),
    [
        pytest.param(f"from mindcv.data import create_loader\ntrain = create_loader('/d')\n{TRAINING}", 5, id="loader"),
        pytest.param(
            "from mindnlp.engine import Trainer\ndata = ds.MnistDataset('/d')\n"
            "trainer = Trainer(model=build(), train_dataset=data)\ntrainer.run()\n",
            6,
            id="trainer",
        ),
    ],
)
def test_wrapper_trains(program: str, line: int) -> None:
    refused(HEAD + program, "MSD605", line)


# -- MSD607 nothing to train ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("print('no framework')\n", id="no MindSpore"),
        pytest.param(HEAD + "print(ms.__version__)\n", id="no training"),
        pytest.param(
            HEAD + 'ms.Model(nn.Dense(4, 2), nn.MSELoss()).eval(ds.MnistDataset("/d"))\n',
            id="evaluation only",
        ),
        pytest.param(HEAD + "def fit(model, data):\n    model.train(1, data)\n", id="a module that is imported"),
    ],
)
def test_nothing_to_train(source: str) -> None:
    result = run(source)
    assert not result.refused, result.findings
    assert found(result, "MSD607"), result.findings
    assert result.output == result.original
