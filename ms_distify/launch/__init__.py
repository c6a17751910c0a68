"""Writes the launcher that starts a converted program: one process per card, watched to the end."""

from ms_distify.launch.launcher import LAUNCHER_NAME, is_ours, render

__all__ = ["LAUNCHER_NAME", "is_ours", "render"]
