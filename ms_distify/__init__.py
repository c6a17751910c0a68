"""Rewrites single-card MindSpore training programs into data-parallel ones.

>>> from ms_distify import convert
>>> conversion = convert(open("train.py", "rb").read(), "train.py")  # doctest: +SKIP
"""

from .convert import Conversion, InputError, convert
from .model import Finding
from .settings import Settings

__version__ = "0.1.0"
__all__ = ["Conversion", "Finding", "InputError", "Settings", "__version__", "convert"]
