"""Places in a program, and why there is none."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from ..reading.script import Script
from ..reading.timeline import Event, Frame, diverge


@dataclass(frozen=True)
class Place:
    """Where start-up lines go: before or after a statement."""

    script: Script
    statement: cst.CSTNode
    where: str


@dataclass(frozen=True)
class Problem:
    """Why the start-up cannot be placed."""

    code: str
    script: Script
    node: cst.CSTNode
    message: str


def anchor(frame: Frame) -> tuple[Script, cst.CSTNode]:
    """Return the statement of a frame, or the one around it where the block is written on one line."""
    node: cst.CSTNode = frame.statement
    tree = frame.script.tree
    while not isinstance(tree.parent.get(node), (cst.Module, cst.IndentedBlock)):
        parent = tree.parent.get(node)
        if parent is None:
            break
        node = parent
    while isinstance(tree.parent.get(node), cst.If) and isinstance(node, cst.If):
        node = tree.parent[node]  # an elif: insert around the whole chain
    return frame.script, node


def frame_at(first: Event, moved: Event) -> Frame:
    """Return the frame of ``first`` at the level where the way to ``moved`` parts."""
    return first.frames[diverge(first.frames, moved.frames)]


def built_too_early(built: Event, context: Event) -> Problem:
    """Return the problem that something is built before the context is set."""
    where = context.script.where(context.node)
    message = f"{built.what or built.kind} is built before the context at {where}; set the context first"
    return Problem("MSD105", built.script, built.node, message)
