"""One method makes the gradient function, another one uses it."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)
net = nn.SequentialCell(nn.Dense(4, 6), nn.Tanh(), nn.Dense(6, 2))
loss_fn = nn.MSELoss()


class Trainer:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.optimizer = nn.Momentum(self.model.trainable_params(), learning_rate=0.1, momentum=0.5)

    def forward(self, x, y):
        return loss_fn(self.model(x), y)

    def step(self, x, y):
        loss, grads = self.grad_fn(x, y)
        self.optimizer(grads)
        return loss.item()

    def train(self):
        self.grad_fn = ms.ops.value_and_grad(self.forward, None, self.optimizer.parameters)
        for _ in range(EPOCHS):
            for x, y in self.loader.create_tuple_iterator():
                self.step(x, y)


Trainer(net, train).train()
