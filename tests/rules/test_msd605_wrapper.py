"""Libraries that wrap MindSpore: what mindcv builds is followed; what is not known is refused."""

from __future__ import annotations

import pytest
from support import HEAD, KEPT, NOTED, TRAINING, changed_lines, converted, found, refused, run, sharded, unchanged

MINDCV = f"{HEAD}from mindcv.data import create_dataset, create_loader\n"
SHARDS = "num_shards=rank_size, shard_id=rank_id"
DISTRIBUTED = """\
from mindspore.communication import init, get_rank, get_group_size
init()
ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True, parameter_broadcast=True)
ms.set_seed(1)
"""


# -- no change -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        pytest.param('data = create_dataset("mnist", "/d")\nprint(data.get_dataset_size())\n', id="no training"),
        pytest.param("model = load()\nprint(model.eval(create_loader(create_dataset('mnist'), 8)))\n", id="evaluation"),
    ],
)
def test_programs_that_do_not_train(source: str) -> None:
    unchanged(MINDCV + source)


@pytest.mark.parametrize(
    "shards",
    [
        pytest.param("num_shards=get_group_size(), shard_id=get_rank()", id="keywords"),
        pytest.param('"train", True, None, get_group_size(), get_rank()', id="positional"),
    ],
)
def test_sharded_already(shards: str) -> None:
    source = f'{MINDCV}{DISTRIBUTED}train = create_loader(create_dataset("mnist", "/d", {shards}), 8)\n{TRAINING}'
    result = unchanged(source, code="MSD201", message="sharded already")
    assert found(result, "MSD606", KEPT)


# -- create_dataset and create_loader ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imports", "before", "after"),
    [
        pytest.param(
            "from mindcv.data import create_dataset, create_loader",
            'train = create_loader(create_dataset("mnist", "/d"), 8)',
            f'train = create_loader(create_dataset("mnist", "/d", {SHARDS}), 8)',
            id="from mindcv.data",
        ),
        pytest.param(
            "import mindcv",
            'train = mindcv.create_loader(dataset=mindcv.create_dataset(name="mnist"), batch_size=8)',
            f'train = mindcv.create_loader(dataset=mindcv.create_dataset(name="mnist", {SHARDS}), batch_size=8)',
            id="keywords of the package",
        ),
        pytest.param(
            "from mindcv.data.dataset_factory import create_dataset as cd",
            'train = cd("", "/d", "train", True, 100).batch(8)',
            f'train = cd("", "/d", "train", True, 100, {SHARDS}).batch(8)',
            id="five positional, own batch",
        ),
        pytest.param(
            "from mindcv.data import create_dataset",
            'train = create_dataset("mnist", "/d", "train", True, None, None, None)',
            'train = create_dataset("mnist", "/d", "train", True, None, rank_size, rank_id)',
            id="None by position",
        ),
        pytest.param(
            "from mindcv.data import create_loader",
            'train = create_loader(ds.ImageFolderDataset("/d"), 8)',
            f'train = create_loader(ds.ImageFolderDataset("/d", {SHARDS}), 8)',
            id="loader over a dataset of MindSpore's",
        ),
    ],
)
def test_training_data(imports: str, before: str, after: str) -> None:
    gone, new = changed_lines(f"{HEAD}{imports}\n{before}\n{TRAINING}")
    assert gone == [before]
    assert after in new


def test_evaluation_data_stays_whole() -> None:
    source = f"""{MINDCV}
train = create_loader(create_dataset("mnist", "/d", split="train"), 8)
test = create_loader(create_dataset("mnist", "/d", split="test"), 8)
{TRAINING}model.eval(test)
"""
    assert sharded(source) == [f'train = create_loader(create_dataset("mnist", "/d", split="train", {SHARDS}), 8)']


def test_a_function_for_both_roles() -> None:
    source = f"""{MINDCV}
def build(split):
    data = create_dataset("mnist", "/d", split=split)
    return create_loader(data, 8)
train = build("train")
{TRAINING}model.eval(build("test"))
"""
    assert sharded(source) == [
        "def build(split, num_shards=None, shard_id=None):",
        'data = create_dataset("mnist", "/d", split=split, num_shards=num_shards, shard_id=shard_id)',
        f'train = build("train", {SHARDS})',
    ]


@pytest.mark.parametrize(
    ("loader", "dropped"),
    [
        pytest.param("create_loader(data, 8)", False, id="not dropped by default"),
        pytest.param("create_loader(data, 8, True)", True, id="dropped, by position"),
        pytest.param("create_loader(data, batch_size=8, drop_remainder=True)", True, id="dropped, by keyword"),
    ],
)
def test_batches_of_a_loader_are_noted(loader: str, dropped: bool) -> None:
    result = run(f'{MINDCV}data = create_dataset("mnist", "/d")\ntrain = {loader}\n{TRAINING}')
    assert found(result, "MSD501") == [(NOTED, 6)]
    assert any("global batch is 8 x ranks" in finding.message for finding in result.findings)
    assert found(result, "MSD205") == ([] if dropped else [(NOTED, 6)])


def test_numbers_of_samples_count_per_shard() -> None:
    result = run(f'{MINDCV}train = create_dataset("mnist", "/d", "train", True, 100)\n{TRAINING}')
    assert found(result, "MSD205", NOTED) == [(NOTED, 5)]


# -- create_trainer, create_optimizer and networks -----------------------------------------------------------

TRAINER = """\
from mindcv.utils import create_trainer
from mindcv.optim import create_optimizer
net = nn.Dense(4, 2)
opt = create_optimizer(net.trainable_params(), opt="momentum", lr=0.1)
"""


@pytest.mark.parametrize(
    "trainer",
    [
        pytest.param('create_trainer(net, nn.MSELoss(), opt, None, "O0", None, "fixed")', id="plain"),
        pytest.param('create_trainer(net, nn.MSELoss(), opt, None, "O0", "fixed", clip_grad=False)', id="no clip"),
    ],
)
def test_a_trainer_is_a_model(trainer: str) -> None:
    source = (
        f'{MINDCV}{TRAINER}train = create_dataset("mnist", "/d")\nmodel = {trainer}\n'
        'model.train(1, train)\nmodel.eval(create_dataset("mnist", "/d", "test"))\n'
    )
    assert sharded(source) == [f'train = create_dataset("mnist", "/d", {SHARDS})']
    assert found(run(source), "MSD301") == [(KEPT, 11)]


def test_an_optimizer_gets_its_reducer() -> None:
    source = f"""{MINDCV}{TRAINER}
train = create_dataset("mnist", "/d")
grad_fn = ms.value_and_grad(lambda x, y: nn.MSELoss()(net(x), y), None, opt.parameters)
for x, y in train.create_tuple_iterator():
    loss, grads = grad_fn(x, y)
    opt(grads)
"""
    lines = [line.strip() for line in converted(source).splitlines()]
    built = lines.index(
        "grad_reducer = nn.DistributedGradReducer(opt.parameters) if rank_size is not None else nn.Identity()"
    )
    assert lines[built - 1].startswith("opt = create_optimizer(")
    assert lines[lines.index("opt(grads)") - 1] == "grads = grad_reducer(grads)"


def test_start_up_comes_before_what_it_builds() -> None:
    source = f'{MINDCV}import mindcv\nnet = mindcv.create_model("resnet18")\ntrain = create_dataset("mnist")\n'
    source += TRAINING.replace("net = nn.Dense(4, 2)\n", "")
    lines = converted(source).splitlines()
    assert lines.index("    init()") < lines.index('net = mindcv.create_model("resnet18")')


NETWORK = """\
import mindcv
net = mindcv.models.resnet18()
train = create_dataset("mnist", "/d")
model = ms.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9), metrics={"acc"})
"""


def test_its_networks_keep_statistics() -> None:
    assert found(run(f"{MINDCV}{NETWORK}model.train(1, train)\n"), "MSD504") == [(NOTED, 6)]


def test_early_stop_on_its_networks() -> None:
    source = f"""{MINDCV}{NETWORK}best = 0
for epoch in range(9):
    model.train(1, train)
    score = model.eval(create_dataset("mnist", "/d", "test"))["acc"]
    if score < best:
        break
"""
    lines = converted(source).splitlines()
    score = lines.index('    score = model.eval(create_dataset("mnist", "/d", "test"))["acc"]')
    assert lines[score + 1] == "    score = sum_over_ranks(score, mean=True)"


# -- refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "line", "message"),
    [
        pytest.param(
            f'train = create_dataset("mnist", "/d", download=True)\n{TRAINING}', 5, "download before", id="download"
        ),
        pytest.param(
            f'import json\nargs = json.load(open("c"))\ntrain = create_dataset("mnist", download=args["d"])\n{TRAINING}',
            7,
            "download before",
            id="download, perhaps",
        ),
        pytest.param(
            f'train = create_dataset("mnist")\n{TRAINING}model.eval(create_dataset("mnist", download=True))\n',
            9,
            "download before",
            id="download for the evaluation",
        ),
        pytest.param(
            f'{TRAINER}train = create_dataset("mnist")\n'
            'model = create_trainer(net, nn.MSELoss(), opt, None, "O0", None, "fixed", clip_grad=True)\n'
            "model.train(1, train)\n",
            10,
            "before it averages them",
            id="clip",
        ),
        pytest.param(
            f'{TRAINER}train = create_dataset("mnist")\n'
            'model = create_trainer(net, None, opt, None, "O0", None, "fixed", 1.0, False, False, 0.9, True)\n'
            "model.train(1, train)\n",
            10,
            "before it averages them",
            id="clip by position",
        ),
        pytest.param(
            f'from mindcv.utils import StateMonitor\ntrain = create_dataset("mnist")\n{TRAINING}'
            "model.train(1, train, callbacks=[StateMonitor(model)])\n",
            10,
            "rank_id",
            id="monitor that is not told its rank",
        ),
        pytest.param(
            f"import mindnlp\ntrain = mindnlp.load_dataset('imdb', split='train')\n{TRAINING}",
            6,
            "takes no shard parameters",
            id="mindnlp load_dataset",
        ),
        pytest.param(
            f"from mindnlp.dataset import load_dataset\ntrain, test = load_dataset('imdb', split=['train', 'test'])\n{TRAINING}",
            6,
            "takes no shard parameters",
            id="mindnlp load_dataset of several parts",
        ),
        pytest.param(
            "from mindformers import Trainer\ntrainer = Trainer(args='c.yaml', task='text_generation')\ntrainer.train()\n",
            6,
            "use_parallel",
            id="mindformers",
        ),
        pytest.param(
            f"from mindyolo.data import create_loader as load\ntrain = load(rows(), None, [], [], 8)\n{TRAINING}",
            6,
            "another seed on each rank",
            id="mindyolo",
        ),
        pytest.param(
            "from mindnlp.engine import Trainer\ntrainer = Trainer(model=build(), train_dataset=1)\ntrainer.train()\n",
            6,
            "mindnlp.engine.Trainer",
            id="mindnlp Trainer",
        ),
    ],
)
def test_refused(program: str, line: int, message: str) -> None:
    refused(MINDCV + program, "MSD605", line, message)


def test_a_monitor_that_is_told_its_rank() -> None:
    source = f"""{MINDCV}{DISTRIBUTED}from mindcv.utils import StateMonitor
train = create_dataset("mnist", "/d", num_shards=get_group_size(), shard_id=get_rank())
{TRAINING}model.train(1, train, callbacks=[StateMonitor(model, rank_id=get_rank(), device_num=get_group_size())])
"""
    assert found(run(source), "MSD605") == []


def test_a_split_behind_create_dataset() -> None:
    refused(f'{MINDCV}train, test = create_dataset("mnist").split([8, 2])\n{TRAINING}', "MSD206", 5)


def test_unknown_keywords() -> None:
    refused(f'{MINDCV}import json\ntrain = create_dataset("mnist", **json.load(open("c")))\n{TRAINING}', "MSD603", 6)
