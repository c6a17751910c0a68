"""One cell with a wide and a deep part, each with weights, gradients and optimizer of its own."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn, ops

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)


class WideDeepStep(nn.Cell):
    def __init__(self, wide, deep, sens=0.5):
        super().__init__()
        self.wide, self.deep = wide, deep
        self.weights_w = ms.ParameterTuple(wide.trainable_params())
        self.weights_d = ms.ParameterTuple(deep.trainable_params())
        self.optimizer_w = nn.SGD(self.weights_w, 0.2)
        self.optimizer_d = nn.Momentum(self.weights_d, 0.1, 0.9)
        self.grad_w = ops.GradOperation(get_by_list=True, sens_param=True)
        self.grad_d = ops.GradOperation(get_by_list=True, sens_param=True)
        self.sens = sens

    def construct(self, x, y):
        weights_w = self.weights_w
        weights_d = self.weights_d
        loss_w, loss_d = self.wide(x, y), self.deep(x, y)
        sens_w = ops.fill(loss_w.dtype, loss_w.shape, self.sens)
        sens_d = ops.fill(loss_d.dtype, loss_d.shape, self.sens)
        grads_w = self.grad_w(self.wide, weights_w)(x, y, sens_w)
        grads_d = self.grad_d(self.deep, weights_d)(x, y, sens_d)
        return ops.depend(loss_w, self.optimizer_w(grads_w)), ops.depend(loss_d, self.optimizer_d(grads_d))


deep = nn.SequentialCell(nn.Dense(4, 6), nn.Tanh(), nn.Dense(6, 2))
step = WideDeepStep(nn.WithLossCell(nn.Dense(4, 2), nn.MSELoss()), nn.WithLossCell(deep, nn.MSELoss()))

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        step(x, y)
