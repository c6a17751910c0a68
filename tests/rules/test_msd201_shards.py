"""Whose dataset is sharded, and how rank and size reach it."""

from __future__ import annotations

import pytest
from support import (
    CHANGED,
    HEAD,
    KEPT,
    NOTED,
    TRAINING,
    changed_lines,
    converted,
    found,
    refused,
    run,
    sharded,
    unchanged,
)

MODEL = TRAINING.replace("model.train(1, train)\n", "")
CELL = """\
net = nn.Dense(4, 2)
loss = nn.WithLossCell(net, nn.MSELoss())
cell = nn.TrainOneStepCell(loss, nn.Momentum(net.trainable_params(), 0.1, 0.9))
"""
SHARDS = "num_shards=rank_size, shard_id=rank_id"
THREADED = "num_shards=num_shards, shard_id=shard_id"
PARAMETERS = "num_shards=None, shard_id=None"
# What makes a program that needs no change: every part of a data-parallel start.
DISTRIBUTED = """\
import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init
init()
ms.set_auto_parallel_context(
    parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True, parameter_broadcast=True
)
ms.set_seed(1)
"""


@pytest.mark.parametrize(
    "data",
    [
        pytest.param('train = ds.MnistDataset("/d", num_shards=get_group_size(), shard_id=get_rank())\n', id="keyword"),
        pytest.param(
            'train = ds.MnistDataset("/d", "train", None, 4, True, None, get_group_size(), get_rank())\n',
            id="positional",
        ),
        pytest.param(
            """\
def create(path, size=None, rank=None):
    return ds.MnistDataset(path, num_shards=size, shard_id=rank)
train = create("/d", size=get_group_size(), rank=get_rank())
""",
            id="through parameters that default to None",
        ),
        pytest.param(
            """\
size, rank = get_group_size(), get_rank()
if size == 1:
    train = ds.MnistDataset("/d")
else:
    train = ds.MnistDataset("/d", num_shards=size, shard_id=rank)
""",
            id="second constructor for one card",
        ),
        pytest.param(
            'train = ds.MnistDataset("/d", sampler=ds.DistributedSampler(get_group_size(), get_rank()))\n',
            id="distributed sampler",
        ),
        pytest.param(
            """\
class Rows(ds.Sampler):
    def __init__(self, size, rank):
        super().__init__()
train = ds.MnistDataset("/d", sampler=Rows(get_group_size(), get_rank()))
""",
            id="own sampler that is told the rank",
        ),
        pytest.param(
            """\
options = {"num_shards": get_group_size(), "shard_id": get_rank()}
train = ds.MnistDataset("/d", **options)
""",
            id="in a dictionary",
        ),
    ],
)
def test_already_sharded(data: str) -> None:
    result = unchanged(DISTRIBUTED + data + TRAINING, code="MSD201", message="sharded already")
    assert found(result, "MSD201", CHANGED) == []


def test_not_a_training_program() -> None:
    unchanged(HEAD + 'test = ds.MnistDataset("/d", "test")\nfor row in test:\n    print(row)\n', code="MSD607")


@pytest.mark.parametrize(
    ("data", "line"),
    [
        pytest.param('train = ds.MnistDataset("/d")', f'train = ds.MnistDataset("/d", {SHARDS})', id="module level"),
        pytest.param(
            'train = ds.MnistDataset("/d", "train", None, 4, True)',
            f'train = ds.MnistDataset("/d", "train", None, 4, True, {SHARDS})',
            id="C12 positional shuffle",
        ),
        pytest.param(
            'train = ds.TFRecordDataset(["/d/a.tfrecord", "/d/b.tfrecord"], shuffle=True).batch(16)',
            'train = ds.TFRecordDataset(["/d/a.tfrecord", "/d/b.tfrecord"], shuffle=True, '
            f"{SHARDS}, shard_equal_rows=True).batch(16)",
            id="C13 TFRecord",
        ),
        pytest.param(
            'train = ds.TFRecordDataset("/d/a", shard_equal_rows=False)',
            f'train = ds.TFRecordDataset("/d/a", shard_equal_rows=True, {SHARDS})',
            id="equal rows refused by the author",
        ),
        pytest.param(
            'train = ds.MnistDataset("/d").batch(100)',
            f'train = ds.MnistDataset("/d", {SHARDS}).batch(100)',
            id="C20 batch",
        ),
        pytest.param(
            'train = ds.MnistDataset("/d", num_samples=1000, num_parallel_workers=32).batch(10)',
            f'train = ds.MnistDataset("/d", num_samples=1000, num_parallel_workers=32, {SHARDS}).batch(10)',
            id="C21 amounts",
        ),
        pytest.param(
            'train = ds.MnistDataset("/d", num_shards=1, shard_id=0)',
            'train = ds.MnistDataset("/d", num_shards=rank_size, shard_id=rank_id)',
            id="one card by keyword",
        ),
        pytest.param(
            'train = ds.MnistDataset("/d", "train", None, 4, True, None, 1, 0)',
            'train = ds.MnistDataset("/d", "train", None, 4, True, None, rank_size, rank_id)',
            id="one card by position",
        ),
        pytest.param(
            'train = ds.MnistDataset("/d", num_shards=None)',
            'train = ds.MnistDataset("/d", num_shards=rank_size, shard_id=rank_id)',
            id="half of the pair",
        ),
        pytest.param(
            'test_ds = train = ds.MnistDataset("/val", usage="test")',
            f'test_ds = train = ds.MnistDataset("/val", usage="test", {SHARDS})',
            id="named and placed like a test set",
        ),
    ],
)
def test_constructor(data: str, line: str) -> None:
    gone, came = changed_lines(f"{HEAD}{data}\n{TRAINING}")
    assert gone == [data]
    assert line in came


def test_c39_comments_and_layout() -> None:
    out = converted(
        HEAD
        + """\
train = ds.ImageFolderDataset(
    "/data/train",   # 训练集
    shuffle=True,    # keep
)  # end
"""
        + TRAINING
    )
    assert (
        """\
train = ds.ImageFolderDataset(
    "/data/train",   # 训练集
    shuffle=True,    # keep
    num_shards=rank_size,
    shard_id=rank_id,
)  # end
"""
        in out
    )


def test_c15_random_access_source() -> None:
    lines = sharded(
        HEAD
        + """\
class Rows:
    def __len__(self): return 100
    def __getitem__(self, i): return (i,)
train = ds.GeneratorDataset(Rows(), ["x"], shuffle=True).batch(4)
"""
        + TRAINING
    )
    assert lines == [f'train = ds.GeneratorDataset(Rows(), ["x"], shuffle=True, {SHARDS}).batch(4)']


def test_c19_role_by_use_not_by_name() -> None:
    source = (
        HEAD + 'd1 = ds.Cifar10Dataset("/c", usage="train").batch(32)\n'
        'd2 = ds.Cifar10Dataset("/c", usage="test").batch(32)\n' + MODEL + "model.train(1, d1)\nprint(model.eval(d2))\n"
    )
    assert sharded(source) == [f'd1 = ds.Cifar10Dataset("/c", usage="train", {SHARDS}).batch(32)']
    result = run(source)
    assert found(result, "MSD201") == [(CHANGED, 4), (KEPT, 5)]
    assert any("flows to model.eval at train.py:9" in f.message for f in result.findings)


def test_c36_alias_and_partial() -> None:
    source = (
        HEAD
        + """\
import mindspore.dataset as D
from functools import partial
Mk = D.Cifar10Dataset
load = partial(D.MnistDataset, shuffle=True)
a, b = Mk("/c"), load("/m")
"""
        + MODEL
        + "model.train(1, a)\nmodel.train(1, b)\n"
    )
    assert sharded(source) == [f'a, b = Mk("/c", {SHARDS}), load("/m", {SHARDS})']


@pytest.mark.parametrize(
    ("imports", "constructor"),
    [
        pytest.param("import mindspore.dataset as data", "data.MnistDataset", id="import as"),
        pytest.param("from mindspore import dataset", "dataset.MnistDataset", id="from package"),
        pytest.param("from mindspore.dataset import MnistDataset", "MnistDataset", id="bare name"),
        pytest.param("from mindspore.dataset import MnistDataset as M", "M", id="bare alias"),
        pytest.param("import mindspore", "mindspore.dataset.MnistDataset", id="package alone"),
        pytest.param("import mindspore.dataset", "mindspore.dataset.MnistDataset", id="dotted import"),
        pytest.param("import mindspore.dataset.engine.datasets as de", "de.MnistDataset", id="inner module"),
        pytest.param(
            "try:\n    import mindspore.dataset as data\nexcept ImportError:\n    data = None",
            "data.MnistDataset",
            id="in a try",
        ),
    ],
)
def test_import_forms(imports: str, constructor: str) -> None:
    source = f'import mindspore as ms\nfrom mindspore import nn\n{imports}\ntrain = {constructor}("/d")\n{TRAINING}'
    assert sharded(source) == [f'train = {constructor}("/d", {SHARDS})']


def test_import_in_function() -> None:
    source = """\
import mindspore as ms
from mindspore import nn
def data():
    from mindspore import dataset
    return dataset.MnistDataset("/d")
train = data()
"""
    assert sharded(source + TRAINING) == [f'return dataset.MnistDataset("/d", {SHARDS})']


# -- where the dataset is built ------------------------------------------------------------------------------


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        pytest.param(
            'if __name__ == "__main__":\n' + indented('train = ds.MnistDataset("/d")\n' + TRAINING),
            [f'train = ds.MnistDataset("/d", {SHARDS})'],
            id="in the guard",
        ),
        pytest.param(
            "def main():\n" + indented('train = ds.MnistDataset("/d")\n' + TRAINING) + "main()\n",
            [f'train = ds.MnistDataset("/d", {SHARDS})'],
            id="in the function that trains",
        ),
        pytest.param(
            "def create(path):\n    return ds.MnistDataset(path)\n"
            "def main():\n    ms.set_context(mode=0)\n" + indented('train = create("/d")\n' + TRAINING) + "main()\n",
            [
                f"def create(path, {PARAMETERS}):",
                f"return ds.MnistDataset(path, {THREADED})",
                f'train = create("/d", {SHARDS})',
            ],
            id="in another function, names local to main",
        ),
        pytest.param(
            """\
def create(path, batch):
    d = ds.MnistDataset(path)
    d = d.map(lambda x: x, ["image"])
    d = d.batch(batch)
    return d
train = create("/a", 32)
test = create("/b", 32)
"""
            + TRAINING
            + "model.eval(test)\n",
            [
                f"def create(path, batch, {PARAMETERS}):",
                f"d = ds.MnistDataset(path, {THREADED})",
                f'train = create("/a", 32, {SHARDS})',
            ],
            id="one function for both, one constructor",
        ),
        pytest.param(
            """\
def create(path, training=True):
    if training:
        d = ds.MnistDataset(path, "train")
    else:
        d = ds.MnistDataset(path, "test")
    return d
train = create("/d", True)
test = create("/d", training=False)
"""
            + TRAINING
            + "model.eval(test)\n",
            [
                f"def create(path, training=True, {PARAMETERS}):",
                f'd = ds.MnistDataset(path, "train", {THREADED})',
                f'train = create("/d", True, {SHARDS})',
            ],
            id="one constructor per branch",
        ),
        pytest.param(
            """\
def create(path, training):
    if not training:
        return ds.MnistDataset(path, "test")
    return ds.MnistDataset(path, "train")
train = create("/d", True)
test = create("/d", False)
"""
            + TRAINING
            + "model.eval(test)\n",
            [
                f"def create(path, training, {PARAMETERS}):",
                f'return ds.MnistDataset(path, "train", {THREADED})',
                f'train = create("/d", True, {SHARDS})',
            ],
            id="early return",
        ),
        pytest.param(
            """\
def create(path, usage):
    return ds.MnistDataset(path, usage=usage)
train = create("/d", "train")
test = create("/d", usage="test")
"""
            + TRAINING
            + "model.eval(test)\n",
            [
                f"def create(path, usage, {PARAMETERS}):",
                f"return ds.MnistDataset(path, usage=usage, {THREADED})",
                f'train = create("/d", "train", {SHARDS})',
            ],
            id="usage passed on",
        ),
        pytest.param(
            """\
def a(p):
    return ds.MnistDataset(p)
def b(p, n):
    return a(p).batch(n)
def c(p, n=3):
    x = b(p, n)
    return x
train = c("/a")
test = c("/b")
"""
            + TRAINING
            + "model.eval(test)\n",
            [
                f"def a(p, {PARAMETERS}):",
                f"return ds.MnistDataset(p, {THREADED})",
                f"def b(p, n, {PARAMETERS}):",
                f"return a(p, {THREADED}).batch(n)",
                f"def c(p, n=3, {PARAMETERS}):",
                f"x = b(p, n, {THREADED})",
                f'train = c("/a", {SHARDS})',
            ],
            id="three levels",
        ),
        pytest.param(
            """\
def one(p):
    return ds.MnistDataset(p)
def both(p):
    return one(p + "/a"), one(p + "/b")
train, test = both("/d")
"""
            + TRAINING
            + "model.eval(test)\n",
            [
                f"def one(p, {PARAMETERS}):",
                f"return ds.MnistDataset(p, {THREADED})",
                f"def both(p, {PARAMETERS}):",
                f'return one(p + "/a", {THREADED}), one(p + "/b")',
                f'train, test = both("/d", {SHARDS})',
            ],
            id="factory of a pair",
        ),
        pytest.param(
            """\
data = {"train": ds.MnistDataset("/a"), "test": ds.MnistDataset("/b")}
train = data["train"]
"""
            + TRAINING
            + 'model.eval(data["test"])\n',
            [f'data = {{"train": ds.MnistDataset("/a", {SHARDS}), "test": ds.MnistDataset("/b")}}'],
            id="dictionary",
        ),
        pytest.param(
            """\
data = {}
data["train"] = ds.MnistDataset("/a")
data["test"] = ds.MnistDataset("/b")
train = data["train"]
"""
            + TRAINING
            + 'model.eval(data["test"])\n',
            [f'data["train"] = ds.MnistDataset("/a", {SHARDS})'],
            id="dictionary filled later",
        ),
        pytest.param(
            'sets = []\nsets.append(ds.MnistDataset("/a"))\n' + MODEL + "for s in sets:\n    model.train(1, s)\n",
            [f'sets.append(ds.MnistDataset("/a", {SHARDS}))'],
            id="list filled later",
        ),
        pytest.param(
            'big = True\ntrain = ds.MnistDataset("/d") if big else ds.FashionMnistDataset("/d")\n' + TRAINING,
            [f'train = ds.MnistDataset("/d", {SHARDS}) if big else ds.FashionMnistDataset("/d", {SHARDS})'],
            id="a flag at the head is there to be switched",
        ),
        pytest.param(
            "create = lambda p: ds.MnistDataset(p)\ntrain = create('/d')\n" + TRAINING,
            [f"create = lambda p: ds.MnistDataset(p, {SHARDS})"],
            id="lambda",
        ),
        pytest.param(
            "def main():\n    n = 3\n    def create(p):\n        return ds.MnistDataset(p).batch(n)\n"
            + indented('train = create("/a")\ntest = create("/b")\n' + TRAINING + "model.eval(test)\n")
            + "main()\n",
            [
                f"def create(p, {PARAMETERS}):",
                f"return ds.MnistDataset(p, {THREADED}).batch(n)",
                f'train = create("/a", {SHARDS})',
            ],
            id="closure",
        ),
        pytest.param(
            """\
from functools import partial
def create(p, training=False):
    if training:
        return ds.MnistDataset(p, "train")
    return ds.MnistDataset(p, "test")
for_training = partial(create, training=True)
train = for_training("/d")
test = create("/d")
"""
            + TRAINING
            + "model.eval(test)\n",
            [
                f"def create(p, training=False, {PARAMETERS}):",
                f'return ds.MnistDataset(p, "train", {THREADED})',
                f'train = for_training("/d", {SHARDS})',
            ],
            id="a partial decides the branch",
        ),
        pytest.param(
            """\
def create(p, **options):
    return ds.MnistDataset(p, **options)
train = create("/d", shuffle=True)
"""
            + TRAINING,
            [f"return ds.MnistDataset(p, **options, {SHARDS})"],
            id="keywords forwarded",
        ),
    ],
)
def test_places(program: str, lines: list[str]) -> None:
    assert sharded(HEAD + program) == lines


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param('create("/a")', 'create("/a", group=rank_size or 1, rank=rank_id or 0)', id="not passed"),
        pytest.param('create("/a", 1, 0)', 'create("/a", rank_size or 1, rank_id or 0)', id="passed by position"),
        pytest.param(
            'create("/a", rank=0)', 'create("/a", rank=rank_id or 0, group=rank_size or 1)', id="passed by half"
        ),
    ],
)
def test_unfilled_parameters(before: str, after: str) -> None:
    gone, came = changed_lines(
        HEAD
        + f"""\
def create(p, group=1, rank=0):
    return ds.MnistDataset(p, num_shards=group, shard_id=rank)
train = {before}
test = create("/b")
"""
        + TRAINING
        + "model.eval(test)\n"
    )
    assert gone == [f"train = {before}"]
    assert f"train = {after}" in came


def test_class_based_trainer() -> None:
    source = (
        HEAD
        + """\
class Trainer:
    def __init__(self, path):
        self.net = nn.Dense(4, 2)
        self.train_data = self.load(path, "train")
        self.test_data = self.load(path, "test")
        opt = nn.Momentum(self.net.trainable_params(), 0.1, 0.9)
        self.model = ms.Model(self.net, nn.MSELoss(), opt)
    def load(self, path, usage):
        return ds.MnistDataset(path, usage).batch(4)
    def fit(self):
        self.model.train(3, self.train_data)
    def test(self):
        return self.model.eval(self.test_data)
trainer = Trainer("/d")
trainer.fit()
trainer.test()
"""
    )
    assert sharded(source) == [
        f'self.train_data = self.load(path, "train", {SHARDS})',
        f"def load(self, path, usage, {PARAMETERS}):",
        f"return ds.MnistDataset(path, usage, {THREADED}).batch(4)",
    ]


def test_overriding_method_is_what_self_calls() -> None:
    source = (
        HEAD
        + """\
class Base:
    def load(self):
        return ds.MnistDataset("/a")
    def run(self):
        train = self.load()
"""
        + indented(indented(TRAINING))
        + """\
class Other(Base):
    def load(self):
        return ds.MnistDataset("/b")
Other().run()
"""
    )
    assert sharded(source) == [
        f'return ds.MnistDataset("/a", {SHARDS})',
        f'return ds.MnistDataset("/b", {SHARDS})',
    ]


def test_what_a_call_can_enter_too_takes_the_new_arguments() -> None:
    """Otherwise the one-card run of the other branch would fail with an unexpected keyword."""
    source = (
        HEAD
        + """\
import sys
def small(path):
    return ds.MnistDataset(path)
def large(path):
    return ds.ImageFolderDataset(path)
create = small if len(sys.argv) > 1 else large
train = create("/a")
test = create("/b")
"""
        + TRAINING
        + "model.eval(test)\n"
    )
    lines = sharded(source)
    assert f"def small(path, {PARAMETERS}):" in lines
    assert f"def large(path, {PARAMETERS}):" in lines
    assert f'train = create("/a", {SHARDS})' in lines
    assert len(lines) == 5


def test_shadowed_alias() -> None:
    source = (
        HEAD
        + """\
class Store:
    def MnistDataset(self, path):
        return path
def fetch(ds):
    return ds.MnistDataset("/x")
fetch(Store())
train = ds.MnistDataset("/d")
"""
        + TRAINING
    )
    assert sharded(source) == [f'train = ds.MnistDataset("/d", {SHARDS})']


# -- what trains ---------------------------------------------------------------------------------------------

LOOPS = {
    "tuple iterator": "for x, y in train.create_tuple_iterator():\n    cell(x, y)\n",
    "dict iterator": 'for row in train.create_dict_iterator():\n    cell(row["x"], row["y"])\n',
    "plain for": "for x, y in train:\n    cell(x, y)\n",
    "enumerate and tqdm": (
        "from tqdm import tqdm\n"
        "for i, (x, y) in enumerate(tqdm(train.create_tuple_iterator(), total=3)):\n    cell(x, y)\n"
    ),
    "epochs around": "for epoch in range(3):\n    for x, y in train.create_tuple_iterator():\n        cell(x, y)\n",
    "iterator made first": "rows = train.create_tuple_iterator()\nfor x, y in rows:\n    cell(x, y)\n",
    "next in while": "rows = iter(train)\nwhile True:\n    x, y = next(rows)\n    cell(x, y)\n",
    "next in a function": (
        "rows = train.create_tuple_iterator()\ndef get():\n    return next(rows)\n"
        "for step in range(9):\n    x, y = get()\n    cell(x, y)\n"
    ),
    "epoch function": (
        "def epoch(data):\n    for x, y in data.create_tuple_iterator():\n        cell(x, y)\n"
        "for e in range(3):\n    epoch(train)\n"
    ),
    "step function": "def step(x, y):\n    return cell(x, y)\nfor x, y in train:\n    step(x, y)\n",
    "compiled step": "def step(x, y):\n    return cell(x, y)\nfast = ms.jit(step)\n"
    "for x, y in train:\n    fast(x, y)\n",
    "DatasetHelper": "for inputs in ms.DatasetHelper(train, dataset_sink_mode=False):\n    cell(*inputs)\n",
    "data_sink": (
        "def step(x, y):\n    return cell(x, y)\nsink = ms.data_sink(step, train)\nfor i in range(9):\n    sink()\n"
    ),
    "own generator": (
        "def rows(data):\n    for x, y in data.create_tuple_iterator():\n        yield x, y\n"
        "for x, y in rows(train):\n    cell(x, y)\n"
    ),
    "own loader": (
        "class Loader:\n    def __init__(self, data):\n        self.data = data\n"
        "    def __iter__(self):\n        return self.data.create_tuple_iterator()\n"
        "for x, y in Loader(train):\n    cell(x, y)\n"
    ),
}


@pytest.mark.parametrize("loop", [pytest.param(text, id=name) for name, text in LOOPS.items()])
def test_loops_with_a_train_cell(loop: str) -> None:
    source = (
        HEAD
        + 'train = ds.MnistDataset("/d")\ntest = ds.MnistDataset("/d", "test")\n'
        + CELL
        + loop
        + "for x, y in test.create_tuple_iterator():\n    print(net(x))\n"
    )
    result = run(source)
    assert sharded(source) == [f'train = ds.MnistDataset("/d", {SHARDS})'], result.findings
    assert (KEPT, 5) in found(result, "MSD201")


def test_zip_in_python_feeds_both() -> None:
    source = (
        HEAD
        + 'a = ds.MnistDataset("/a")\nb = ds.MnistDataset("/b")\n'
        + CELL
        + "for (x, y), (u, v) in zip(a.create_tuple_iterator(), b.create_tuple_iterator()):\n    cell(x, v)\n"
    )
    assert sharded(source) == [f'{name} = ds.MnistDataset("/{name}", {SHARDS})' for name in "ab"]


@pytest.mark.parametrize(
    "use",
    [
        pytest.param("model.train(1, train)", id="train"),
        pytest.param("model.train(epoch=1, train_dataset=train)", id="by keyword"),
        pytest.param("model.fit(1, train, test)", id="fit"),
        pytest.param("start = model.train\nstart(1, train)", id="method under a name"),
    ],
)
def test_model_methods(use: str) -> None:
    source = (
        f'{HEAD}train = ds.MnistDataset("/d")\ntest = ds.MnistDataset("/d", "test")\n{MODEL}{use}\nmodel.eval(test)\n'
    )
    assert sharded(source) == [f'train = ds.MnistDataset("/d", {SHARDS})']


def test_model_from_a_helper_and_evaluation_in_a_callback() -> None:
    source = (
        HEAD
        + """\
def build():
    net = nn.Dense(4, 2)
    return ms.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
class Evaluate(ms.Callback):
    def __init__(self, model, data):
        self.model, self.data = model, data
    def epoch_end(self, run_context):
        print(self.model.eval(self.data))
train = ds.MnistDataset("/d")
test = ds.MnistDataset("/d", "test")
model = build()
model.train(1, train, callbacks=[Evaluate(model, test)])
"""
    )
    assert sharded(source) == [f'train = ds.MnistDataset("/d", {SHARDS})']
    assert found(run(source), "MSD201", KEPT) == [(KEPT, 13)]


# -- wrong-role traps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        pytest.param("print(next(other.create_dict_iterator()))\n", "is read", id="looked at"),
        pytest.param("for row in other.create_dict_iterator():\n    print(row)\n", "is read", id="looped over"),
        pytest.param("print(other.get_dataset_size())\n", "reaches no training", id="size only"),
        pytest.param("", "reaches no training", id="never used"),
        pytest.param("def dead():\n    return other\n", "reaches no training", id="returned by a dead function"),
        pytest.param("model.eval(other)\n", "evaluates", id="evaluated"),
    ],
)
def test_stays_whole(extra: str, message: str) -> None:
    source = HEAD + 'other = ds.MnistDataset("/o", "train")\ntrain = ds.MnistDataset("/d")\n' + TRAINING + extra
    assert sharded(source) == [f'train = ds.MnistDataset("/d", {SHARDS})']
    [finding] = [f for f in run(source).findings if f.code == "MSD201" and f.status == KEPT]
    assert finding.line == 4
    assert message in finding.message


@pytest.mark.parametrize(
    "evaluation",
    [
        pytest.param("model.eval(train)\n", id="model.eval"),
        pytest.param("for x, y in train.create_tuple_iterator():\n    print(net(x))\n", id="loop"),
    ],
)
def test_evaluating_the_training_set_is_noted(evaluation: str) -> None:
    result = run(HEAD + 'train = ds.MnistDataset("/d")\n' + TRAINING + evaluation)
    assert found(result, "MSD201") == [(CHANGED, 4), (NOTED, 8)]


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "line"),
    [
        pytest.param(
            'train, test = [ds.MnistDataset(p) for p in ("/a", "/b")]\n' + TRAINING + "model.eval(test)\n",
            4,
            id="list",
        ),
        pytest.param(
            'data = {k: ds.MnistDataset("/d", k) for k in ("train", "test")}\ntrain = data["train"]\n'
            + TRAINING
            + 'model.eval(data["test"])\n',
            4,
            id="dictionary",
        ),
        pytest.param(
            'data = {}\nfor k in ("train", "test"):\n    data[k.lower()] = ds.MnistDataset("/d", k)\n'
            'train = data["train"]\n' + TRAINING + 'model.eval(data["test"])\n',
            6,
            id="loop, computed key",
        ),
        pytest.param(
            'data = {}\nfor k in ("train", "test"):\n    if k:\n        one = ds.MnistDataset("/d", k)\n'
            '    data[k] = one\ntrain = data["train"]\n' + TRAINING + 'model.eval(data["test"])\n',
            7,
            id="loop, perhaps that of the turn before",
        ),
        pytest.param(
            'data = {}\nfor k in ("train", "test"):\n    k = k + ""\n    data[k] = ds.MnistDataset("/d", k)\n'
            'train = data["train"]\n' + TRAINING + 'model.eval(data["test"])\n',
            7,
            id="loop, key set anew",
        ),
        pytest.param(
            'data = {}\nfor k in ("train", "test"):\n    data[k] = ds.MnistDataset("/d", k)\n'
            'train = data["train"]\n' + TRAINING + 'model.eval(data["train"])\nmodel.eval(data["test"])\n',
            6,
            id="loop, training data evaluated too",
        ),
        pytest.param(
            'data = {}\nfor k in ("train", "test"):\n    data[k] = ds.MnistDataset("/d", k, sampler=ds.RandomSampler())\n'
            'train = data["train"]\n' + TRAINING + 'model.eval(data["test"])\n',
            6,
            id="loop, with a sampler",
        ),
        pytest.param(
            'data = {}\ndef put(k):\n    data[k] = ds.MnistDataset("/d", k)\nput("train")\nput("test")\n'
            'train = data["train"]\n' + TRAINING + 'model.eval(data["test"])\n',
            6,
            id="a function that puts",
        ),
        pytest.param(
            "def create(p):\n    return ds.MnistDataset(p)\n"
            'train, test = [create(p) for p in ("/a", "/b")]\n' + TRAINING + "model.eval(test)\n",
            5,
            id="through a function",
        ),
    ],
)
def test_one_call_for_both_roles_cannot_be_told_apart(program: str, line: int) -> None:
    refused(HEAD + program, "MSD201", line, "build the dataset that trains by a call of its own")


@pytest.mark.parametrize(
    ("loop", "dataset", "shards"),
    [
        pytest.param(
            'for k in ("train", "test"):\n    data[k] = {}.batch(8)\n',
            'ds.MnistDataset("/d", k)',
            'num_shards=rank_size if k == "train" else None, shard_id=rank_id if k == "train" else None',
            id="literal names",
        ),
        pytest.param(
            "for name, rows in read().items():\n    one = {}\n    one = one.batch(8)\n    data[name] = one\n",
            'ds.NumpySlicesDataset(rows, ["x"])',
            'num_shards=rank_size if name == "train" else None, shard_id=rank_id if name == "train" else None',
            id="items of something else",
        ),
    ],
)
def test_a_loop_that_fills_a_dictionary(loop: str, dataset: str, shards: str) -> None:
    source = f'{HEAD}data = {{}}\n{loop.format(dataset)}train = data["train"]\n{TRAINING}model.eval(data["test"])\n'
    gone, new = changed_lines(source)
    assert gone == [line for line in loop.format(dataset).splitlines() if dataset in line]
    (line,) = [line for line in new if "num_shards" in line]
    assert dataset.removesuffix(")") + f", {shards})" in line


def test_a_loop_that_fills_a_dictionary_of_which_the_rest_is_lost() -> None:
    loop = 'data = {}\nfor k in ("train", "test"):\n    data[k] = ds.MnistDataset("/d", k)\ntrain = data["train"]\n'
    (line,) = sharded(f"{HEAD}{loop}{TRAINING}for one in list(data.values())[1:]:\n    model.eval(one)\n")
    assert 'num_shards=rank_size if k == "train" else None' in line


def test_a_loop_that_fills_a_dictionary_by_a_sampler_for_training_alone() -> None:
    source = (
        'data = {}\nfor k in ("train", "more"):\n    data[k] = ds.MnistDataset("/d", k, sampler=ds.RandomSampler())\n'
        'train = data["train"]\n'
    )
    assert "DistributedSampler" in converted(f"{HEAD}{source}{TRAINING}")


def test_a_function_that_fills_a_dictionary_is_told_rank_and_size() -> None:
    source = f"""{HEAD}
class Data:
    def __init__(self):
        self.first = self.build()
    def build(self):
        parts = {{}}
        for key in ("train", "dev", "more"):
            parts[key] = ds.MnistDataset("/d", key)
        return parts
data = Data().build()
train = data["train"]
{TRAINING}
model.train(1, data["more"])
model.eval(data["dev"])
"""
    keys = 'key in ("train", "more")'
    assert sharded(source) == [
        f"def build(self, {PARAMETERS}):",
        f'parts[key] = ds.MnistDataset("/d", key, num_shards=num_shards if {keys} else None, '
        f"shard_id=shard_id if {keys} else None)",
        f"data = Data().build({SHARDS})",
    ]


def test_num_shards_that_is_not_the_number_of_ranks() -> None:
    source = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--shards", type=int, default=1)
args = parser.parse_args()
train = ds.MnistDataset("/d", num_shards=args.shards, shard_id=0)
"""
    refused(HEAD + source + TRAINING, "MSD201", 8, "does not come from get_group_size()")


def test_one_card_branch_that_the_call_always_takes() -> None:
    source = """\
def create(path, size=1, rank=0):
    if size == 1:
        return ds.MnistDataset(path)
    return ds.MnistDataset(path, num_shards=size, shard_id=rank)
train = create("/d")
"""
    refused(HEAD + source + TRAINING, "MSD201", 6, "always chooses the branch without shards")


@pytest.mark.parametrize("call", ["next(rows)", "rows.__next__()"])
def test_rows_taken_one_by_one(call: str) -> None:
    source = (
        HEAD
        + 'train = ds.MnistDataset("/d")\n'
        + CELL
        + "for epoch in range(2):\n    rows = train.create_tuple_iterator()\n    i = 0\n"
        + f"    while i < train.get_dataset_size():\n        x, y = {call}\n        i += 1\n        cell(x, y)\n"
    )
    assert sharded(source) == [f'train = ds.MnistDataset("/d", {SHARDS})']


BRANCH = """\
def create(path, group_size=None, rank=None):
    if group_size is None:
        data = ds.MnistDataset(path)
    else:
        data = ds.MnistDataset(path, num_shards=group_size, shard_id=rank)
    return data.batch(8, True)
train = create("/d")
test = create("/t")
"""


def test_a_function_with_a_branch_for_shards_is_told_rank_and_size() -> None:
    gone, new = changed_lines(HEAD + BRANCH + TRAINING + "model.eval(test)\n")
    assert gone == ['train = create("/d")']
    assert 'train = create("/d", group_size=rank_size, rank=rank_id)' in new


def test_a_function_that_takes_one_and_zero_for_one_card() -> None:
    source = HEAD + BRANCH.replace("group_size=None, rank=None", "n=1, r=0").replace("group_size is None", "n == 1")
    source = source.replace("num_shards=group_size, shard_id=rank)", "num_shards=n, shard_id=r)") + TRAINING
    gone, new = changed_lines(source + "model.eval(test)\n")
    assert gone == ['train = create("/d")']
    assert 'train = create("/d", n=rank_size or 1, r=rank_id or 0)' in new


TRAINER = """\
class Base:
    def __init__(self, path):
        self.data = self.load(path)
    def load(self, path):
        raise NotImplementedError
    def train(self):
        for x, y in self.data.create_tuple_iterator():
            cell(x, y)
class Digits(Base):
    def __init__(self, path):
        super().__init__(path)
    def load(self, path):
        return ds.MnistDataset(path)
Digits("/d").train()
"""


def test_a_base_class_that_leaves_the_dataset_to_its_heirs() -> None:
    new = sharded(HEAD + "ms.set_context(mode=0)\n" + CELL + TRAINER)
    assert f"return ds.MnistDataset(path, {SHARDS})" in new


def test_a_base_class_in_another_place_passes_rank_and_size_on() -> None:
    main = "def main():\n    ms.set_context(mode=0)\n" + "".join(f"    {line}\n" for line in CELL.splitlines())
    trainer = TRAINER.replace('Digits("/d").train()\n', "").replace(
        "            cell(x, y)", "            self.cell(x, y)"
    )
    trainer = trainer.replace("self.data = ", "self.cell = cell\n        self.data = ").replace(
        "path)", "path, cell)", 1
    )
    trainer = trainer.replace("def __init__(self, path):", "def __init__(self, path, cell):").replace(
        "super().__init__(path)", "super().__init__(path, cell)"
    )
    new = sharded(HEAD + trainer + main + '    Digits("/d", cell).train()\nmain()\n')
    assert f"super().__init__(path, cell, {THREADED})" in new
    assert f"return ds.MnistDataset(path, {THREADED})" in new
    assert f'Digits("/d", cell, {SHARDS}).train()' in new


def test_a_branch_for_shards_that_no_call_leads_to_is_refused() -> None:
    source = (
        HEAD
        + "size = None\nif size is None:\n    train = ds.MnistDataset('/d')\nelse:\n    train = ds.MnistDataset('/d', num_shards=size, shard_id=0)\n"
        + TRAINING
    )
    refused(source, "MSD201", 6, "always chooses the branch without shards")


@pytest.mark.parametrize("call", ['create("/d", 2)', 'create("/d", 2, 1, 0)', 'create("/d", 2, n=1, r=0)'])
def test_one_and_zero_stay_numbers_on_one_card(call: str) -> None:
    """The function computes with them; None would end the program on one card."""
    body = f"ms.set_context(mode=0)\ntrain = {call}\n{TRAINING}"
    source = (
        HEAD
        + "def create(path, batch, n=1, r=0):\n    print(100 // (batch * n))\n"
        + "    return ds.MnistDataset(path, num_shards=n, shard_id=r)\n"
        + "def main():\n"
        + "".join(f"    {line}\n" for line in body.splitlines())
        + "main()\n"
    )
    new = changed_lines(source)[1]
    assert any("rank_size or 1" in line and "rank_id or 0" in line for line in new), new


def test_a_branch_for_shards_that_reads_constants_of_its_own_function_is_refused() -> None:
    """What a call passes would not reach them: every rank would train on all rows."""
    source = """\
def create(path):
    rank_id = 0
    device_num = 1
    if device_num == 1:
        return ds.MnistDataset(path)
    return ds.MnistDataset(path, num_shards=device_num, shard_id=rank_id)
train = create("/d")
"""
    refused(HEAD + source + TRAINING, "MSD201", 8, "always chooses the branch without shards")
