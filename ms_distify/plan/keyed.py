"""One constructor in a loop that fills a dictionary: which key tells the dataset that trains."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from ..reading.roles import Site
from ..reading.script import Script


@dataclass(frozen=True)
class Keyed:
    """The datasets of one constructor, told apart by a variable that is the key of each.

    Attributes:
        name: the variable; empty where they cannot be told apart.
        trains: the keys of those that train.
    """

    name: str
    trains: tuple[str, ...] = ()

    @property
    def condition(self) -> str:
        """The condition that holds where the dataset that trains is built."""
        keys = [f'"{key}"' if key.isidentifier() else repr(key) for key in self.trains]
        return f"{self.name} == {keys[0]}" if len(keys) == 1 else f"{self.name} in ({', '.join(keys)})"

    def text(self, value: str) -> str:
        """Return the expression that is ``value`` for what trains, else None."""
        return f"{value} if {self.condition} else None"


def keyed(site: Site) -> Keyed | None:
    """Return what tells the datasets of one constructor apart, where those that train are asked for by a key.

    None where no key has to be known: nothing that is put in under one is asked for, or all that is seen trains.
    """
    if not any(use.entries for use in site.uses):
        return None
    found = _keyed(site)
    return None if not found.name and all(use.role == "train" for use in site.uses) else found


def _keyed(site: Site) -> Keyed:
    slots = {use.entries[0].slot if len(use.entries) == 1 else None for use in site.uses}
    slot = slots.pop() if len(slots) == 1 else None
    if slot is None:
        return Keyed("")
    trains = dict.fromkeys(entry.key for use in site.uses_as("train") for entry in use.entries)
    return Keyed(_loop_variable(site, slot), tuple(trains))


def _loop_variable(site: Site, slot: cst.Subscript) -> str:
    """Return the variable of the loop that builds a dataset and puts it under that variable, all in one block.

    Empty where it is not so, and the dataset could be that of another turn of the loop.
    """
    script = site.script
    index = slot.slice[0].slice if len(slot.slice) == 1 else None
    key = index.value if isinstance(index, cst.Index) else None
    if not isinstance(key, cst.Name):
        return ""
    bindings = script.bindings.lookup(key)
    if len(bindings) != 1 or bindings[0].kind != "for" or len(bindings[0].scope.bindings[key.value]) != 1:
        return ""
    blocks = [_block(script, node) for node in (site.call, slot)]
    loop = bindings[0].node
    if blocks[0] is None or blocks[0] is not blocks[1] or not isinstance(loop, cst.For):
        return ""
    return key.value if loop in script.tree.ancestors(site.call) else ""


def _block(script: Script, node: cst.CSTNode) -> cst.CSTNode | None:
    """Return the block whose statement a node is part of; None where it may be evaluated at another time, or not."""
    for parent in script.tree.ancestors(node):
        if isinstance(parent, cst.SimpleStatementLine):
            return script.tree.parent.get(parent)
        if isinstance(parent, (cst.Lambda, cst.BaseComp, cst.IfExp, cst.BooleanOperation, cst.BaseCompoundStatement)):
            return None
    return None


__all__ = ["Keyed", "keyed"]
