"""An optimizer is built, but nothing that trains with it is found.

A program that builds an optimizer means to train. Where the step cannot be found (a library runs it, a registry hides it),
nothing can be converted, and calling it "not a training program" would leave it wrong on many cards without a word.

Before (refused)::

    optimizer = nn.Adam(net.trainable_params())
    engine.run(net, optimizer)
"""

from __future__ import annotations

from . import documented

# Decided by the pipeline (ms_distify/convert.py), which knows the whole program.
documented("MSD305", "an optimizer without a training", __doc__)
