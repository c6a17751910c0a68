"""value_and_grad of a method of the train cell itself; clipped."""

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


class Step(nn.Cell):
    def __init__(self, network, optimizer):
        super().__init__()
        self.network = network
        self.optimizer = optimizer
        self.grad_fn = ops.value_and_grad(self.forward, None, self.network.trainable_params())
        self.loss_fn = nn.MSELoss()

    def forward(self, x, y):
        return self.loss_fn(self.network(x), y)

    def construct(self, x, y):
        loss, grads = self.grad_fn(x, y)
        grads = ops.clip_by_global_norm(grads, 0.2)
        self.optimizer(grads)
        return loss


step = Step(net, opt)
step.set_train()

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        step(x, y)
