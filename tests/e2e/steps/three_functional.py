"""Three optimizers and three gradient functions in a cell with value_and_grad."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn, ops

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)


class Step(nn.Cell):
    def __init__(self, plain, adverse, optim, optim_g, optim_f):
        super().__init__(auto_prefix=True)
        self.plain, self.adverse = plain, adverse
        self.optim = optim
        self.weight = self.optim.parameters
        self.grad_fn = ms.value_and_grad(plain, grad_position=None, weights=self.weight)
        self.optim_g = optim_g
        self.weight_g = self.optim_g.parameters
        self.grad_fn_g = ms.value_and_grad(adverse, grad_position=None, weights=self.weight_g)
        self.optim_f = optim_f
        self.weight_f = self.optim_f.parameters
        self.grad_fn_f = ms.value_and_grad(adverse, grad_position=None, weights=self.weight_f)

    def construct(self, x, y):
        loss, grad = self.grad_fn(x, y)
        self.optim(grad)
        loss_f, grad_f = self.grad_fn_f(x, 0.1)
        loss_g, grad_g = self.grad_fn_g(x, -0.1)
        self.optim_f(grad_f)
        self.optim_g(grad_g)
        return loss, loss_f, loss_g


class Plain(nn.Cell):
    def __init__(self, g, f):
        super().__init__()
        self.g, self.f = g, f

    def construct(self, x, y):
        return ((self.f(ops.tanh(self.g(x))) - y) ** 2).mean()


class Adverse(Plain):
    def construct(self, x, factor):
        return (self.f(ops.tanh(self.g(x))) ** 2).mean() * factor


g, f = nn.Dense(4, 5), nn.Dense(5, 2)
plain, adverse = Plain(g, f), Adverse(g, f)
everything = g.trainable_params() + f.trainable_params()
step = Step(
    plain,
    adverse,
    nn.SGD(everything, 0.1),
    nn.SGD(g.trainable_params(), 0.1),
    nn.SGD(f.trainable_params(), 0.1),
)

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        step(x, y)
