"""A plain class whose gradient function of a method is made in __init__."""

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


class Learner:
    def __init__(self, model, criterion, optimizer):
        self.model = model
        self.criterion = criterion
        self.optimizer = optimizer
        self.value_and_grad = ms.value_and_grad(self.forward, None, self.optimizer.parameters, has_aux=False)

    def forward(self, x, y):
        return self.criterion(self.model(x), y)

    def train_one_step(self, x, y):
        (loss), grad = self.value_and_grad(x, y)
        self.optimizer(grad)
        return loss


learner = Learner(net, loss_fn, opt)

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        learner.train_one_step(x, y)
