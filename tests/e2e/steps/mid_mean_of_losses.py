"""The loss is the mean of several criteria, its gradients are multiplied by a schedule."""

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


def forward(x, y):
    out = net(x)
    first, second = loss_fn(out[:, 0], y[:, 0]), loss_fn(out[:, 1], y[:, 1])
    return (first + second) / 2, out


grad_fn = ops.value_and_grad(forward, None, opt.parameters, has_aux=True)
seen = 0

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        (loss, _), grads = grad_fn(x, y)
        seen += 1
        opt(tuple(g * (1.0 / seen) for g in grads))
