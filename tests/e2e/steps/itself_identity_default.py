"""A cell whose reducer is the identity until the parallel mode says otherwise."""

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
    def __init__(self, network, optimizer, sens=1.0):
        super(nn.TrainOneStepCell, self).__init__(auto_prefix=False)
        self.network = network
        self.weights = optimizer.parameters
        self.optimizer = optimizer
        self.grad = ops.GradOperation(get_by_list=True, sens_param=True)
        self.sens = sens
        self.grad_reducer = ops.identity
        self.parallel_mode = ms.get_auto_parallel_context("parallel_mode")
        self.reducer_flag = self.parallel_mode in (ms.ParallelMode.DATA_PARALLEL, ms.ParallelMode.HYBRID_PARALLEL)
        if self.reducer_flag:
            self.mean = ms.get_auto_parallel_context("gradients_mean")
            self.degree = ms.get_auto_parallel_context("device_num")
            self.grad_reducer = nn.DistributedGradReducer(self.weights, self.mean, self.degree)

    def construct(self, *inputs):
        loss = self.network(*inputs)
        sens = ops.fill(loss.dtype, loss.shape, self.sens)
        grads = self.grad(self.network, self.weights)(*inputs, sens)
        grads = self.grad_reducer(grads)
        self.optimizer(grads)
        return loss


step = Step(nn.WithLossCell(net, loss_fn), opt)
step.set_train()

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        step(x, y)
