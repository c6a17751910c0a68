"""Rewrites single-card MindSpore training programs into data-parallel ones."""

__version__ = "0.1.0"
