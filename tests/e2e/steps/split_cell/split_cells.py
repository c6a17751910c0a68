"""A loss cell and the train cell around it."""

import mindspore.nn as nn
import mindspore.ops as ops


class LossCell(nn.Cell):
    def __init__(self, network):
        super().__init__()
        self.network = network
        self.loss = nn.MSELoss()

    def construct(self, x, y):
        return self.loss(self.network(x), y)


class TrainStep(nn.Cell):
    def __init__(self, network, optimizer):
        super().__init__()
        self.network = network
        self.optimizer = optimizer
        self.weights = optimizer.parameters
        self.grad = ops.GradOperation(get_by_list=True)

    def construct(self, x, y):
        loss = self.network(x, y)
        grads = self.grad(self.network, self.weights)(x, y)
        return ops.depend(loss, self.optimizer(grads))
