"""C23 to C30: what averages by itself stays, what is taken by hand is refused by name."""

import pytest
from support import HEAD, TRAINING, converted, refused, run

LOOP = """\
ms.set_context(mode=0)
train = ds.NumpySlicesDataset([[1.0]]).batch(1)
net = nn.Dense(1, 1)
opt = nn.SGD(net.trainable_params(), 0.1)
"""


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("train = ds.MnistDataset('/d')\n" + TRAINING, id="Model.train"),
        pytest.param(
            "train = ds.MnistDataset('/d')\nnet = nn.Dense(1, 1)\nopt = nn.SGD(net.trainable_params())\n"
            "cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), opt)\n"
            "for x, y in train.create_tuple_iterator():\n    cell(x, y)\n",
            id="C29-TrainOneStepCell",
        ),
        pytest.param(
            "train = ds.MnistDataset('/d')\nnet = nn.Dense(1, 1)\nopt = nn.SGD(net.trainable_params())\n"
            "cell = nn.TrainOneStepWithLossScaleCell(net, opt, scale_sense=ms.Tensor(1.0))\n"
            "for x, y in train.create_tuple_iterator():\n    cell(x, y)\n",
            id="loss-scale-cell",
        ),
    ],
)
def test_cells_that_average_get_no_reducer(program: str) -> None:
    out = converted(HEAD + "ms.set_context(mode=0)\n" + program)
    assert "DistributedGradReducer" not in out
    assert "num_shards=rank_size" in out
    kept = [f.message for f in run(HEAD + "ms.set_context(mode=0)\n" + program).findings if f.code == "MSD301"]
    assert kept
    assert all("itself" in message for message in kept)


@pytest.mark.parametrize(
    ("step", "line"),
    [
        pytest.param(
            "grad_fn = ms.value_and_grad(lambda x: net(x).sum(), None, opt.parameters)\n"
            "for x, in train.create_tuple_iterator():\n    loss, grads = grad_fn(x)\n    opt(grads)\n",
            8,
            id="C23-value_and_grad",
        ),
        pytest.param(
            "grad_fn = ms.ops.value_and_grad(net, None, opt.parameters)\nacc = None\n"
            "for i, (x,) in enumerate(train.create_tuple_iterator()):\n    loss, g = grad_fn(x)\n"
            "    acc = g if acc is None else [a + b for a, b in zip(acc, g)]\n"
            "    if (i + 1) % 4 == 0:\n        opt(tuple(acc)); acc = None\n",
            8,
            id="C25-accumulation",
        ),
        pytest.param(
            "from mindspore import ops\ngrad_fn = ops.value_and_grad(net, None, opt.parameters)\n"
            "for x, in train.create_tuple_iterator():\n    loss, grads = grad_fn(x)\n"
            "    grads = ops.clip_by_global_norm(grads, 1.0)\n    opt(grads)\n",
            9,
            id="C26-clip",
        ),
        pytest.param(
            "from mindspore import ops\nclass Step(nn.Cell):\n    def __init__(self, net, opt):\n"
            "        super().__init__()\n        self.net, self.opt = net, opt\n"
            "        self.grad = ops.GradOperation(get_by_list=True)\n    def construct(self, x):\n"
            "        g = self.grad(self.net, self.opt.parameters)(x)\n        return self.opt(g)\n"
            "step = Step(net, opt)\nfor x, in train.create_tuple_iterator():\n    step(x)\n",
            13,
            id="C28-own-cell",
        ),
        pytest.param(
            "grad_fn = ms.value_and_grad(net, None, opt.parameters)\nupdates = {'main': opt}\n"
            "for x, in train.create_tuple_iterator():\n    loss, grads = grad_fn(x)\n    updates['main'](grads)\n",
            8,
            id="C30-optimizer-in-a-dict",
        ),
        pytest.param(
            "from helpers import gradient\nfor x, in train.create_tuple_iterator():\n    opt(gradient(net, x))\n",
            10,
            id="gradient-from-elsewhere",
        ),
    ],
)
def test_gradients_by_hand_are_refused_at_their_line(step: str, line: int) -> None:
    refused(HEAD + LOOP + step, "MSD301", line)


def test_an_optimizer_without_any_training_is_refused() -> None:
    refused(HEAD + LOOP + "import registry\nregistry.run(net)\n", "MSD305", 7, "no training")
