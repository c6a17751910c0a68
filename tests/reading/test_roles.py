"""Consumers, the datasets that reach them, and what is lost."""

from __future__ import annotations

import pytest

from ms_distify.reading.program import Program
from ms_distify.reading.roles import Roles
from ms_distify.reading.script import read_script

HEAD = """\
import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn
net = nn.Dense(4, 2)
opt = nn.Momentum(net.trainable_params(), 0.1, 0.9)
cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), opt)
model = ms.Model(net, nn.MSELoss(), opt)
a = ds.MnistDataset("/a")
b = ds.MnistDataset("/b")
"""


def roles(source: str) -> Roles:
    return Program(read_script((HEAD + source).encode(), "t.py")).roles


@pytest.mark.parametrize(
    ("source", "a", "b"),
    [
        pytest.param("", set(), set(), id="nothing"),
        pytest.param("model.train(1, a)\nmodel.eval(b)\n", {"train"}, {"eval"}, id="Model"),
        pytest.param("model.fit(1, a, b)\n", {"train"}, {"eval"}, id="fit"),
        pytest.param("model.build(a, b)\n", {"train"}, {"eval"}, id="build"),
        pytest.param("for x in a:\n    cell(x)\nfor x in b:\n    net(x)\n", {"train"}, {"read"}, id="loops"),
        pytest.param("[net(x) for x in b]\n", set(), {"read"}, id="comprehension"),
        pytest.param("for x in a:\n    opt(x)\n", {"train"}, set(), id="optimizer"),
        pytest.param(
            "def f(d, e):\n    for x in d:\n        cell(x)\n    for x in e:\n        net(x)\nf(a, b)\n",
            {"train"},
            {"read"},
            id="one function takes both",
        ),
        pytest.param(
            "class T:\n    def train(self, n, d):\n        pass\nT().train(1, a)\n",
            set(),
            set(),
            id="not a Model",
        ),
        pytest.param("other.train(1, a)\n", set(), set(), id="of a library"),
    ],
)
def test_uses(source: str, a: set[str], b: set[str]) -> None:
    first, second = roles(source).sites
    assert {use.role for use in first.uses} == a
    assert {use.role for use in second.uses} == b


def test_the_way_is_kept() -> None:
    source = "def create(p):\n    return ds.MnistDataset(p)\nmodel.train(1, create('/c').batch(2).repeat(3))\n"
    site = roles(source).sites[2]
    [use] = site.uses
    assert use.how == "model.train at t.py:12"
    assert [edge.script.line(edge.call) for edge in use.calls] == [12]
    assert [script.tree.text(node).rpartition(".")[2] for script, node in use.methods] == [
        "repeat(3)",
        "batch(2)",
    ]


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        pytest.param("for e in range(3):\n    for x in a:\n        cell(x)\n", [], id="epochs around a dataset"),
        pytest.param("for e in range(3):\n    model.train(1, a)\n", [], id="epochs around Model.train"),
        pytest.param("for x in a:\n    for i in range(2):\n        cell(x)\n", [], id="repeats inside"),
        pytest.param(
            "def step(x):\n    for i in range(2):\n        cell(x)\nfor x in a:\n    step(x)\n",
            [],
            id="repeats in a function",
        ),
        pytest.param("for e in range(3):\n    for x in c['x']:\n        cell(x)\n", [11], id="the inner loop is told"),
        pytest.param("model.train(1, c['x'])\n", [10], id="Model.train"),
        pytest.param("for i in range(3):\n    cell(i)\n", [10], id="no dataset"),
    ],
)
def test_lost(source: str, lines: list[int]) -> None:
    lost = roles(source).lost
    assert sorted({sink.script.line(sink.node) for sink, _ in lost if sink.role == "train"}) == lines
