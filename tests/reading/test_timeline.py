"""The course of a program: events, the blocks that lead to them, and what may be left out."""

from __future__ import annotations

import pytest
from support import HEAD, dedent

from ms_distify.reading.program import Program
from ms_distify.reading.script import read_script
from ms_distify.reading.timeline import SEED, TRAIN, Timeline, common, is_main_guard, may_be_left_out

TRAIN_CALL = "ms.Model(nn.Dense(1, 1), optimizer=1).train(1, ds.MnistDataset('/d'))\n"


def timeline(source: str) -> Timeline:
    return Program(read_script((HEAD + dedent(source)).encode(), "train.py", None)).timeline


def kinds(source: str) -> list[str]:
    return [event.kind for event in timeline(source).events]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("", [], id="empty"),
        pytest.param("def f():\n    ms.set_seed(1)\n", [], id="never called"),
        pytest.param(
            "def f():\n    ms.set_seed(1)\nms.set_context(mode=0)\nf()\n",
            ["context", "seed"],
            id="call order",
        ),
        pytest.param("if __name__ == '__main__':\n    ms.set_seed(1)\n", ["seed"], id="main guard"),
        pytest.param("import fire\ndef f():\n    ms.set_seed(1)\nfire.Fire(f)\n", ["seed"], id="handed over"),
        pytest.param("class A:\n    def __init__(self):\n        ms.set_seed(1)\nA()\n", ["seed"], id="constructor"),
        pytest.param("from mindspore import ops\nc = ops.Cast()\n", [], id="a primitive builds nothing"),
        pytest.param("x = ms.Tensor(1)\n", ["build"], id="tensor"),
        pytest.param(
            "import numpy as np\nnp.random.seed(1)\nds.config.set_seed(2)\n",
            ["part seed"] * 2,
            id="part seeds",
        ),
    ],
)
def test_events(source: str, expected: list[str]) -> None:
    assert kinds(source) == expected


def test_datasets_are_told_from_weights() -> None:
    rows = {event.what: event.rows for event in timeline("a = ds.MnistDataset('/d')\nb = nn.Dense(1, 1)\n").events}
    assert rows == {"MnistDataset": True, "the Cell Dense": False}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("ms.set_seed(1)\n@", False, id="plain"),
        pytest.param("if ds:\n    ms.set_seed(1)\n@", True, id="branch"),
        pytest.param("if ds:\n    ms.set_seed(1)\n    @", False, id="the same branch"),
        pytest.param("if ds:\n    ms.set_seed(1)\nelse:\n    @", True, id="the other branch"),
        pytest.param("for i in ds:\n    ms.set_seed(1)\n@", True, id="loop"),
        pytest.param("for i in ds:\n    ms.set_seed(1)\n    @", False, id="the same loop"),
        pytest.param("with ds:\n    ms.set_seed(1)\n@", False, id="with"),
        pytest.param("try:\n    ms.set_seed(1)\nexcept OSError:\n    pass\n@", True, id="try with a handler"),
        pytest.param("try:\n    ms.set_seed(1)\nfinally:\n    pass\n@", False, id="try without a handler"),
        pytest.param("try:\n    ms.set_seed(1)\n    @except OSError:\n    pass\n", False, id="both in the try"),
        pytest.param("def f():\n    ms.set_seed(1)\nf()\n@", False, id="function"),
        pytest.param("def f():\n    if ds:\n        ms.set_seed(1)\nf()\n@", True, id="branch in a function"),
        pytest.param("if __name__ == '__main__':\n    ms.set_seed(1)\n    @", False, id="main guard"),
    ],
)
def test_may_be_left_out(source: str, expected: bool) -> None:
    line = timeline(source.replace("@", TRAIN_CALL))
    (seed,), trains = line.of(SEED), line.of(TRAIN)
    assert trains
    assert may_be_left_out(seed, trains) is expected


def test_common_level() -> None:
    line = timeline("def main():\n    ms.set_seed(1)\n    " + TRAIN_CALL + "main()\n")
    (seed,), train = line.of(SEED), line.of(TRAIN)[0]
    assert common(seed.frames, train.frames) == 1
    assert seed.frames[0].index == train.frames[0].index
    assert seed.frames[1].index < train.frames[1].index


def test_statements_are_counted() -> None:
    line = timeline("def f():\n    ms.set_seed(1)\nf()\nf()\n")
    first, second = line.of(SEED)
    assert first.node is second.node
    assert line.runs[first.frames[-1].statement] == 2
    assert line.runs[first.frames[0].statement] == 1


def test_main_guard_either_way_round() -> None:
    for test in ("__name__ == '__main__'", '"__main__" == __name__'):
        script = read_script(f"if {test}:\n    pass\n".encode(), "x.py", None)
        assert is_main_guard(script.tree.module.body[0])
    script = read_script(b"if __name__ == 'x':\n    pass\n", "x.py", None)
    assert not is_main_guard(script.tree.module.body[0])
