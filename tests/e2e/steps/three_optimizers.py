"""Three networks in one cell: a generator and two classifiers that disagree."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn, ops

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)


class Model(nn.Cell):
    def __init__(self):
        super().__init__()
        self.g, self.c1, self.c2 = nn.Dense(4, 5), nn.Dense(5, 2), nn.Dense(5, 2)

    def construct(self, x, y):
        features = ops.tanh(self.g(x))
        one, two = self.c1(features), self.c2(features)
        return ((one - y) ** 2).mean() + ((two - y) ** 2).mean() - 0.1 * ((one - two) ** 2).mean()


class StepAll(nn.Cell):
    def __init__(self, model, optimizer_g, optimizer_c1, optimizer_c2):
        super().__init__()
        self.model = model
        self.g_weights = ms.ParameterTuple(model.g.trainable_params())
        self.c1_weights = ms.ParameterTuple(model.c1.trainable_params())
        self.c2_weights = ms.ParameterTuple(model.c2.trainable_params())
        self.optimizer_g = optimizer_g
        self.optimizer_c1 = optimizer_c1
        self.optimizer_c2 = optimizer_c2
        self.grad = ops.GradOperation(get_by_list=True)

    def construct(self, x, y):
        loss = self.model(x, y)
        grads_g = self.grad(self.model, self.g_weights)(x, y)
        grads_c1 = self.grad(self.model, self.c1_weights)(x, y)
        grads_c2 = self.grad(self.model, self.c2_weights)(x, y)
        self.optimizer_g(grads_g)
        self.optimizer_c1(grads_c1)
        self.optimizer_c2(grads_c2)
        return loss


model = Model()
optimizer_g = nn.SGD(model.g.trainable_params(), 0.1)
optimizer_c1 = nn.SGD(model.c1.trainable_params(), 0.1)
optimizer_c2 = nn.SGD(model.c2.trainable_params(), 0.1)
step = StepAll(model, optimizer_g, optimizer_c1, optimizer_c2)

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        step(x, y)
