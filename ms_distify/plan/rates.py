"""The learning rates of a program: where each is handed to an optimizer, and what sets it later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ..mindspore import names
from ..mindspore.rates import Rate, rate_of
from ..reading.bindings import Scope, dotted, literal, parameters
from ..reading.named import bound
from ..reading.origin import At, Origin
from ..reading.program import Program
from ..reading.roles import argument
from ..reading.script import Script
from ..reading.tree import walk

# What an optimizer's learning rate is called: an attribute of it, an entry of a group of parameters.
RATE_NAMES = frozenset({"learning_rate", "lr"})
# What sets a parameter to another value: methods called on it; anything else of the kind takes it first.
_SETTERS = frozenset({"set_data", "assign_value"})


@dataclass(frozen=True)
class Handed:
    """A learning rate that is handed to an optimizer.

    Attributes:
        script: its file.
        call: the call that builds the optimizer, or the group of parameters that names the rate.
        value: the rate; None where the class's default holds.
        rate: how the optimizer takes it.
        trouble: why it cannot be scaled, or nothing.
    """

    script: Script
    call: cst.BaseExpression
    value: cst.BaseExpression | None
    rate: Rate
    trouble: str = ""


_GROUP = Rate("lr", -1, None)


class Rates:
    """Finds the learning rates of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def handed(self) -> Iterator[Handed]:
        """Yield every learning rate that is handed to an optimizer, in the order of files and lines."""
        for script in self.program.scripts:
            for call in script.bindings.calls:
                found = self._optimizer(script, call)
                if found is not None:
                    yield found
            for node in script.tree.nodes(cst.Dict, cst.Call):
                value = _group_rate(node)
                if value is not None and isinstance(node, cst.BaseExpression):
                    yield Handed(script, node, value, _GROUP)
            for target, value, path in script.bindings.item_assignments:
                if not path and _key(target) == "lr" and self._is_group(script, target.value):
                    yield Handed(script, target, value, _GROUP)

    def _optimizer(self, script: Script, call: cst.Call) -> Handed | None:
        rates: set[Rate] = set()
        own = ""
        for origin in self.program.flow.called(script, call):
            if origin.kind == "external" and names.is_optimizer(origin.qualified):
                rate = rate_of(origin.qualified)
                if rate is not None:
                    rates.add(rate)
            elif origin.kind == "class" and isinstance(origin.node, cst.ClassDef):
                if any(map(names.is_optimizer, self.program.flow.library_bases(origin.script, origin.node))):
                    found = self._own(origin)
                    rates |= {found} if found is not None else set()
                    own = own or ("" if found is not None else origin.node.name.value)
        if own:
            rate = Rate("", -1, None)
            return Handed(script, call, None, rate, f"how {own} hands its learning rate on cannot be followed")
        if not rates:
            return None
        rate = min(rates, key=lambda rate: (rate.schedules, rate.position))
        value = argument(call, rate.position, rate.parameter)
        if len({(one.parameter, one.position) for one in rates}) > 1:
            by_name = [a for a in call.args if a.keyword is not None and a.keyword.value == rate.parameter]
            if not by_name:
                return Handed(script, call, None, rate, "optimizers that take it in different ways are called here")
        trouble = ""
        if value is None and any(arg.star for arg in call.args):
            trouble = "it may come from * or ** arguments; write it out"
        elif value is None and (rate.default is None or len({one.default for one in rates}) > 1):
            trouble = "none is passed here; write it out"
        return Handed(script, call, value, rate, trouble)

    def _own(self, origin: Origin) -> Rate | None:
        """Return how an optimizer class of the program takes its rate, if that goes to its base as it is."""
        assert isinstance(origin.node, cst.ClassDef)
        found = self.program.flow.method(origin.script, origin.node, "__init__")
        bases = self.program.flow.library_bases(origin.script, origin.node)
        base = next((name for name in sorted(bases) if names.is_optimizer(name)), "")
        taken = Rate("learning_rate", 0, None) if base.endswith(".Optimizer") else rate_of(base)
        if found is None or taken is None:
            return taken if found is None else None
        init = found[1]
        names_of = [param.name.value for param in parameters(init)]
        for part in walk(init.body):
            if (
                isinstance(part, cst.Call)
                and isinstance(part.func, cst.Attribute)
                and part.func.attr.value == "__init__"
            ):
                unbound = (
                    0 if isinstance(part.func.value, cst.Call) else 1
                )  # super().__init__, Base.__init__(self, ...)
                value = argument(part, taken.position + unbound, taken.parameter)
                if isinstance(value, cst.Name) and value.value in names_of:
                    position = names_of.index(value.value) - 1
                    param = parameters(init)[position + 1]
                    default = literal(param.default) if param.default is not None else None
                    number = float(default) if isinstance(default, (int, float)) else None
                    return Rate(value.value, position, number, taken.schedules)
        return None

    def _is_group(self, script: Script, node: cst.BaseExpression) -> bool:
        return any(
            isinstance(origin.node, cst.Dict) and "params" in _entries(origin.node)
            for origin in self.program.flow.origins(script, node)
        )

    # -- rates that are set later ------------------------------------------------------------------------------------

    def set_later(self) -> Iterator[tuple[Script, cst.CSTNode]]:
        """Yield what sets the learning rate of an optimizer that is built already."""
        program = self.program
        for script, call, _ in program.calls(names.RATE_SCHEDULER):
            yield script, call
        for script, call in program.hand_updates:
            func = call.func
            target = func.value if isinstance(func, cst.Attribute) and func.attr.value in _SETTERS else None
            if target is None and call.args:
                target = call.args[0].value
            if target is not None and self._rate_of_optimizer(script, target):
                yield script, call
        for script in program.scripts:
            for attribute, value, _ in script.bindings.attribute_assignments:
                if self._rate_of_optimizer(script, attribute) and not _relative(script, attribute, value):
                    yield script, attribute
            for item, value, _ in script.bindings.item_assignments:
                if _key(item) in RATE_NAMES and self._is_group_of_optimizer(script, item.value):
                    if not _relative(script, item, value):
                        yield script, item

    def _rate_of_optimizer(self, script: Script, node: cst.BaseExpression) -> bool:
        if not isinstance(node, cst.Attribute) or node.attr.value not in RATE_NAMES:
            return False
        return any(
            names.is_optimizer(origin.qualified)
            or (
                origin.kind == "instance"
                and isinstance(origin.node, cst.ClassDef)
                and any(map(names.is_optimizer, self.program.flow.library_bases(origin.script, origin.node)))
            )
            for origin in self.program.flow.origins(script, node.value)
        )

    def _is_group_of_optimizer(self, script: Script, node: cst.BaseExpression) -> bool:
        """Whether a value is one of ``optimizer.param_groups``: an item, or what a loop runs over."""
        if isinstance(node, cst.Subscript):
            return (dotted(node.value) or "").endswith("param_groups")
        return isinstance(node, cst.Name) and any(
            binding.kind == "for" and (dotted(binding.value) or "").endswith("param_groups")
            for binding in script.bindings.lookup(node)
        )

    # -- the dataset whose epochs count --------------------------------------------------------------------------------

    def dataset_at(self, script: Script, call: cst.CSTNode) -> str:
        """Return how the dataset that trains is called at a place, as it goes into training; or nothing."""
        wanted = {
            (site.call, _steps(use.methods)) for site in self.program.roles.sites for use in site.uses_as("train")
        }
        if not wanted:
            return ""
        for text, origins in self._known_at(script, call):
            found = {(origin.node, _steps(origin.methods)) for origin in origins}
            plain = all(not origin.selectors and not _iterates(origin.methods) for origin in origins)
            if found == wanted and plain:
                return text
        return ""

    def _known_at(self, script: Script, call: cst.CSTNode) -> Iterator[tuple[str, list[Origin]]]:
        """Yield what variables hold at a place, for those that are surely set by then."""
        flow, start = self.program.flow, script.tree.start(script.tree.statement(call))
        own = scope = script.bindings.scope_of(call)
        current: Scope | None = scope
        while current is not None:
            for name, every in current.bindings.items():
                if any(binding.at >= start and binding.kind != "parameter" for binding in every):
                    continue
                if current.kind == "class" and current is not own:
                    continue
                held = script.bindings.reaching(call, current, name) if current is own else every
                if held and all(binding.kind in ("assign", "parameter") for binding in held):
                    yield name, [o for binding in held for o in bound(flow, binding, At(script), call)]
            current = current.parent
        for target, value, path in script.bindings.attribute_assignments:
            text = dotted(target) or ""
            if text.startswith("self.") and not path and script.bindings.scope_of(target) is own:
                if script.tree.start(target) < start:
                    yield text, flow.origins(script, value)


def _group_rate(node: cst.CSTNode) -> cst.BaseExpression | None:
    """Return the learning rate of a group of parameters that is written out: ``{"params": ..., "lr": ...}``."""
    if isinstance(node, cst.Dict):
        entries = _entries(node)
    elif isinstance(node, cst.Call) and dotted(node.func) == "dict":
        entries = {arg.keyword.value: arg.value for arg in node.args if arg.keyword is not None}
    else:
        return None
    return entries.get("lr") if "params" in entries else None


def _entries(node: cst.Dict) -> dict[object, cst.BaseExpression]:
    return {literal(element.key): element.value for element in node.elements if isinstance(element, cst.DictElement)}


def _key(target: cst.Subscript) -> object:
    index = target.slice[0].slice if len(target.slice) == 1 else None
    return literal(index.value) if isinstance(index, cst.Index) else None


def _relative(script: Script, target: cst.CSTNode, value: cst.BaseExpression) -> bool:
    """Whether a rate is set to something made of itself: ``opt.lr = opt.lr * 0.1``."""
    text = script.tree.text(target)
    return isinstance(script.tree.parent.get(target), cst.AugAssign) or any(
        isinstance(part, (cst.Attribute, cst.Subscript)) and script.tree.text(part) == text for part in walk(value)
    )


def _steps(methods: tuple[tuple[Script, cst.CSTNode], ...]) -> tuple[cst.CSTNode, ...]:
    """Return the dataset methods on a way, without those that only iterate."""
    return tuple(node for _, node in methods if not _gives_rows(node))


def _iterates(methods: tuple[tuple[Script, cst.CSTNode], ...]) -> bool:
    return any(_gives_rows(node) for _, node in methods)


def _gives_rows(node: cst.CSTNode) -> bool:
    func = node.func if isinstance(node, cst.Call) else None
    return isinstance(func, cst.Attribute) and func.attr.value in names.ITERATORS


__all__ = ["Handed", "Rates"]
