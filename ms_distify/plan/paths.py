"""What is read from the spelling of paths: the folders they lie in, and how they begin."""

from __future__ import annotations

import itertools

import libcst as cst

from ..reading.bindings import literal

Key = tuple[object, ...]


def folder(path: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the part of a path in front of the last one, where it is put together here."""
    if isinstance(path, cst.Call) and len(path.args) > 1 and isinstance(path.func, cst.Attribute):
        return path.args[0].value if path.func.attr.value == "join" else None
    if isinstance(path, cst.BinaryOperation) and isinstance(path.operator, (cst.Add, cst.Divide)):
        return folder(path.left) or path.left
    if isinstance(path, cst.FormattedString) and isinstance(path.parts[0], cst.FormattedStringExpression):
        return path.parts[0].expression
    return None


def plain(path: str) -> str:
    """Return the text of a path as others spell it."""
    return path.removeprefix("./").rstrip("/") or path


def beginning(path: cst.BaseExpression) -> str:
    """Return the text that a path surely begins with."""
    constant = literal(path)
    if isinstance(constant, str):
        return constant
    if isinstance(path, cst.FormattedString):
        texts = list(itertools.takewhile(lambda part: isinstance(part, cst.FormattedStringText), path.parts))
        return "".join(part.value for part in texts if isinstance(part, cst.FormattedStringText))
    if isinstance(path, cst.BinaryOperation):
        first = beginning(path.left)
        return first.partition("%")[0] if isinstance(path.operator, cst.Modulo) else first
    if isinstance(path, cst.Call) and isinstance(path.func, cst.Attribute):
        if path.func.attr.value == "format":
            return beginning(path.func.value).partition("{")[0]
        if path.func.attr.value == "join" and path.args:
            texts_of = [literal(arg.value) for arg in path.args]
            sure = list(itertools.takewhile(lambda text: isinstance(text, str), texts_of))
            return "/".join([*map(str, sure), *([""] if len(sure) < len(texts_of) else [])])
    return ""


def parents(text: str) -> list[str]:
    """Return the folders of a path, the nearest first."""
    names_in = text.removeprefix("./").split("/")[:-1]
    return ["/".join(names_in[:end]) for end in range(len(names_in), 0, -1)]


def pattern(listed: cst.BaseExpression) -> set[Key]:
    """Return what tells the folder in which files are looked for by a pattern."""
    text = beginning(listed)
    return {("text", name) for name in parents(text.partition("*")[0])[:1]} if "*" in text else set()


def dest(flag: object) -> str:
    """Return the attribute that an argument of the command line becomes."""
    return flag.lstrip("-").replace("-", "_") if isinstance(flag, str) else ""


__all__ = ["Key", "beginning", "dest", "folder", "parents", "pattern", "plain"]
