import mindspore as ms
from mindspore import nn

from .data import loaders


class Trainer:
    def __init__(self, net, args):
        self.net, self.loss_fn = net, nn.MSELoss()
        self.train_set, self.test_set = loaders(args.batch)
        self.optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
        self.grad_fn = ms.value_and_grad(self.forward, None, self.optimizer.parameters)

    def forward(self, x, y):
        return self.loss_fn(self.net(x), y)

    def train_epoch(self):
        for x, y in self.train_set.create_tuple_iterator(num_epochs=1):
            _, grads = self.grad_fn(x, y)
            self.optimizer(grads)

    def evaluate(self):
        losses = [self.forward(x, y).asnumpy() for x, y in self.test_set.create_tuple_iterator(num_epochs=1)]
        return float(sum(losses) / len(losses))
