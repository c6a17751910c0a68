"""clip_by_global_norm between gradient and optimizer."""

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
    return loss_fn(out, y), out


grad_fn = ms.value_and_grad(forward, None, opt.parameters, has_aux=True)


def train_step(*inputs):
    (loss, _), grads = grad_fn(*inputs)
    grads = ops.clip_by_global_norm(grads, 0.2)
    opt(grads)
    return loss


for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        train_step(x, y)
