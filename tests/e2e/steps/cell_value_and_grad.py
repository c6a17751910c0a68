"""value_and_grad made in __init__ of a train cell, with auxiliary output."""

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


class WithOutput(nn.Cell):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def construct(self, x, y):
        out = self.network(x)
        return ((out - y) ** 2).mean(), out


class Step(nn.Cell):
    def __init__(self, model_with_loss, optimizer):
        super().__init__()
        self.model_with_loss = model_with_loss
        self.optimizer = optimizer
        self.weights = optimizer.parameters
        self.grad_fn = ops.value_and_grad(self.model_with_loss, None, optimizer.parameters, has_aux=True)

    def construct(self, *data):
        (loss, output_data), grads = self.grad_fn(*data)
        loss = ops.depend(loss, self.optimizer(grads))
        return loss, output_data


step = Step(WithOutput(net), opt)
step.set_train()

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        step(x, y)
