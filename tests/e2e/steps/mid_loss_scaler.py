"""A loss scaler: scale, unscale, finite check, adjust."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)
net = nn.SequentialCell(nn.Dense(4, 6), nn.Tanh(), nn.Dense(6, 2))
loss_fn = nn.MSELoss()
opt = nn.Momentum(net.trainable_params(), 0.1, 0.9)

scaler = ms.amp.DynamicLossScaler(scale_value=1024, scale_factor=2, scale_window=3)


def forward(x, y):
    out = net(x)
    return scaler.scale(loss_fn(out, y)), out


grad_fn = ms.value_and_grad(forward, None, opt.parameters, has_aux=True)


def train_step(x, y):
    (loss, _), grads = grad_fn(x, y)
    loss = scaler.unscale(loss)
    grads = scaler.unscale(grads)
    finite = ms.amp.all_finite(grads)
    if finite:
        opt(grads)
    scaler.adjust(finite)
    return loss


for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        train_step(x, y)
