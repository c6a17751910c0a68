"""An actor and a critic: advantages computed by the critic weigh the loss of the actor."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn, ops

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)


class Agent:
    def __init__(self):
        self.value_net, self.policy_net = nn.Dense(4, 1), nn.Dense(4, 2)
        self.value_optimizer = nn.SGD(self.value_net.trainable_params(), 0.1)
        self.policy_optimizer = nn.SGD(self.policy_net.trainable_params(), 0.1)
        self.grad_fn_value = ms.value_and_grad(self.value_loss, None, self.value_optimizer.parameters)
        self.grad_fn_policy = ms.value_and_grad(self.policy_loss, None, self.policy_optimizer.parameters)

    def value_loss(self, target, states):
        return ((self.value_net(states) - target) ** 2).mean()

    def policy_loss(self, advantages, states):
        return -(ops.log_softmax(self.policy_net(states))[:, :1] * advantages).mean()

    def learn(self, states, rewards):
        target = rewards + 0.9 * self.value_net(states)
        advantages = target - self.value_net(states)
        _, grad_value = self.grad_fn_value(target, states)
        _, grad_policy = self.grad_fn_policy(advantages, states)
        self.value_optimizer(grad_value)
        self.policy_optimizer(grad_policy)


agent = Agent()

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        agent.learn(x, y[:, :1])
