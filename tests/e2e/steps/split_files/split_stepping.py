"""Makes the training step for a network and its optimizer."""

from mindspore import ops


def make_step(network, criterion, optimizer):
    def forward(x, y):
        return criterion(network(x), y)

    grad_fn = ops.value_and_grad(forward, None, weights=optimizer.parameters)

    def train_step(x, y):
        loss, grads = grad_fn(x, y)
        grads = ops.clip_by_global_norm(grads, 0.2)
        loss = ops.depend(loss, optimizer(grads))
        return loss

    return train_step
