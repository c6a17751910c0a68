"""Gradients that are averaged already.

A program that passes its gradients through a ``nn.DistributedGradReducer`` of its own, or through the one a train cell
inherits, gets no second one: two would divide twice.

Before and after (kept)::

    grads = self.grad_reducer(grads)
    self.optimizer(grads)
"""

from __future__ import annotations

from . import documented

# Decided together with MSD301, which follows the gradients.
documented("MSD304", "gradients that are averaged already", __doc__)
