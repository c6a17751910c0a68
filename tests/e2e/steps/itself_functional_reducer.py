"""A step function that is given a reducer, which is the identity on one card."""

import os

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


def make_step(network, optimizer, grad_reducer):
    def forward_func(x, y):
        out = network(x)
        return loss_fn(out, y), out

    grad_fn = ops.value_and_grad(forward_func, grad_position=None, weights=optimizer.parameters, has_aux=True)

    def train_step_func(x, y):
        (loss, _), grads = grad_fn(x, y)
        grads = grad_reducer(grads)
        loss = ops.depend(loss, optimizer(grads))
        return loss

    return train_step_func


size = int(os.getenv("RANK_SIZE", "1"))
reducer = nn.DistributedGradReducer(opt.parameters) if size > 1 else ops.identity
step = make_step(net, opt, reducer)

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        step(x, y)
