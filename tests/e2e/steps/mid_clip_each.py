"""Each gradient is clipped by its own norm, in a comprehension."""

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


def forward(x, y):
    return loss_fn(net(x), y)


clip = nn.ClipByNorm()
grad_fn = ms.value_and_grad(forward, None, opt.parameters)

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        loss, grads = grad_fn(x, y)
        grads = tuple(clip(g, ms.Tensor(0.1, ms.float32)) for g in grads)
        opt(grads)
