"""The device of a program whose context is set too late: read from its context calls, said again where init goes.

``init`` must come before all that is built, and behind the choice of the device. Where a program builds before it sets
its context (a dataset in ``main``, the context in ``train``), the start-up goes in front of what is built and chooses the
device there itself, on many ranks only. The program's own call then chooses the same device once more, which MindSpore
takes (measured with 2.10 on CPU: the same target and id; ``set_device`` only with its id).
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from ..mindspore import names
from ..reading.bindings import Binding, dotted, literal
from ..reading.program import Program
from ..reading.roles import argument
from ..reading.script import Script
from ..reading.timeline import Event
from .place import Place

_MAX_STEPS = 10


@dataclass(frozen=True)
class Device:
    """What the start-up says about the device.

    Attributes:
        setter: the library function, ``mindspore.set_context`` or ``mindspore.set_device``.
        target: the text of the device target, or nothing where the program leaves it to MindSpore.
        chooses: whether the program chooses a device id, so that the launcher's must be said.
    """

    setter: str
    target: str
    chooses: bool


def device(program: Program, contexts: list[Event], place: Place) -> Device | None:
    """Return the device that context calls choose, as it can be written at an earlier place; None if it cannot."""
    setters, targets, ids = set(), set(), []
    for event in contexts:
        setter = program.flow.qualified(event.script, event.node)
        by_device = setter == names.SET_DEVICE
        said = {arg.keyword.value if arg.keyword is not None else "" for arg in event.node.args}
        if any(arg.star for arg in event.node.args) or (not by_device and not said <= names.MAY_COME_LATER):
            return None
        target = argument(event.node, 0 if by_device else None, "device_target")
        chosen = argument(event.node, 1 if by_device else None, "device_id")
        if target is None and chosen is None:
            continue
        setters.add(setter)
        ids.append(chosen is not None)
        if target is not None:
            text = _Earlier(program, place).text(event.script, target)
            if text is None:
                return None
            targets.add(text)
    if len(setters) > 1 or len(targets) > 1:
        return None
    setter = setters.pop() if setters else names.SET_CONTEXT
    if setter == names.SET_DEVICE and not all(ids):
        return None
    return Device(setter, targets.pop() if targets else "", any(ids))


class _Earlier:
    """Writes an expression so that it gives the same value at an earlier place of the started file."""

    def __init__(self, program: Program, place: Place) -> None:
        self._program, self._place = program, place
        self._steps = _MAX_STEPS

    def text(self, script: Script, node: cst.BaseExpression) -> str | None:
        """Return the text, None if the value is not known at the place."""
        self._steps -= 1
        if self._steps < 0:
            return None
        if literal(node) is not ...:
            return script.tree.text(node)
        if dotted(node) is None:
            return None
        root = node
        while isinstance(root, cst.Attribute):
            root = root.value
        assert isinstance(root, cst.Name)
        rest = (dotted(node) or "")[len(root.value) :]
        bindings = script.bindings.lookup(root)
        if script is self._place.script and bindings and all(map(self._known, bindings)):
            return dotted(node)
        if len(bindings) != 1:
            return None
        before = self._before(script, bindings[0])
        if before is None or (rest and not all(map(str.isidentifier, before.split(".")))):
            return None
        return before + rest

    def _known(self, binding: Binding) -> bool:
        """Whether a binding of the started file is made before the place, in a scope that is seen there."""
        script, statement = self._place.script, self._place.statement
        here = script.bindings.scope_of(statement)
        seen = binding.scope is here or binding.scope is script.bindings.module
        return seen and binding.at < script.tree.start(statement) and binding.kind in ("assign", "import", "parameter")

    def _before(self, script: Script, binding: Binding) -> str | None:
        """Return the text of what a local variable or a parameter was given."""
        if binding.kind == "assign" and binding.value is not None and not binding.path:
            return self.text(script, binding.value)
        function = binding.scope.node
        if binding.kind != "parameter" or not isinstance(function, cst.FunctionDef):
            return None
        sites = self._program.flow.call_sites(function)
        if len(sites) != 1:
            return None
        given = self._program.flow.argument(*sites[0], function, binding.name)
        if given is None and binding.value is not None:
            return self.text(script, binding.value)
        return self.text(*given) if isinstance(given, tuple) else None
