"""Parameter groups with learning rates of their own."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn, ops

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)
net = nn.SequentialCell(nn.Dense(4, 6), nn.Tanh(), nn.Dense(6, 2))
loss_fn = nn.MSELoss()

groups = [
    {"params": net[0].trainable_params(), "lr": 0.2},
    {"params": net[2].trainable_params(), "lr": 0.05},
]
optimizer = nn.SGD(groups, learning_rate=0.1, momentum=0.5)


def forward(x, y):
    return loss_fn(net(x), y)


grad_fn = ops.value_and_grad(forward, None, optimizer.parameters, has_aux=False)


def train_step(x, y):
    (loss), grads = grad_fn(x, y)
    optimizer(grads)
    return loss


for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        train_step(x, y)
