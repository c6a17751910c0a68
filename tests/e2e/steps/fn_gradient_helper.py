"""A helper takes the gradients and clips them, its caller applies them."""

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
    return loss_fn(net(x), y)


grad_fn = ms.value_and_grad(forward, None, net.trainable_params())


def clipped(x, y):
    loss, record = grad_fn(x, y)
    norm = ops.sqrt(sum(ops.square(g).sum() for g in record))
    factor = ops.minimum(0.2 / norm, ms.Tensor(1.0, ms.float32))
    kept = ()
    for g in record:
        kept = (*kept, g * factor)
    return kept, loss


for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        grads, loss = clipped(x, y)
        opt(grads)
