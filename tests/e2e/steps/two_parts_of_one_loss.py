"""Two optimizers for two parts of one network, gradients taken from one loss for each."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn, ops

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)

body, head = nn.Dense(4, 5), nn.Dense(5, 2)


class Loss(nn.Cell):
    def __init__(self):
        super().__init__()
        self.body, self.head = body, head

    def construct(self, x, y):
        return ((self.head(ops.tanh(self.body(x))) - y) ** 2).mean()


class Step(nn.Cell):
    def __init__(self, network, optimizer_f, optimizer_c):
        super().__init__()
        self.network = network
        self.optimizer_f, self.optimizer_c = optimizer_f, optimizer_c
        self.weights_f = optimizer_f.parameters
        self.weights_c = optimizer_c.parameters
        self.grad = ops.GradOperation(get_by_list=True)

    def construct(self, *inputs):
        loss = self.network(*inputs)
        grads_f = self.grad(self.network, self.weights_f)(*inputs)
        grads_c = self.grad(self.network, self.weights_c)(*inputs)
        loss = ops.depend(loss, self.optimizer_f(grads_f))
        loss = ops.depend(loss, self.optimizer_c(grads_c))
        return loss


step = Step(Loss(), nn.SGD(body.trainable_params(), 0.1), nn.SGD(head.trainable_params(), 0.2))
step.set_train()

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        step(x, y)
