"""A cell that adds gradients up in parameters and applies them every second step."""

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


class Accumulating(nn.Cell):
    def __init__(self, network, optimizer):
        super().__init__(auto_prefix=False)
        self.network = network
        self.optimizer = optimizer
        self.weights = optimizer.parameters
        self.sums = self.weights.clone(prefix="sums", init="zeros")
        self.grad = ops.GradOperation(get_by_list=True)
        self.hyper_map = ops.HyperMap()

    def construct(self, x, y):
        grads = self.grad(self.network, self.weights)(x, y)
        return self.hyper_map(ops.assign_add, self.sums, grads)

    def apply(self):
        self.optimizer(tuple(s * 0.5 for s in self.sums))
        for s in self.sums:
            ops.assign(s, ops.zeros_like(s))


step = Accumulating(nn.WithLossCell(net, loss_fn), opt)
for _ in range(EPOCHS):
    for number, (x, y) in enumerate(train.create_tuple_iterator()):
        step(x, y)
        if number % 2 == 1:
            step.apply()
