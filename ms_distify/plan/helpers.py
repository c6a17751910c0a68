"""Functions that are put into the user's file where one expression is not enough to deal rows over the ranks."""

from __future__ import annotations

import libcst as cst

from ..mindspore import names
from ..model import Define, Edit, Need, Wrap
from ..reading.script import Script
from .shards import Supply
from .startup import Startup

_SAMPLED = '''\
def {name}(dataset, num_shards=None, shard_id=None):
    """Let each rank read its share of the rows that the dataset's sampler yields; on one card all of them."""
    if num_shards is not None:
        dataset.add_sampler({sampler}(num_shards, shard_id, shuffle=False))
    return dataset
'''

_SOURCE = '''\
def {name}(source, num_shards=None, shard_id=None):
    """Give each rank its row of every complete group of num_shards rows; on one card the source itself."""
    if num_shards is None:
        return source
    if isinstance(source, {types}.GeneratorType):
        start = {itertools}.tee(source, 1)[0].__copy__  # every epoch reads it from its beginning
    else:
        start = source.__iter__ if hasattr(source, "__iter__") else source

    class RankRows:
        def __iter__(self):
            for group in zip(*[iter(start())] * num_shards):
                yield group[shard_id]

    if hasattr(source, "__len__"):
        RankRows.__len__ = lambda self: len(source) // num_shards
    return RankRows()
'''

_KINDS = {
    "sampled": ("shard_sampled", _SAMPLED, {"sampler": names.DISTRIBUTED_SAMPLER}),
    "source": ("shard_source", _SOURCE, {"types": "types", "itertools": "itertools"}),
}


class Helpers:
    """Chooses a name for each helper in each file, once, and makes the edits that define and use it."""

    def __init__(self, startup: Startup) -> None:
        self._startup = startup
        self._chosen: dict[tuple[Script, str], tuple[str, tuple[Edit, ...]]] = {}

    def wrap(self, kind: str, script: Script, node: cst.BaseExpression, supply: Supply) -> list[Edit]:
        """Return the edits that pass an expression through a helper, with rank and size.

        Args:
            kind: "sampled" (for a dataset) or "source" (for what a ``GeneratorDataset`` reads).
            script: the file of ``node``.
            node: the expression.
            supply: what rank and size are called there.
        """
        name, define = self._define(kind, script)
        # The span of an expression leaves out its brackets, and a generator expression must keep its own.
        left, right = ("((", ")") if isinstance(node, cst.GeneratorExp) else ("(", "")
        return [*define, Wrap(script, node, name + left, f"{right}, {supply.size}, {supply.rank})")]

    def _define(self, kind: str, script: Script) -> tuple[str, tuple[Edit, ...]]:
        if (script, kind) not in self._chosen:
            self._chosen[script, kind] = self._new(kind, script)
        return self._chosen[script, kind]

    def _new(self, kind: str, script: Script) -> tuple[str, tuple[Edit, ...]]:
        wanted, template, used = _KINDS[kind]
        speller = self._startup.speller(script)
        spelled = {}
        needs: tuple[Need, ...] = ()
        for word, qualified in used.items():
            # The helper runs when the file is read to its end, so whatever the file imports serves.
            spelled[word], more = speller.spell(qualified, script.tree.module.body[-1])
            needs += more
        there = self._there(script, wanted, template.format(name=wanted, **spelled))
        if there:
            return wanted, ()
        name = speller.fresh(wanted)
        lines = tuple(template.format(name=name, **spelled).splitlines())
        return name, (Define(script, name, lines, needs),)

    def _there(self, script: Script, name: str, text: str) -> bool:
        """Whether an earlier run put this very helper into the file."""
        return any(
            isinstance(binding.node, cst.FunctionDef) and script.tree.text(binding.node).split() == text.split()
            for binding in script.bindings.module.bindings.get(name, [])
        )


__all__ = ["Helpers"]
