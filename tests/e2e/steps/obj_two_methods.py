"""Two models in turn: each method trains one and reads the other."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn, ops

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)
net = nn.SequentialCell(nn.Dense(4, 6), nn.Tanh(), nn.Dense(6, 2))
loss_fn = nn.MSELoss()


class Both:
    def __init__(self, first, second):
        self.first, self.second = first, second
        self.optim = nn.SGD(first.trainable_params(), 0.1)
        self.p_optim = nn.SGD(second.trainable_params(), 0.2)

    def train_first(self, x, y):
        target = y + self.second(x)

        def forward_fn(x, target):
            return loss_fn(self.first(x), target)

        grad_fn = ms.value_and_grad(forward_fn, None, self.optim.parameters)
        loss, grads = grad_fn(x, target)
        self.optim(grads)
        return loss

    def train_second(self, x, y):
        weight = self.first(x)

        def forward_fn(x, y, weight):
            out = self.second(x)
            return loss_fn(out * ops.tanh(weight), y), out

        grad_fn = ms.value_and_grad(forward_fn, None, self.p_optim.parameters, has_aux=True)
        (loss, _), grads = grad_fn(x, y, weight)
        self.p_optim(grads)
        return loss


both = Both(net, nn.Dense(4, 2))

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        both.train_first(x, y)
        both.train_second(x, y)
