"""MSD306: what is counted, kept or set from values of one rank."""

import pytest
from support import HEAD, converted, found, refused, run

from ms_distify import Settings

START = (
    HEAD
    + """\
from mindspore import ops
ms.set_context(mode=ms.PYNATIVE_MODE)
train = ds.NumpySlicesDataset({"x": [[1.0]], "y": [[1.0]]}).batch(1, True)
test = ds.NumpySlicesDataset({"x": [[1.0]], "y": [[1.0]]}, shuffle=False).batch(1)
net = nn.SequentialCell(nn.Dense(1, 1), NORM)
loss_fn = nn.MSELoss()
opt = nn.SGD(net.trainable_params(), 0.1)
grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, opt.parameters)
def evaluate():
    total = 0
    for x, y in test.create_tuple_iterator():
        total += loss_fn(net(x), y)
    return total
best, wait = 9.0, 0
"""
)
EPOCHS = """\
for epoch in range(9):
    for x, y in train.create_tuple_iterator():
        loss, grads = grad_fn(x, y)
        opt(grads)
    metric = METRIC
    if metric < best:
        best, wait = metric, 0
    else:
        wait += 1
        if wait > 2:
            break
"""


@pytest.mark.parametrize(
    ("metric", "norm", "averaged"),
    [
        pytest.param("evaluate()", "nn.ReLU()", False, id="whole evaluation"),
        pytest.param("evaluate()", "nn.BatchNorm1d(1)", True, id="whole evaluation, own statistics"),
        pytest.param("loss", "nn.ReLU()", True, id="own loss"),
    ],
)
def test_patience(metric: str, norm: str, averaged: bool) -> None:
    """The patience is counted under a condition; the loop would end on it, on one rank and not on another."""
    source = START.replace("NORM", norm) + EPOCHS.replace("METRIC", metric)
    if averaged:
        lines = converted(source).splitlines()
        assert lines[lines.index(f"    metric = {metric}") + 1] == "    metric = sum_over_ranks(metric, mean=True)"
    else:
        assert found(run(source), "MSD306") == []
        assert not run(source).refused


def test_model_eval_with_own_statistics() -> None:
    source = START.replace("NORM", "nn.BatchNorm1d(1)") + (
        "model = ms.Model(net, loss_fn, opt, metrics={'loss'})\nfor epoch in range(9):\n    model.train(1, train)\n"
        "    if model.eval(test)['loss'] < 0.1:\n        break\n"
    )
    result = refused(source, "MSD306", START.count("\n") + 4, "its own BatchNorm")
    assert any("--shard-eval" in f.message for f in result.findings if f.code == "MSD306")
    summed = run(source, settings=Settings(shard_eval=True))
    assert not summed.refused
    assert found(summed, "MSD306") == []
    plain = run(source.replace("nn.BatchNorm1d(1)", "nn.ReLU()"))
    assert not plain.refused


def test_a_parameter_set_from_own_rows() -> None:
    loop = (
        "price = ms.Parameter(ms.Tensor(0.0), name='price')\nfor x, y in train.create_tuple_iterator():\n"
        "    loss, grads = grad_fn(x, y)\n    opt(grads)\n    price.set_data(price + VALUE)\n"
    )
    source = START.replace("NORM", "nn.ReLU()") + loop
    refused(source.replace("VALUE", "0.1 * loss"), "MSD306", START.count("\n") + 5, "sets a parameter")
    assert not run(source.replace("VALUE", "0.1")).refused


def test_an_update_when_a_list_of_chosen_rows_is_full() -> None:
    loop = (
        "kept = []\nfor x, y in train.create_tuple_iterator():\n    if CHOSEN:\n        kept.append(x)\n"
        "    if len(kept) == 4:\n        loss, grads = grad_fn(ops.stack(kept), y)\n        opt(grads)\n        kept = []\n"
    )
    source = START.replace("NORM", "nn.ReLU()") + loop
    refused(source.replace("CHOSEN", "loss_fn(net(x), y) > 1"), "MSD306", START.count("\n") + 5, "its own rows")
    assert not run(source.replace("CHOSEN", "True")).refused
