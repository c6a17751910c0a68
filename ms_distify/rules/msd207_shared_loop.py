"""A loop that trains on one dataset and evaluates another.

Where one loop serves both, and the step stands under a condition, the flow cannot tell which dataset trains: sharding
all of them would give every rank metrics of its own rows. ``# ms-distify: eval`` on the constructor's line of the
evaluation data settles it. The same holds for rows taken with ``next`` beside a step that other rows reach, and for two
datasets that both reach the very same training and evaluation, as two objects of one class that hold one each; and for one
constructor that builds them all by turns, where that comment cannot help.

Before (refused)::

    for phase in ("train", "val"):
        for x, y in loaders[phase]:
            if phase == "train":
                step(x, y)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..model import Decision
from ..reading.bindings import literal, parameters
from ..reading.pipeline import method_name
from ..reading.roles import Sink, Site, Use, Way, parts
from ..reading.script import Script
from ..reading.tree import children, walk
from . import REFUSED, Context, decide, rule

CODE = "MSD207"


@rule(CODE, "loops that train and evaluate")
def check(context: Context) -> Iterator[Decision]:
    """Refuse loops over several datasets that train only under a condition."""
    roles = context.program.roles
    for sink in roles.sinks:
        loop = sink.node
        if sink.role != "train" or not isinstance(loop, cst.For) or _always(context, sink.script, loop):
            continue
        fed = {
            (site.call, tuple(edge.call for edge in use.calls))
            for site in roles.sites
            for use in site.uses
            if use.node is loop and not context.program.pragma(site.script, site.call, "eval")
        }
        if len(fed) > 1:
            message = (
                "this loop reads several datasets and trains only under a condition, so which of them trains cannot be "
                "told; write '# ms-distify: eval' on the line of each constructor of evaluation data"
            )
            yield decide(CODE, REFUSED, sink.script, loop, message)
        elif fed and _by_turns(context, sink):
            message = (
                "this loop trains only under a condition that holds for all of it or not at all, and reads one of several "
                "datasets that one constructor builds, so which of them trains cannot be told; build the dataset that trains "
                "by a constructor of its own, or write '# ms-distify: train' on its line if all of them are dealt"
            )
            yield decide(CODE, REFUSED, sink.script, loop, message)
    yield from _taken(context)
    yield from _alike(context)


def _by_turns(context: Context, sink: Sink) -> bool:
    """Whether a loop trains in some of its runs alone, and reads what one constructor builds again and again."""
    loop = sink.node
    assert isinstance(loop, cst.For)
    tests = [test for test in _conditions(context, sink.script, loop) if _outside(sink.script, loop, test)]
    named = {part.value for test in tests for part in walk(test) if isinstance(part, cst.Name)}
    return bool(tests) and any(
        _again(context, sink, use, script, node, named)
        for site in context.program.roles.sites
        if not context.program.pragma(site.script, site.call, "train")
        for use in site.uses
        if use.node is loop
        for script, node in [(site.script, site.call), *((edge.script, edge.call) for edge in use.calls)]
    )


def _again(context: Context, sink: Sink, use: Use, script: Script, node: cst.CSTNode, named: set[str]) -> bool:
    """Whether a part of a dataset's building is run several times, for datasets that a loop tells apart by some names."""
    for parent in script.tree.ancestors(node):
        if isinstance(parent, (cst.FunctionDef, cst.Lambda)):
            sites = context.program.flow.call_sites(parent)
            asked = parent not in script.tree.ancestors(sink.node) or named & {
                param.name.value for param in parameters(parent)
            }
            several = len(sites) > 1 or any(
                isinstance(around, (cst.For, cst.BaseComp))
                for home, call in sites
                for around in home.tree.ancestors(call)
            )
            return several and bool(asked) and all(edge.function is not parent for edge in use.calls)
        target = parent.target if isinstance(parent, cst.For) else None
        if isinstance(parent, cst.BaseComp):
            return True
        if target is not None and node not in set(walk(parent.iter)):  # type: ignore[attr-defined]
            within = parent in set(sink.script.tree.ancestors(sink.node))
            if not within or named & {part.value for part in walk(target) if isinstance(part, cst.Name)}:
                return True
    return False


def _conditions(context: Context, script: Script, loop: cst.For) -> Iterator[cst.BaseExpression]:
    """Yield the conditions of a loop's body of which one branch alone trains."""
    for part in parts(loop.body):
        if isinstance(part, cst.If):
            other = part.orelse is not None and context.program.roles.steps(script, part.orelse)
            if context.program.roles.steps(script, part.body) != other:
                yield part.test


def _outside(script: Script, loop: cst.For, test: cst.BaseExpression) -> bool:
    """Whether a condition asks for nothing but what is set outside a loop, and so is the same in all its rounds."""
    start, end = script.tree.span(loop)
    asked = [part for part in walk(test) if isinstance(part, cst.Name) and literal(part) is ...]
    found = [binding for part in asked for binding in script.bindings.lookup(part)]
    return bool(found) and not any(start <= binding.at < end for binding in found)


def _taken(context: Context) -> Iterator[Decision]:
    """Refuse rows taken by ``next`` beside a step that other rows are seen to reach, and these are not."""
    roles, differs = context.program.roles, context.program.differs
    taken = {
        (site.call, tuple(edge.call for edge in use.calls)): use
        for site in roles.sites
        for use in site.uses_as("train")
        if use.how.startswith("next() ") and not context.program.pragma(site.script, site.call, "eval")
    }
    if not taken:
        return
    steps = [sink for sink in roles.sinks if sink.role == "train" and isinstance(sink.node, cst.Call) and sink.dataset]
    reach = {
        found
        for sink in steps
        if sink.what != "next()" and sink.dataset is not None
        for found in differs.rows(sink.script, sink.dataset)
    }
    for key, use in taken.items():
        if reach and key not in reach and not context.program.pragma(use.script, key[0], "train"):
            message = (
                "other rows reach the training step, and these are not seen to, so whether they train cannot be told; write "
                "'# ms-distify: eval' (or 'train') on the line of their constructor"
            )
            yield decide(CODE, REFUSED, use.script, use.node, message)


def _alike(context: Context) -> Iterator[Decision]:
    """Refuse two datasets that are both built and both reach the very same training and evaluation, unjoined.

    One of them trains and the other evaluates, as two objects of a class that holds a loader, or by turns; which, the
    flow of data does not tell.
    """
    first: dict[frozenset[tuple[str, cst.CSTNode]], tuple[Site, Use]] = {}
    for site in context.program.roles.sites:
        if any(context.program.pragma(site.script, site.call, word) for word in ("train", "eval")):
            continue
        ways: dict[Way, list[Use]] = {}
        for use in site.uses:
            ways.setdefault(use.way, []).append(use)
        for uses in ways.values():
            reached = frozenset((use.role, use.node) for use in uses)
            trains = next((use for use in uses if use.role == "train"), None)
            if trains is None or len({role for role, _ in reached}) == 1 or any(map(_joined, uses)):
                continue
            other = first.setdefault(reached, (site, trains))
            if other[1] is not trains and not _alternatives(other, (site, trains)):
                message = (
                    f"this and the dataset of {other[0].script.where(other[0].call)} reach the same training and the same "
                    "evaluation, so which of them trains cannot be told; write '# ms-distify: train' and 'eval' on "
                    "their lines"
                )
                yield decide(CODE, REFUSED, site.script, site.call, message)


def _joined(use: Use) -> bool:
    """Whether a dataset is put together with others on its way."""
    return any(method_name(script, node) in ("concat", "zip") for script, node in use.methods)


def _alternatives(first: tuple[Site, Use], second: tuple[Site, Use]) -> bool:
    """Whether two datasets are built in two branches of one condition, so that there is but one of them."""
    branches = []
    for site, use in (first, second):
        places = [(site.script, site.call), *((edge.script, edge.call) for edge in use.calls)]
        branches.append({branch for script, call in places for branch in _branches(script, call)})
    if any(a is b and inside is not other for a, inside in branches[0] for b, other in branches[1]):
        return True
    owners = [_method(site) for site, _ in (first, second)]
    return None not in owners and owners[0] is not owners[1]


def _method(site: Site) -> cst.CSTNode | None:
    """Return the method in which a dataset is built: heirs that build one each are there by turns."""
    scope = site.script.bindings.scope_of(site.call).function()
    return scope.node if scope is not None and scope.parent is not None and scope.parent.kind == "class" else None


def _branches(script: Script, node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    """Yield the conditions around a node, up to its function, each with the branch of it that the node is in."""
    below = node
    for parent in script.tree.ancestors(node):
        if isinstance(parent, (cst.FunctionDef, cst.Lambda)):
            return
        if isinstance(parent, (cst.If, cst.IfExp)):
            yield parent, below
        below = parent


def _always(context: Context, script: Script, loop: cst.For) -> bool:
    """Whether a step of a loop's body stands under no condition, or in both branches of one."""
    stack: list[cst.CSTNode] = [loop.body]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.If) and isinstance(node.orelse, cst.Else):
            if all(context.program.roles.steps(script, branch) for branch in (node.body, node.orelse.body)):
                return True
        if isinstance(node, (cst.If, cst.IfExp, cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            continue
        if isinstance(node, cst.Call) and context.program.roles.steps(script, node):
            return True
        stack.extend(children(node))
    return False
