"""Which keywords the ``**`` arguments of a call can carry."""

from __future__ import annotations

import libcst as cst

from .bindings import dotted, literal
from .flow import Flow
from .script import Script

Keywords = dict[str, list[tuple[Script, cst.BaseExpression]]]
_DICTS = frozenset({"dict", "collections.OrderedDict"})


def star_keywords(flow: Flow, script: Script, call: cst.Call) -> Keywords | None:
    """Return the keywords that ``**`` arguments can carry, with their values; None if not known."""
    found: Keywords = {}
    for arg in call.args:
        if arg.star == "**" and not _gather(flow, script, arg.value, found, set()):
            return None
    return found


def _gather(flow: Flow, script: Script, node: cst.BaseExpression, found: Keywords, seen: set[cst.CSTNode]) -> bool:
    """Add the keys of a mapping to ``found``; return whether all of them are known."""
    if node in seen:
        return True
    seen.add(node)
    function = _collector(script, node)
    if function is not None:
        return _added(flow, script, node, found) and _forwarded(flow, function, found, seen)
    origins = flow.origins(script, node)
    return (
        bool(origins)
        and all(_mapping(flow, origin.script, origin.node, origin.qualified, found, seen) for origin in origins)
        and _added(flow, script, node, found)
    )


def _mapping(
    flow: Flow, script: Script, node: cst.CSTNode, qualified: str, found: Keywords, seen: set[cst.CSTNode]
) -> bool:
    if isinstance(node, cst.Dict):
        for element in node.elements:
            if isinstance(element, cst.StarredDictElement):
                if not _gather(flow, script, element.value, found, seen):
                    return False
                continue
            key = literal(element.key) if isinstance(element, cst.DictElement) else ...
            if not isinstance(key, str):
                return False
            found.setdefault(key, []).append((script, element.value))
        return True
    if isinstance(node, cst.Call) and qualified in _DICTS:
        for arg in node.args:
            if arg.keyword is not None:
                found.setdefault(arg.keyword.value, []).append((script, arg.value))
            elif arg.star == "*" or not _gather(flow, script, arg.value, found, seen):
                return False
        return True
    return False


def _collector(script: Script, node: cst.BaseExpression) -> cst.FunctionDef | None:
    """Return the function whose ``**kwargs`` a name is, if it is one."""
    bindings = script.bindings.lookup(node) if isinstance(node, cst.Name) else []
    if len(bindings) != 1 or not isinstance(bindings[0].node, cst.Param):
        return None
    function = bindings[0].scope.node
    if isinstance(function, cst.FunctionDef) and function.params.star_kwarg is bindings[0].node:
        return function
    return None


def _forwarded(flow: Flow, function: cst.FunctionDef, found: Keywords, seen: set[cst.CSTNode]) -> bool:
    """Add what the callers of a function put into its ``**kwargs``."""
    named = {p.name.value for p in (*function.params.params, *function.params.kwonly_params)}
    sites = flow.call_sites(function)
    for home, call in sites:
        for arg in call.args:
            if arg.keyword is not None and arg.keyword.value not in named:
                found.setdefault(arg.keyword.value, []).append((home, arg.value))
            elif arg.star == "**" and not _gather(flow, home, arg.value, found, seen):
                return False
    return bool(sites)


def _added(flow: Flow, script: Script, node: cst.BaseExpression, found: Keywords) -> bool:
    """Add what is put into the same mapping later, by ``options["key"] = value`` and the like."""
    name = dotted(node)
    for home, receiver, key, value in flow.puts():
        if home is script and name is not None and dotted(receiver) == name:
            if not isinstance(key, str):
                return False
            found.setdefault(key, []).append((home, value))
    return True


__all__ = ["Keywords", "star_keywords"]
