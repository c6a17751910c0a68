"""The step names a gradient function that its caller makes later, once an epoch."""

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


def train_loop(model, dataset, criterion, optimizer):
    def forward_fn(data, label):
        logits = model(data)
        return criterion(logits, label), logits

    def train_step(data, label):
        (loss, _), grads = grad_fn(data, label)
        loss = ops.depend(loss, optimizer(grads))
        return loss

    for _ in range(EPOCHS):
        grad_fn = ops.value_and_grad(forward_fn, None, optimizer.parameters, has_aux=True)
        for data, label in dataset.create_tuple_iterator():
            train_step(data, label)


train_loop(net, train, loss_fn, opt)
