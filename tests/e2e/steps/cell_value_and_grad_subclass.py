"""A subclass of TrainOneStepCell that takes gradients with value_and_grad."""

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


class Step(nn.TrainOneStepCell):
    def __init__(self, network, optimizer):
        super().__init__(network, optimizer)
        self.grad_fn = ms.value_and_grad(network, None, optimizer.parameters)

    def construct(self, *inputs):
        loss, grads = self.grad_fn(*inputs)
        return ops.depend(loss, self.optimizer(grads))


step = Step(nn.WithLossCell(net, loss_fn), opt)
step.set_train()

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        step(x, y)
