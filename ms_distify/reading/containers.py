"""Lists and dictionaries: what is written in them, and what is put into them later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from .bindings import Selector, dotted, literal
from .origin import ELEMENT, At, Entry, Origin, Selectors
from .script import Script

if TYPE_CHECKING:
    from .flow import Flow

# Methods that put something into a container: name -> (position of the value, whether the value's elements
# are meant).
_PUTTING = {"append": (0, False), "appendleft": (0, False), "add": (0, False), "insert": (1, False),
            "extend": (0, True), "update": (0, True), "setdefault": (1, False)}  # fmt: skip

# Something put into a container: file, container, key (``...`` where not literal), value, what is taken of
# the value.
_Put = tuple[Script, cst.BaseExpression, object, cst.BaseExpression, Selectors]


class Containers:
    """What the containers of a program hold."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._puts: list[_Put] | None = None
        self._index: dict[str, list[_Put]] | None = None

    def sequence(self, node: cst.Tuple | cst.List | cst.Set, at: At) -> Iterator[Origin]:
        """Go on in a tuple, list or set that is written out."""
        if not at.selectors:
            yield at.origin("literal", node)
            return
        kind, key = at.selectors[0]
        rest = at.taking(*at.selectors[1:])
        starred = any(isinstance(element, cst.StarredElement) for element in node.elements)
        if kind == "item" and isinstance(key, int) and not starred and -len(node.elements) <= key < len(node.elements):
            yield from self._flow.walk(node.elements[key].value, rest)
            return
        for element in node.elements:
            inner = at if isinstance(element, cst.StarredElement) else rest
            yield from self._flow.walk(element.value, inner)
        put = list(self.put_in(node, at))
        yield from put
        if not node.elements and not put:
            yield at.origin("unknown", node, reason="nothing is seen to be put in here")

    def dictionary(self, node: cst.Dict, at: At) -> Iterator[Origin]:
        """Go on in a dictionary that is written out."""
        if not at.selectors:
            yield at.origin("literal", node)
            return
        kind, key = at.selectors[0]
        rest = at.taking(*at.selectors[1:])
        found = False
        for element in node.elements:
            if isinstance(element, cst.StarredDictElement):
                found = True
                yield from self._flow.walk(element.value, at)
                continue
            own = literal(element.key) if isinstance(element, cst.DictElement) else ...
            if kind != "item" or key is None or own is ... or own == key:
                found = True
                yield from self._flow.walk(element.value, rest)
        for origin in self.put_in(node, at):
            found = True
            yield origin
        if not found:
            yield at.origin("unknown", node, reason=f"no entry {key!r} in this dictionary")

    def comprehension(self, node: cst.BaseComp, at: At) -> Iterator[Origin]:
        """Go on in a comprehension: every element is made by the same expression."""
        value = node.value if isinstance(node, cst.DictComp) else getattr(node, "elt", None)
        if at.selectors and isinstance(value, cst.BaseExpression):
            yield from self._flow.walk(value, at.taking(*at.selectors[1:]))
        else:
            yield at.origin("unknown", node, reason="a comprehension as a whole")

    def put_in(self, container: cst.CSTNode, at: At) -> Iterator[Origin]:
        """Go on at what ``d[key] = value``, ``l.append(value)`` and the like put into a container.

        Only under the name the container is assigned to: following every list that is appended to anywhere
        would lead through all of a program.
        """
        for name in self._names(at.script, container):
            yield from self.put_under(name, at)

    def put_under(self, name: cst.BaseExpression, at: At) -> Iterator[Origin]:
        """Go on at what is put into a container under a name or attribute that is spelled like this one."""
        kind, key = at.selectors[0]
        spelled = dotted(name)
        for script, receiver, own, value, path in self._by_name().get(spelled or "", ()):
            if script is not at.script or (kind == "item" and isinstance(key, str) and own is not ... and own != key):
                continue
            if isinstance(name, cst.Name) and not self._same(script, name, receiver):
                continue
            entries = at.entries
            slot = script.tree.parent.get(receiver)
            if kind == "item" and isinstance(key, str) and own is ... and isinstance(slot, cst.Subscript):
                entries = (*entries, Entry(script, slot, key))
            # What is put in where the walk has been led by a call was put in by that call.
            function = script.bindings.scope_of(receiver).function()
            calls = at.calls if at.calls and function is not None and function.node is at.calls[-1].function else ()
            yield from self._flow.walk(
                value, replace(at, calls=calls, selectors=(*path, *at.selectors[1:]), entries=entries)
            )

    def _same(self, script: Script, name: cst.Name, receiver: cst.BaseExpression) -> bool:
        """Whether two uses of a name mean the same variable."""
        assert isinstance(receiver, cst.Name)
        homes = [
            next((b.scope for b in script.bindings.lookup(use)), script.bindings.scope_of(use))
            for use in (name, receiver)
        ]
        return homes[0] is homes[1]

    def _names(self, script: Script, container: cst.CSTNode) -> list[cst.BaseExpression]:
        """Return the names and attributes that a container is assigned to where it is written."""
        parent = script.tree.parent.get(container)
        if isinstance(parent, cst.Assign):
            return [target.target for target in parent.targets]
        return [parent.target] if isinstance(parent, (cst.AnnAssign, cst.NamedExpr)) else []

    def _by_name(self) -> dict[str, list[_Put]]:
        if self._index is None:
            self._index = {}
            for put in self._all_puts():
                name = dotted(put[1])
                if name is not None:
                    self._index.setdefault(name, []).append(put)
        return self._index

    def puts(self) -> Iterator[tuple[Script, cst.BaseExpression, object, cst.BaseExpression]]:
        """Yield everything that is put into containers: file, container, key, value."""
        return ((script, receiver, key, value) for script, receiver, key, value, _ in self._all_puts())

    def _all_puts(self) -> list[_Put]:
        if self._puts is None:
            self._puts = []
            for script in self._flow.project.scripts():
                for target, value, path in script.bindings.item_assignments:
                    self._puts.append((script, target.value, self._key(target), value, path))
                for call in script.bindings.calls:
                    self._puts.extend(self._of_call(script, call))
        return self._puts

    def _key(self, target: cst.Subscript) -> object:
        index = target.slice[0].slice if len(target.slice) == 1 else None
        return literal(index.value) if isinstance(index, cst.Index) else ...

    def _of_call(self, script: Script, call: cst.Call) -> Iterator[_Put]:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value not in _PUTTING:
            return
        position, elements = _PUTTING[func.attr.value]
        path: tuple[Selector, ...] = (ELEMENT,) if elements else ()
        for place, arg in enumerate(call.args):
            if arg.keyword is not None and func.attr.value == "update":
                yield script, func.value, arg.keyword.value, arg.value, ()
            elif arg.keyword is None and not arg.star and place == position:
                yield script, func.value, ..., arg.value, path
