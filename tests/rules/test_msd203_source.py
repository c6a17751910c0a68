"""Sources that MindSpore cannot divide are dealt by a wrapper, or refused."""

from __future__ import annotations

import pytest
from support import CHANGED, HEAD, NOTED, TRAINING, changed_lines, converted, found, refused, run, sharded

CLASS = "class Rows:\n    def __len__(self): return 9\n    def __getitem__(self, i): return (i,)\n"


@pytest.mark.parametrize(
    ("before", "source"),
    [
        pytest.param(CLASS, "Rows()", id="object"),
        pytest.param(CLASS + "rows = Rows()\n", "rows", id="object under a name"),
        pytest.param(CLASS + "class More(Rows):\n    pass\n", "More()", id="inherited __getitem__"),
        pytest.param(CLASS + "def make():\n    return Rows()\n", "make()", id="from a function"),
        pytest.param("", "[(1,), (2,)]", id="list"),
    ],
)
def test_random_access_is_sharded_without_a_word(before: str, source: str) -> None:
    program = f'{HEAD}{before}train = ds.GeneratorDataset({source}, ["x"])\n{TRAINING}'
    assert len(sharded(program)) == 1
    assert found(run(program), "MSD203") == []


@pytest.mark.parametrize(
    ("before", "source"),
    [
        pytest.param("from elsewhere import Rows\n", "Rows()", id="library"),
        pytest.param("import numpy as np\n", "np.ones((4, 2))", id="array"),
        pytest.param(
            "from torch.utils.data import Dataset\nclass Rows(Dataset):\n    pass\n",
            "Rows()",
            id="library base",
        ),
    ],
)
def test_unknown_sources_are_noted(before: str, source: str) -> None:
    program = f'{HEAD}{before}train = ds.GeneratorDataset({source}, ["x"])\n{TRAINING}'
    assert len(sharded(program)) == 1
    assert [status for status, _ in found(run(program), "MSD203")] == [NOTED]


GENERATOR = "def rows():\n    for i in range(100):\n        yield (i,)\n"


ITERATES = "class Rows:\n    def __iter__(self):\n        yield (1,)\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("rows", "the function rows", id="generator function"),
        pytest.param("partial(rows)", "the function rows", id="with arguments bound"),
        pytest.param("Rows()", None, id="object"),
    ],
)
def test_sources_among_keywords(source: str, expected: str | None) -> None:
    """A call with ``**`` alone has no source that could be passed through a function."""
    program = (
        f"{HEAD}from functools import partial\n{GENERATOR}{CLASS}options = dict(column_names=['x'])\n"
        f"options['source'] = {source}\ntrain = ds.GeneratorDataset(**options)\n{TRAINING}"
    )
    result = run(program)
    assert result.refused == (expected is not None)
    if expected is None:
        assert found(result, "MSD203") == []
    else:
        message = next(finding.message for finding in result.findings if finding.code == "MSD203")
        assert expected in message
        assert "pass source= in the call itself" in message


@pytest.mark.parametrize(
    ("before", "source"),
    [
        pytest.param(GENERATOR, "rows", id="C14 generator function"),
        pytest.param(GENERATOR, "rows()", id="generator"),
        pytest.param(GENERATOR, "lambda: rows()", id="lambda"),
        pytest.param(
            f"from functools import partial\n{GENERATOR}", "partial(rows)", id="a function with arguments bound"
        ),
        pytest.param(f"import functools\n{ITERATES}", "functools.partial(Rows)", id="a class with arguments bound"),
        pytest.param(ITERATES, "Rows()", id="class that only iterates"),
        pytest.param(f"{ITERATES}class More(Rows):\n    pass\n", "More()", id="that inherits it"),
        pytest.param("class Rows:\n    def each(self):\n        yield (1,)\n", "Rows().each", id="method"),
    ],
)
def test_rows_in_order_are_dealt_by_a_wrapper(before: str, source: str) -> None:
    for argument in (source, f"source={source}"):
        program = f'{HEAD}{before}train = ds.GeneratorDataset({argument}, column_names=["x"])\n{TRAINING}'
        gone, new = changed_lines(program)
        assert gone == [f'train = ds.GeneratorDataset({argument}, column_names=["x"])']
        wrapped = argument.replace(source, f"shard_source({source}, rank_size, rank_id)")
        assert f'train = ds.GeneratorDataset({wrapped}, column_names=["x"])' in new
        assert "def shard_source(source, num_shards=None, shard_id=None):" in new
        assert found(run(program), "MSD203") == [(CHANGED, 4 + before.count("\n"))]


def test_a_generator_expression_keeps_its_brackets() -> None:
    program = f'{HEAD}train = ds.GeneratorDataset(((i,) for i in range(9)), ["x"])\n{TRAINING}'
    output = converted(program)
    assert "shard_source(((i,) for i in range(9)), rank_size, rank_id)" in output


def test_one_function_for_a_generator_that_trains_and_rows_that_evaluate() -> None:
    program = (
        f"{HEAD}{GENERATOR}def create(source):\n    return ds.GeneratorDataset(source, ['x'])\n"
        f"train = create(rows)\ntest = create([(1,)])\n{TRAINING}model.eval(test)\n"
    )
    new = changed_lines(program)[1]
    assert "    return ds.GeneratorDataset(shard_source(source, num_shards, shard_id), ['x'])" in new
    assert "train = create(rows, num_shards=rank_size, shard_id=rank_id)" in new
    assert not any(line.startswith("test") for line in new)


def test_one_constructor_for_both_kinds_of_sources_is_refused() -> None:
    program = (
        f"{HEAD}{CLASS}{GENERATOR}def create(source):\n    return ds.GeneratorDataset(source, ['x'])\n"
        f"train = create(rows) + create(Rows())\n{TRAINING}"
    )
    refused(program, "MSD203", 11, "a constructor of its own")


def test_a_source_that_is_told_rank_and_size_deals_by_itself() -> None:
    program = (
        HEAD.replace(
            "import mindspore as ms",
            "import mindspore as ms\nfrom mindspore.communication import get_group_size, get_rank, init",
            1,
        )
        + "class Rows:\n    def __init__(self, rank, size):\n        self.rank, self.size = rank, size\n"
        + "    def __iter__(self):\n        yield from range(self.rank, 100, self.size)\n"
        + "ms.set_context(mode=0)\ninit()\nms.set_auto_parallel_context(parallel_mode='data_parallel', gradients_mean=True)\n"
        + "train = ds.GeneratorDataset(Rows(get_rank(), get_group_size()), ['x'])\n"
        + TRAINING
    )
    result = run(program)
    assert not result.refused, result.findings
    assert "shard_source" not in result.output.decode()


def test_generator_for_evaluation_stays() -> None:
    program = (
        f'{HEAD}{GENERATOR}train = ds.MnistDataset("/d")\n'
        f'test = ds.GeneratorDataset(rows, ["x"])\n{TRAINING}model.eval(test)\n'
    )
    assert len(sharded(program)) == 1


def test_a_source_that_ignores_the_index_is_refused() -> None:
    """With one seed on all ranks, two ranks trained on identical rows."""
    source = (
        "class Draw:\n    def __len__(self):\n        return 100\n\n    def __getitem__(self, index):\n"
        "        return (next_row(),)\n\ntrain = ds.GeneratorDataset(Draw(), ['x']).batch(4, True)\n"
    )
    refused(HEAD + source + TRAINING, "MSD203", 11, "does not look at its index")
    refused(HEAD + source.replace("next_row()", "next_row(self.index, index=2)") + TRAINING, "MSD203", 11, "its index")
    converted(HEAD + source.replace("next_row()", "next_row(index)") + TRAINING)


LENGTH = "    def __len__(self):\n        return 100\n"


def _drawing(
    draw: str, *, length: str = LENGTH, arguments: str = 'Draw(), ["x"], shuffle=True', behind: str = ""
) -> str:
    return (
        f"{HEAD}import numpy as np\nimport random\nfrom scipy import stats\n"
        f"class Draw:\n    def draw(self):\n        return {draw}\n{length}"
        "    def __getitem__(self, index):\n        return (self.draw(),)\n"
        f"train = ds.GeneratorDataset({arguments}).batch(4, True)\n{behind}{TRAINING}"
    )


@pytest.mark.parametrize(
    "draw",
    [
        pytest.param("np.random.randint(9)", id="NumPy"),
        pytest.param("random.random()", id="random"),
        pytest.param("stats.norm.rvs(size=3)", id="SciPy"),
    ],
)
def test_rows_drawn_whatever_the_index_are_dealt(draw: str) -> None:
    program = _drawing(draw)
    gone, new = changed_lines(program)
    assert gone == ['train = ds.GeneratorDataset(Draw(), ["x"], shuffle=True).batch(4, True)']
    assert (
        'train = ds.GeneratorDataset(shard_draws(Draw(), rank_size, rank_id), ["x"], shuffle=True).batch(4, True)'
        in new
    )
    assert ("random.seed(0)" in new) == draw.startswith("random."), "set_seed seeds the others"


def test_the_helper_deals_the_draws() -> None:
    output = converted(_drawing("np.random.randint(9)"))
    start = output.index("def shard_draws")
    space: dict[str, object] = {}
    exec(output[start : output.index("class Draw")], space)

    class Counts:
        drawn = -1

        def __len__(self) -> int:
            return 100

        def __getitem__(self, index: int) -> int:
            self.drawn += 1
            return self.drawn

    shard = space["shard_draws"]
    assert callable(shard)
    source = Counts()
    assert shard(source) is shard(source, None, None) is source, "one card reads the source itself"
    for rank in range(3):
        rows = shard(Counts(), 3, rank)
        assert len(rows) == 33
        assert [rows[5], rows[0], rows[5]] == [rank, rank + 3, rank + 6]


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(_drawing("(1, 2)"), id="the same row every time"),
        pytest.param(_drawing("self.rng.normal()"), id="from something else"),
        pytest.param(_drawing("np.random.randint(9)", length=""), id="without a length"),
        pytest.param(
            _drawing("np.random.randint(9)", arguments='Draw(), ["x"], sampler=ds.SequentialSampler()'), id="sampler"
        ),
    ],
)
def test_other_sources_that_ignore_the_index_are_refused(program: str) -> None:
    refused(program, "MSD203", program[: program.index("train = ds")].count("\n") + 1, "does not look at its index")


def test_rows_drawn_while_others_are_changed_by_the_same_generator() -> None:
    behind = "train = train.map(lambda x: x + np.random.rand(), ['x'])\n"
    refused(_drawing("np.random.randint(9)", behind=behind), "MSD108", 9, "also changes single rows")
