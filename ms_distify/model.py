"""What goes through the pipeline: findings and edits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:  # a file that never says mindspore must not cost the import of libcst (DESIGN 5)
    import libcst as cst

    from .reading.script import Script

CHANGED, KEPT, NOTED, REFUSED = "changed", "kept", "noted", "refused"


@dataclass(frozen=True)
class Finding:
    """What was decided about one site, and why.

    Attributes:
        code: the rule's code, e.g. "MSD201".
        status: "changed", "kept", "noted" or "refused".
        path: the file, as the user named it.
        line: 1-based line of the site.
        column: 1-based column of the site.
        message: one line: what and why; for a refusal also the way out.
    """

    code: str
    status: str
    path: str
    line: int
    column: int
    message: str


@dataclass(frozen=True)
class Need:
    """A name that inserted code uses and the import that gives it.

    Attributes:
        module: the module to import from ("os", "mindspore.communication").
        name: the imported name, or nothing for ``import module``.
        local: what it is called in the file.
    """

    module: str
    name: str
    local: str


@dataclass(frozen=True)
class AddKeywords:
    """Append keyword arguments to a call."""

    script: Script
    call: cst.Call
    keywords: tuple[tuple[str, str], ...]
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True)
class AddParameters:
    """Append parameters that default to None to a function, before ``**kwargs``."""

    script: Script
    function: cst.FunctionDef
    names: tuple[str, ...]
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True)
class Replace:
    """Put other text in the place of an expression."""

    script: Script
    node: cst.CSTNode
    text: str
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True)
class Wrap:
    """Put text before and behind an expression."""

    script: Script
    node: cst.CSTNode
    before: str
    behind: str
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True)
class Guard:
    """Run a simple statement only under a condition."""

    script: Script
    statement: cst.CSTNode
    condition: str
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True)
class Move:
    """Move a simple statement in front of another statement of the same block."""

    script: Script
    statement: cst.CSTNode
    before: cst.CSTNode
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True)
class Insert:
    """Insert lines before or after a statement, in its indentation.

    Attributes:
        order: inserts at one place are put in rising order.
        under: a condition; inserts at one place with one condition share one ``if``.
    """

    script: Script
    statement: cst.CSTNode
    where: str
    lines: tuple[str, ...]
    order: int
    under: str = ""
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True)
class Define:
    """Define a function at the head of a file, below its imports.

    Attributes:
        name: the function's name.
        lines: its source, without indentation; unknown to the file before.
    """

    script: Script
    name: str
    lines: tuple[str, ...]
    needs: tuple[Need, ...] = ()


Edit = Union[AddKeywords, AddParameters, Replace, Wrap, Guard, Move, Insert, Define]


@dataclass(frozen=True)
class Decision:
    """A finding and the edits that carry it out (none unless the status is "changed")."""

    finding: Finding
    edits: tuple[Edit, ...] = field(default=())


def texts(edit: Edit) -> tuple[str, ...]:
    """Return the pieces of code that an edit puts in."""
    if isinstance(edit, AddKeywords):
        return tuple(value for _, value in edit.keywords)
    if isinstance(edit, Replace):
        return (edit.text,)
    if isinstance(edit, Wrap):
        return (edit.before, edit.behind)
    if isinstance(edit, Guard):
        return (edit.condition,)
    if isinstance(edit, Insert):
        return (*edit.lines, edit.under)
    return ()
