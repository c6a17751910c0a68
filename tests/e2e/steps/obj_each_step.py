"""A method that makes the gradient function for every step, and sets the learning rate."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn, ops

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)


class Trainer:
    def __init__(self):
        self.model = nn.Dense(4, 2)
        self.optimizer = nn.SGD(self.model.trainable_params(), 0.1)
        self.loader = train

    def forward_fn(self, x, y):
        return ((self.model(x) - y) ** 2).mean()

    def train_step(self, x, y, number):
        grad_fn = ms.value_and_grad(self.forward_fn, None, self.optimizer.parameters)
        loss, grads = grad_fn(x, y)
        self.optimizer(grads)
        ops.assign(self.optimizer.learning_rate, ms.Tensor(0.1 / (number + 1), ms.float32))
        return loss

    def run(self):
        for number, (x, y) in enumerate(self.loader.create_tuple_iterator()):
            self.train_step(x, y, number)


if __name__ == "__main__":
    trainer = Trainer()
    for _ in range(EPOCHS):
        trainer.run()
