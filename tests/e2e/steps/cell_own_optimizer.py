"""A train cell that builds its optimizer itself, with a loss scale."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn, ops

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)
net = nn.SequentialCell(nn.Dense(4, 6), nn.Tanh(), nn.Dense(6, 2))
loss_fn = nn.MSELoss()


class Step(nn.Cell):
    def __init__(self, network, lr=0.1, loss_scale=64.0):
        super().__init__(auto_prefix=False)
        self.network = network
        self.network.set_grad()
        self.weights = ms.ParameterTuple(network.trainable_params())
        self.optimizer = nn.Momentum(self.weights, learning_rate=lr, momentum=0.9, loss_scale=loss_scale)
        self.grad = ops.GradOperation(get_by_list=True, sens_param=True)
        self.sens = loss_scale

    def construct(self, x, y):
        weights = self.weights
        loss = self.network(x, y)
        sens = ops.fill(loss.dtype, loss.shape, self.sens)
        grads = self.grad(self.network, weights)(x, y, sens)
        succ = self.optimizer(grads)
        return ops.depend(loss, succ)


step = Step(nn.WithLossCell(net, loss_fn))
step.set_train()

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        step(x, y)
