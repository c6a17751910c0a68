"""A gradient penalty: the gradient of the critic is part of the loss."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn, ops

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)

critic = nn.SequentialCell(nn.Dense(4, 6), nn.Tanh(), nn.Dense(6, 1))
optimizer = nn.SGD(critic.trainable_params(), 0.1)


def height(x):
    return critic(x).sum()


slope = ops.grad(height)


def forward(x, y):
    penalty = ((slope(x) ** 2).sum(axis=1) - 1.0) ** 2
    return (critic(x)[:, 0] * y[:, 0]).mean() + 0.1 * penalty.mean()


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        loss, grads = grad_fn(x, y)
        optimizer(grads)
