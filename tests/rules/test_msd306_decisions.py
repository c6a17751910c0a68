import pytest
from support import HEAD, converted, refused

START = (
    HEAD
    + """\
from mindspore import ops
ms.set_context(mode=0)
train = ds.NumpySlicesDataset([[1.0]]).batch(1, True)
net = nn.Dense(1, 1)
opt = nn.SGD(net.trainable_params(), 0.1)
grad_fn = ms.value_and_grad(net, None, opt.parameters)
for i, (x,) in enumerate(train.create_tuple_iterator()):
    loss, grads = grad_fn(x)
"""
)


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("    if (i + 1) % 4 == 0:\n        opt(grads)\n", id="step-counter"),
        pytest.param("    if ms.amp.all_finite(grads):\n        opt(grads)\n", id="the-gradients"),
        pytest.param(
            "    grads = ops.clip_by_norm(grads)\n    if grads[0].max() > 9:\n        continue\n    opt(grads)\n",
            id="later",
        ),
        pytest.param("    if i > 10:\n        break\n    opt(grads)\n", id="break-on-a-counter"),
        pytest.param("    opt(grads)\n    if loss > 9:\n        print('high')\n", id="behind-the-application"),
    ],
)
def test_decisions_that_are_alike_are_converted(step: str) -> None:
    assert "grads = grad_reducer(grads)" in converted(START + step)


@pytest.mark.parametrize(
    ("step", "line", "what"),
    [
        pytest.param("    if loss < 9:\n        opt(grads)\n", 12, "the loss", id="loss"),
        pytest.param("    if ops.isnan(loss).any():\n        continue\n    opt(grads)\n", 12, "the loss", id="skip"),
        pytest.param(
            "    bad = loss.asnumpy() > 9\n    if not bad:\n        opt(grads)\n", 13, "the loss", id="through-a-name"
        ),
        pytest.param("    if x.max() > 0:\n        opt(grads)\n", 12, "its own rows", id="rows"),
    ],
)
def test_decisions_of_one_rank_are_refused(step: str, line: int, what: str) -> None:
    refused(START + step, "MSD306", line, what)
