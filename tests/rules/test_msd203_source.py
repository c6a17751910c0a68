"""Sources that MindSpore cannot divide."""

from __future__ import annotations

import pytest
from support import HEAD, NOTED, TRAINING, converted, found, refused, run, sharded

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


@pytest.mark.parametrize(
    ("before", "source"),
    [
        pytest.param(GENERATOR, "rows", id="C14 generator function"),
        pytest.param(GENERATOR, "rows()", id="generator"),
        pytest.param(GENERATOR, "lambda: rows()", id="lambda"),
        pytest.param("", "((i,) for i in range(9))", id="generator expression"),
        pytest.param(
            "class Rows:\n    def __iter__(self):\n        yield (1,)\n",
            "Rows()",
            id="class that only iterates",
        ),
        pytest.param("class Rows:\n    def each(self):\n        yield (1,)\n", "Rows().each", id="method"),
        pytest.param(GENERATOR, "source=rows", id="by keyword"),
    ],
)
def test_refused(before: str, source: str) -> None:
    program = f'{HEAD}{before}train = ds.GeneratorDataset({source}, column_names=["x"])\n{TRAINING}'
    refused(program, "MSD203", 4 + before.count("\n"), "give the source __getitem__")


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
    converted(HEAD + source.replace("next_row()", "next_row(index)") + TRAINING)
