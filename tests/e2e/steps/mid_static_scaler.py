"""A fixed loss scale in a compiled step."""

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

scaler = ms.amp.StaticLossScaler(scale_value=256)


def forward(x, y):
    out = net(x)
    return scaler.scale(loss_fn(out, y)), out


grad_fn = ops.value_and_grad(forward, None, opt.parameters, has_aux=True)


@ms.jit
def train_step(x, y):
    (loss, out), grads = grad_fn(x, y)
    grads = scaler.unscale(grads)
    loss = ops.depend(scaler.unscale(loss), opt(grads))
    return loss, out


for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        train_step(x, y)
