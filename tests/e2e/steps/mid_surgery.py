"""Two tasks: where their gradients conflict, one is projected off the other; then they are added."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn, ops

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)
net = nn.SequentialCell(nn.Dense(4, 6), nn.Tanh(), nn.Dense(6, 2))
loss_fn = nn.MSELoss()
opt = nn.Momentum(net.trainable_params(), 0.1, 0.9)


def task_one(x, y):
    return loss_fn(net(x), y)


def task_two(x, y):
    return ((net(x) + 0.5 * y) ** 2).mean()


first = ms.value_and_grad(task_one, None, opt.parameters)
second = ms.value_and_grad(task_two, None, opt.parameters)


def combine(a, b):
    inner = (a * b).sum()
    return a + b - ops.minimum(inner, ms.Tensor(0.0, ms.float32)) / ((a * a).sum() + 1e-6) * a


for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        loss_one, grads_one = first(x, y)
        loss_two, grads_two = second(x, y)
        opt(tuple(combine(a, b) for a, b in zip(grads_one, grads_two)))
