"""One file of a program: its text, tree and bindings."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import libcst as cst

from .bindings import Bindings
from .source import Source, decode
from .tree import Tree, parse


@dataclass(eq=False)
class Script:
    """A Python file that has been read.

    Attributes:
        path: the file's name in messages.
        file: where it lies, None for standard input without a name.
        tree: the parsed text.
        named: whether the user named this file, so that it may be rewritten.
    """

    path: str
    file: Path | None
    tree: Tree
    named: bool = True
    _pragmas: dict[int, str] | None = field(default=None, repr=False)

    @cached_property
    def bindings(self) -> Bindings:
        """The scopes and names of the file."""
        return Bindings(self.tree)

    @property
    def source(self) -> Source:
        """The text of the file."""
        return self.tree.source

    def line(self, node: cst.CSTNode) -> int:
        """Return the 1-based line of a node."""
        return self.tree.line(node)

    def where(self, node: cst.CSTNode) -> str:
        """Return ``file:line`` of a node."""
        return f"{self.path}:{self.tree.line(node)}"


def read_script(raw: bytes, path: str, file: Path | None = None, *, named: bool = True) -> Script:
    """Read one file.

    Raises:
        SourceError: the file cannot be read as Python.
    """
    return Script(path, file, parse(decode(raw, path)), named)
