"""The steps on a dataset's way from its constructor to its consumer, as a walk records them."""

from __future__ import annotations

import libcst as cst

from ..mindspore import names, wrappers
from .script import Script
from .sinks import argument

_LOADERS = {qualified.rpartition(".")[2] for qualified in wrappers.LOADERS}


def method_name(script: Script, node: cst.CSTNode) -> str:
    """Return the name of a step: a method, ``zip`` for ds.zip, ``concat`` for ``+``, ``batch`` for a loader of a library."""
    if isinstance(node, (cst.BinaryOperation, cst.AugAssign)):
        return "concat"
    func = node.func if isinstance(node, cst.Call) else None
    if _loader(script, func):
        return "batch"
    if isinstance(func, cst.Attribute):
        return "zip" if func.attr.value == "ZipDataset" else func.attr.value
    # The only other functions that a walk records are ds.zip and ZipDataset, whatever they are imported as.
    return "zip" if func is not None else ""


def batching(script: Script, node: cst.CSTNode) -> tuple[cst.BaseExpression | None, cst.BaseExpression | None] | None:
    """Return what a step that forms batches is told for their size and for ``drop_remainder``; None for other steps."""
    if not isinstance(node, cst.Call) or method_name(script, node) != "batch":
        return None
    loader = _loader(script, node.func)
    slots = wrappers.LOADERS[loader] if loader else (("batch_size", 0), ("drop_remainder", 1))
    size, drop = (argument(node, position, name) for name, position in slots)
    return size, drop


def _loader(script: Script, func: cst.CSTNode | None) -> str:
    """Return the loader of a library that a step calls, or nothing."""
    if isinstance(func, cst.Attribute) and func.attr.value in _LOADERS:
        return next(known for known in wrappers.LOADERS if known.endswith(f".{func.attr.value}"))
    if isinstance(func, cst.Name):
        for binding in script.bindings.lookup(func):
            known = names.canonical(binding.qualified or "")
            if known in wrappers.LOADERS:
                return known
    return ""


__all__ = ["batching", "method_name"]
