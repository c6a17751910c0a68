"""What Python and NumPy draw for rows and weights is drawn alike on all ranks."""

from __future__ import annotations

import pytest
from support import CHANGED, HEAD, KEPT, NOTED, TRAINING, changed_lines, found, refused, run, unchanged

BOTH = "import random\nimport numpy as np\n"
DATA = "train = ds.MnistDataset('/d').batch(8, True)\n"


def program(before: str, *, data: str = DATA, training: str = TRAINING) -> str:
    return BOTH + HEAD + before + "ms.set_context(mode=0)\n" + data + training


@pytest.mark.parametrize(
    "before",
    [
        pytest.param("random.seed(3)\nrandom.shuffle([1])\n", id="seeded"),
        pytest.param("np.random.seed(3)\nnp.random.shuffle([1])\n", id="NumPy seeded"),
        pytest.param("ms.set_seed(3)\nnp.random.shuffle([1])\n", id="NumPy seeded by MindSpore"),
        pytest.param("order = random.Random(1)\norder.shuffle([1])\n", id="a generator of its own"),
        pytest.param("def f(x):\n    return x if random.random() < 0.5 else -x\n", id="changes single rows"),
    ],
)
def test_nothing_to_seed(before: str) -> None:
    new = changed_lines(program(before))[1]
    assert not any("random.seed" in line for line in new)


@pytest.mark.parametrize(
    ("before", "seed"),
    [
        pytest.param("random.shuffle([1])\n", "random.seed(0)", id="shuffle"),
        pytest.param("ms.set_seed(1)\nrandom.shuffle([1])\n", "random.seed(0)", id="set_seed does not seed it"),
        pytest.param("np.random.permutation(4)\n", "np.random.seed(0)", id="NumPy before set_seed"),
        pytest.param("from random import sample\nsample([1], 1)\n", "random.seed(0)", id="imported by name"),
        pytest.param("for _ in range(2):\n    random.shuffle([1])\n", "random.seed(0)", id="in a loop"),
        pytest.param("def split():\n    random.shuffle([1])\nsplit()\n", "random.seed(0)", id="in a function"),
    ],
)
def test_a_seed_goes_before_the_first_draw(before: str, seed: str) -> None:
    source = program(before)
    new = changed_lines(source)[1]
    assert new.count(seed) == 1
    lines = run(source).output.decode().splitlines()
    drawing = ("random.shuffle", "sample(", "np.random.p", "for", "split(", "ms.set_seed(1)")
    assert lines[lines.index(seed) + 1].startswith(drawing), "right before what draws or seeds first"


def test_a_seed_under_a_condition_still_wins() -> None:
    before = "import sys\nif sys.argv[1:]:\n    random.seed(7)\nrandom.shuffle([1])\n"
    lines = run(program(before)).output.decode().splitlines()
    assert lines.index("random.seed(0)") < lines.index("if sys.argv[1:]:")


def test_numpy_draws_behind_our_set_seed_need_no_other() -> None:
    source = program("", data=DATA + "noise = np.random.rand(4)\n")
    assert found(run(source), "MSD108") == []


@pytest.mark.parametrize("read", ["rows", "functools.partial(rows)"])
def test_a_generator_function_that_shuffles_is_seeded_beside_set_seed(read: str) -> None:
    data = (
        "def rows():\n    order = list(range(9))\n    random.shuffle(order)\n    for i in order:\n        yield (i,)\n"
        f"import functools; train = ds.GeneratorDataset({read}, ['x'])\n"
    )
    source = program("", data=data)
    lines = run(source).output.decode().splitlines()
    assert lines.index("random.seed(0)") == lines.index("ms.set_seed(0)") + 1
    assert found(run(source), "MSD108") == [(CHANGED, 9)]
    seeded = program("ms.set_seed(5)\n", data=data)
    assert run(seeded).output.decode().count("random.seed(0)") == 1


def test_kept() -> None:
    assert found(run(program("random.seed(3)\nrandom.shuffle([1])\n")), "MSD108") == [(KEPT, 6)]


@pytest.mark.parametrize("seed", ["random.seed()", "import time\nrandom.seed(time.time())"])
def test_a_seed_that_differs_is_refused(seed: str) -> None:
    refused(program(f"{seed}\nrandom.shuffle([1])\n"), "MSD108", 6 + seed.count("\n"), "differs between ranks")


LOOP = """\
net = nn.Dense(4, 2)
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params()))
for epoch in range(3):
    {draw}
    for x, y in train.create_tuple_iterator():
        step(x, y)
"""


def test_noise_between_steps_is_noted() -> None:
    result = run(program("ms.set_seed(1)\n", training=LOOP.format(draw="z = np.random.randn(4)")))
    assert (NOTED, 12) in found(result, "MSD108")


def test_rows_in_a_new_order_by_the_generator_that_changes_rows_are_refused() -> None:
    data = (
        "class Rows:\n    def __init__(self):\n        self.order = list(range(9))\n"
        "    def __len__(self):\n        return 9\n"
        "    def __getitem__(self, i):\n        return (self.order[i] if random.random() < 0.5 else 0,)\n"
        "rows = Rows()\ntrain = ds.GeneratorDataset(rows, ['x', 'y'])\n"
    )
    shuffling = LOOP.format(draw="random.shuffle(rows.order)")
    refused(program("random.seed(1)\n", data=data, training=shuffling), "MSD108", 20, "a generator of its own")
    result = run(program("random.seed(1)\n", data=data, training=LOOP.format(draw="pass")))
    assert not result.refused, result.findings


SHUFFLES = (
    "def rows():\n    order = list(range(9))\n    random.shuffle(order)\n    for i in order:\n        yield (i, i)\n"
    "train = ds.GeneratorDataset(rows, ['x', 'y'])\n"
)


@pytest.mark.parametrize(
    ("rows", "becomes"),
    [
        pytest.param("train.create_tuple_iterator()", "train.create_tuple_iterator(num_epochs=1)", id="goes on"),
        pytest.param(
            "enumerate(train.create_tuple_iterator())",
            "enumerate(train.create_tuple_iterator(num_epochs=1))",
            id="counted",
        ),
        pytest.param("train", None, id="the dataset itself"),
        pytest.param("train.create_tuple_iterator(num_epochs=3)", None, id="three epochs, said by the user"),
        pytest.param("train.create_tuple_iterator(num_epochs=1)", "", id="one epoch"),
        pytest.param("rows_of_all", "", id="one iterator for all epochs"),
        pytest.param("enumerate(rows_of_all)", "", id="one iterator for all epochs, counted"),
    ],
)
def test_iterators_that_draw_beside_each_other(rows: str, becomes: str | None) -> None:
    loop = (
        LOOP.format(draw="pass")
        .replace("train.create_tuple_iterator()", rows)
        .replace("x, y in enum", "i, (x, y) in enum")
    )
    source = program("", data=SHUFFLES + "rows_of_all = train.create_tuple_iterator()\n", training=loop)
    if becomes is None:
        refused(source, "MSD108", 9, "create_tuple_iterator(num_epochs=1)")
    else:
        gone, new = changed_lines(source)
        head = loop.splitlines()[4]
        assert (head in gone) == bool(becomes)
        assert not becomes or head.replace(rows, becomes) in new


def test_a_seed_that_is_drawn_is_drawn_alike() -> None:
    source = program(
        "chosen = random.randint(1, 99)\nrandom.seed(chosen)\nms.set_seed(chosen)\nnp.random.seed(chosen)\n"
    )
    lines = run(source).output.decode().splitlines()
    assert lines.index("random.seed(0)") + 1 == lines.index("chosen = random.randint(1, 99)")
    assert "ms.set_seed(0)" not in lines


def test_draws_of_a_net_or_of_the_source_itself_change_no_single_rows() -> None:
    data = (
        "def noise():\n    return np.random.rand()\n"
        "class Rows:\n    def __iter__(self):\n        for i in np.random.permutation(9):\n            yield (i + noise(), 0)\n"
        "class Net(nn.Cell):\n    def __init__(self):\n        super().__init__()\n        self.w = np.random.rand()\n"
        "train = ds.GeneratorDataset(Rows(), ['x', 'y'])\nother = Net()\n"
    )
    assert not run(program("", data=data)).refused
    mapped = data.replace("['x', 'y'])", "['x', 'y']).map(lambda x: x + noise(), ['x'])")
    refused(program("", data=mapped), "MSD108", 8, "also changes single rows")
    other = data.replace("['x', 'y'])", "['x', 'y']).map(lambda x: x + np.random.rand(), ['x'])")
    refused(program("", data=other), "MSD108", 8, "also changes single rows")


def test_no_training_no_seed() -> None:
    unchanged(BOTH + HEAD + "random.shuffle([1])\nprint(ds.MnistDataset('/d'))\n")


def test_a_draw_in_a_default_argument() -> None:
    source = program("def make(order=random.sample(range(8), 8)):\n    return order\nmake()\n")
    lines = run(source).output.decode().splitlines()
    assert lines.index("random.seed(0)") + 1 == lines.index("def make(order=random.sample(range(8), 8)):")


@pytest.mark.parametrize(("state", "seeded"), [("", True), (", random_state=None", True), (", random_state=3", False)])
def test_a_split_of_scikit_learn(state: str, seeded: bool) -> None:
    source = program(f"from sklearn.model_selection import train_test_split\na, b = train_test_split([1, 2]{state})\n")
    assert ("np.random.seed(0)" in changed_lines(source)[1]) == seeded
