"""A method that makes the gradient function when it is first called."""

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


class Solver:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.grad_fn = None

    def forward_fn(self, x, y):
        return loss_fn(self.model(x), y)

    def train_step(self, x, y):
        if self.grad_fn is None:
            self.grad_fn = ms.value_and_grad(self.forward_fn, None, self.optimizer.parameters)
        loss, grads = self.grad_fn(x, y)
        self.optimizer(grads)
        return loss


solver = Solver(net, opt)

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        solver.train_step(x, y)
