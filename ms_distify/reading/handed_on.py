"""Library calls that hand on what they are given: iterators, ``zip``, dataset methods, ``getattr``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ..mindspore import catalog, names, wrappers
from . import members
from .bindings import literal
from .origin import ELEMENT, At, Origin, Part

if TYPE_CHECKING:
    from .flow import Flow

# Built-ins and wrappers that give their first argument in the same shape.
_TRANSPARENT = (
    frozenset(
        {
            "iter",
            "list",
            "tuple",
            "reversed",
            "sorted",
            "copy.copy",
            "copy.deepcopy",
            "itertools.islice",
            "itertools.cycle",
            "itertools.chain",
            "tqdm",
            "tqdm.tqdm",
            "tqdm.auto.tqdm",
            "tqdm.notebook.tqdm",
            "tqdm.autonotebook.tqdm",
            "tqdm.std.tqdm",
            "tqdm.rich.tqdm",
            "rich.progress.track",
            "progressbar.progressbar",
            "alive_progress.alive_it",
        }
    )
    | names.DATASET_HELPERS
)
# Of these, what they give is made of every argument.
_OF_ALL = frozenset({"itertools.chain"})
# The keyword under which the first argument may be passed.
_FIRST_KEYWORDS = frozenset({"iterable", "iter", "dataset", "sequence", "obj"})
_CONTAINERS = frozenset({"dict", "list", "set", "collections.OrderedDict", "collections.defaultdict",
                         "collections.deque", "collections.ChainMap"})  # fmt: skip


def dataset_step(flow: Flow, node: cst.Call, callee: Origin, at: At) -> Iterator[Origin] | None:
    """Go on behind a dataset method (``x.batch(8)``), or return None if the call is no such thing."""
    if not isinstance(node.func, cst.Attribute) or callee.kind not in ("external", "unknown"):
        return None
    method = catalog.method(node.func.attr.value)
    # `ds.zip(...)`, `ds.MnistDataset.batch`: called on the module or a class, not on a dataset
    own = callee.qualified.startswith("mindspore.dataset.") and "()" not in callee.qualified
    if method is None or own or not (method.returns or method.name in names.ITERATORS):
        return None
    inner = at.through(node)
    if method.returns == "datasets":  # split(): whichever part, it comes from here
        kind, key = at.selectors[0] if at.selectors else ELEMENT
        index = key if kind == "item" and isinstance(key, int) else None
        part = Part(at.script, node, index, at.calls)
        inner = replace(inner, selectors=at.selectors[1:], parts=(*at.parts, part))
    return _behind(flow, node, method.name, inner)


def _behind(flow: Flow, node: cst.Call, name: str, inner: At) -> Iterator[Origin]:
    assert isinstance(node.func, cst.Attribute)
    yield from flow.walk(node.func.value, inner)
    if name in ("zip", "concat"):
        for arg in node.args:
            yield from _parts(flow, arg.value, inner)


def _parts(flow: Flow, value: cst.BaseExpression, at: At) -> Iterator[Origin]:
    """Walk a dataset, or each of a tuple of datasets."""
    for origin in flow.origins(at.script, value, at.calls):
        if isinstance(origin.node, (cst.Tuple, cst.List)) and origin.kind == "literal":
            inner = replace(at, script=origin.script, calls=origin.calls)
            for element in origin.node.elements:
                yield from flow.walk(element.value, inner)
        else:
            yield from flow.walk(value, at)
            return


def library_call(flow: Flow, node: cst.Call, callee: Origin, at: At) -> Iterator[Origin]:
    """Go on at, or end in, a call of something outside the program."""
    qualified = callee.qualified
    args = [arg.value for arg in node.args if arg.keyword is None and not arg.star]
    if not args:
        args = [arg.value for arg in node.args if arg.keyword is not None and arg.keyword.value in _FIRST_KEYWORDS]
    if qualified == "enumerate" and args:
        yield from _enumerate(flow, node, args[0], at)
    elif qualified == "zip" and args:
        yield from _zip(flow, args, at)
    elif qualified == "next" and args:
        yield from flow.walk(args[0], at.taking(ELEMENT, *at.selectors))
    elif qualified == "getattr" and len(args) > 1 and isinstance(literal(args[1]), str):
        yield from members.attribute(flow, args[0], str(literal(args[1])), node, at)
    elif qualified in _TRANSPARENT and args:
        for value in args if qualified in _OF_ALL else args[:1]:
            yield from flow.walk(value, at)
    elif qualified in names.DATASET_ZIP and (args or node.args):
        inner = at.through(node)
        yield from _parts(flow, (args or [node.args[0].value])[0], inner)
    elif qualified in wrappers.LOADERS and args:
        for origin in flow.walk(args[0], at.through(node)):
            yield at.origin("call", node, qualified) if origin.kind == "literal" else origin
    elif qualified in _CONTAINERS and at.selectors:
        yield from _container(flow, node, args, at)
    else:
        yield at.origin("call", node, qualified)


def _enumerate(flow: Flow, node: cst.Call, value: cst.BaseExpression, at: At) -> Iterator[Origin]:
    if at.selectors[:2] == (ELEMENT, ("item", 0)):
        yield at.origin("unknown", node, reason="a counter")
        return
    kept = at.selectors
    if at.selectors[:2] == (ELEMENT, ("item", 1)):
        kept = (ELEMENT, *at.selectors[2:])
    yield from flow.walk(value, at.taking(*kept))


def _zip(flow: Flow, args: list[cst.BaseExpression], at: At) -> Iterator[Origin]:
    chosen, kept = args, at.selectors
    if len(at.selectors) > 1 and at.selectors[0] == ELEMENT and at.selectors[1][0] == "item":
        index = at.selectors[1][1]
        chosen = args[index : index + 1] if isinstance(index, int) else args
        kept = (ELEMENT, *at.selectors[2:])
    for value in chosen:
        yield from flow.walk(value, at.taking(*kept))


def _container(flow: Flow, node: cst.Call, args: list[cst.BaseExpression], at: At) -> Iterator[Origin]:
    """``dict(train=x)``, ``list()``: its keywords, what it copies, and what is put in later."""
    kind, key = at.selectors[0]
    rest = at.taking(*at.selectors[1:])
    found = False
    for arg in node.args:
        if arg.keyword is not None and (kind != "item" or not isinstance(key, str) or arg.keyword.value == key):
            found = True
            yield from flow.walk(arg.value, rest)
    for value in args:
        found = True
        yield from flow.walk(value, at)
    for origin in flow.put_in(node, at):
        found = True
        yield origin
    if not found:
        yield at.origin("unknown", node, reason="nothing is seen to be put in here")
