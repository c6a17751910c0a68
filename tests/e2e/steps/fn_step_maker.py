"""A closure: the maker of the step returns it."""

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


def make_step(network, criterion, optimizer):
    def forward(*inputs):
        return criterion(network(inputs[0]), inputs[1])

    grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)

    def step(*inputs):
        loss, grads = grad_fn(*inputs)
        optimizer(grads)
        return loss

    return step


step = make_step(net, loss_fn, opt)

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        step(x, y)
