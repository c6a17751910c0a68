"""Generator and discriminator take turns."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)

generator = nn.SequentialCell(nn.Dense(4, 4), nn.Tanh(), nn.Dense(4, 4))
discriminator = nn.SequentialCell(nn.Dense(4, 6), nn.Tanh(), nn.Dense(6, 1))
both = nn.CellList([generator, discriminator])  # gives their weights different names
opt_g = nn.SGD(generator.trainable_params(), 0.1)
opt_d = nn.Momentum(discriminator.trainable_params(), 0.1, 0.5)


def forward_g(z):
    return ((discriminator(generator(z)) - 1) ** 2).mean()


def forward_d(z, real):
    return (discriminator(generator(z)) ** 2).mean() + ((discriminator(real) - 1) ** 2).mean()


grad_g = ms.value_and_grad(forward_g, None, opt_g.parameters)
grad_d = ms.value_and_grad(forward_d, None, opt_d.parameters)


def train_step(z, real):
    loss_d, grads = grad_d(z, real)
    opt_d(grads)
    loss_g, grads = grad_g(z)
    opt_g(grads)
    return loss_g, loss_d


for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        train_step(x + 0.5, x)
