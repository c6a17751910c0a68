"""A student is trained towards a teacher that stays."""

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


class Step(nn.Cell):
    def __init__(self, student, teacher, optimizer):
        super().__init__()
        self.student_model = student
        self.teacher_model = teacher
        self.optimizer = optimizer
        self.weights = self.student_model.trainable_params()
        self.grad_fn = ops.value_and_grad(self.forward, None, self.weights, has_aux=False)

    def forward(self, x, y):
        out = self.student_model(x)
        goal = ops.stop_gradient(self.teacher_model(x))
        return ((out - goal) ** 2).mean() + ((out - y) ** 2).mean()

    def construct(self, x, y):
        loss, grads = self.grad_fn(x, y)
        self.optimizer(grads)
        return loss


step = Step(net, nn.Dense(4, 2), opt)
step.set_train()

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        step(x, y)
