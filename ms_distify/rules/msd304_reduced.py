"""Gradients that are averaged already.

A program that passes its gradients through a ``nn.DistributedGradReducer`` of its own, or through the one a train cell
inherits, gets no second one: two would divide twice. It must be on where there are many ranks: under a flag that follows
the parallel mode or the number of ranks, or under none. One under a flag that is never switched on counts as none, and
one that adds up (``mean=False``) without a division by the number of ranks is refused (MSD302).

Before and after (kept)::

    grads = self.grad_reducer(grads)
    self.optimizer(grads)
"""

from __future__ import annotations

from . import documented

# Decided together with MSD301, which follows the gradients.
documented("MSD304", "gradients that are averaged already", __doc__)
