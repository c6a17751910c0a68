"""Folders that a script adds to ``sys.path`` before it imports, as far as they are written out."""

from __future__ import annotations

from pathlib import Path

import libcst as cst

from .bindings import dotted, literal
from .script import Script

_ADDING = frozenset({"sys.path.append", "sys.path.insert", "path.append", "path.insert"})
_SAME = frozenset({"os.path.abspath", "os.path.realpath", "os.path.normpath", "str", "pathlib.Path", "Path"})


def search_path(entry: Script) -> list[Path]:
    """Return the folders, in the order of the source; relative ones from the script's folder."""
    found = []
    for call in entry.bindings.calls:
        if dotted(call.func) in _ADDING and call.args:
            folder = _folder(entry, call.args[-1].value)
            if folder is not None:
                found.append(folder.resolve())
    return found


def _folder(entry: Script, node: cst.BaseExpression) -> Path | None:
    """Return the folder an expression names: a literal, or something made of ``__file__``."""
    assert entry.file is not None
    value = literal(node)
    if isinstance(value, str):
        return entry.file.resolve().parent / value
    if isinstance(node, cst.Name):
        if node.value == "__file__":
            return entry.file.resolve()
        bindings = entry.bindings.lookup(node)
        only = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
        return _folder(entry, only) if only is not None else None
    if isinstance(node, cst.Attribute) and node.attr.value == "parent":
        inner = _folder(entry, node.value)
        return None if inner is None else inner.parent
    if isinstance(node, cst.Subscript) and isinstance(node.value, cst.Call):
        return _split(entry, node, node.value)
    if isinstance(node, cst.Call):
        return _called(entry, node)
    return None


def _split(entry: Script, node: cst.Subscript, call: cst.Call) -> Path | None:
    """Return the folder that ``os.path.split(path)[0]`` is."""
    index = node.slice[0].slice if len(node.slice) == 1 else None
    first = isinstance(index, cst.Index) and literal(index.value) == 0
    if not first or dotted(call.func) != "os.path.split" or not call.args:
        return None
    inner = _folder(entry, call.args[0].value)
    return None if inner is None else inner.parent


def _called(entry: Script, node: cst.Call) -> Path | None:
    name = dotted(node.func)
    if name == "os.getcwd":
        return entry.file.resolve().parent if entry.file is not None else None
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in ("resolve", "absolute"):
        return _folder(entry, node.func.value)
    inner = _folder(entry, node.args[0].value) if node.args else None
    if inner is None:
        return None
    if name in _SAME:
        return inner
    if name == "os.path.dirname":
        return inner.parent
    if name == "os.path.join":
        parts = [literal(arg.value) for arg in node.args[1:]]
        strings = [part for part in parts if isinstance(part, str)]
        return inner.joinpath(*strings) if len(strings) == len(parts) else None
    return None
