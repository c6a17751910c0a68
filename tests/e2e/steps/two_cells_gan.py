"""One cell class for a step of the generator and one for the discriminator."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn, ops

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)


class LossG(nn.Cell):
    def __init__(self, generator, discriminator):
        super().__init__(auto_prefix=False)
        self.generator, self.discriminator = generator, discriminator

    def construct(self, z):
        return ((self.discriminator(self.generator(z)) - 1) ** 2).mean()


class LossD(nn.Cell):
    def __init__(self, generator, discriminator):
        super().__init__(auto_prefix=False)
        self.generator, self.discriminator = generator, discriminator

    def construct(self, z, real):
        fake = ops.stop_gradient(self.generator(z))
        return (self.discriminator(fake) ** 2).mean() + ((self.discriminator(real) - 1) ** 2).mean()


class Step(nn.Cell):
    def __init__(self, network, optimizer):
        super().__init__(auto_prefix=False)
        self.network = network
        self.optimizer = optimizer
        self.weight = self.optimizer.parameters
        self.grad = ops.GradOperation(get_by_list=True)

    def construct(self, *inputs):
        out = self.network(*inputs)
        grads = self.grad(self.network, self.weight)(*inputs)
        out = ops.depend(out, self.optimizer(grads))
        return out


generator = nn.Dense(4, 4)
discriminator = nn.SequentialCell(nn.Dense(4, 6), nn.Tanh(), nn.Dense(6, 1))
step_g = Step(LossG(generator, discriminator), nn.SGD(generator.trainable_params(), 0.1))
step_d = Step(LossD(generator, discriminator), nn.SGD(discriminator.trainable_params(), 0.1))

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        step_d(x + 0.5, x)
        step_g(x + 0.5)
