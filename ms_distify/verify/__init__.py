"""Proof by running: the original on one card and the converted program on N ranks, watched and compared.

This is the one part of ms-distify that runs the user's code.
"""

from .command import Wish, verify
from .outcome import Outcome

__all__ = ["Outcome", "Wish", "verify"]
