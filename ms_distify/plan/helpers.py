"""Functions that are put into the user's file where one expression is not enough to deal rows over the ranks."""

from __future__ import annotations

import libcst as cst

from ..mindspore import names
from ..model import Define, Edit, Need, Wrap
from ..reading.script import Script
from .number_helpers import BATCH, RATE, WARMUP
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

_DRAWN = '''\
def {name}(source, num_shards=None, shard_id=None):
    """Give each rank its row of every num_shards rows that the source draws; on one card the source itself."""
    if num_shards is None:
        return source

    class RankRows:
        def __getitem__(self, index):
            return [source[index] for _ in range(num_shards)][shard_id]

        def __len__(self):
            return len(source) // num_shards

    return RankRows()
'''

_WAIT = '''\
def {name}(what, timeout=7200):
    """Let no rank go on before rank 0 is here, too; on one card go on at once. All ranks share the working folder.

    A rank that waits keeps touching a file; rank 0 takes it away when it sees that it is being touched.
    """
    rank, size = int({os}.getenv("RANK_ID", "0")), int({os}.getenv("RANK_SIZE", "1"))
    if size == 1:
        return
    end = {time}.monotonic() + timeout
    for other in range(1, size) if rank == 0 else [rank]:
        flag = f".rank_{{other}}_waits_for_rank_0.{{{os}.getenv('MS_SCHED_PORT', '')}}"
        if rank != 0:
            {os}.close({os}.open(flag, {os}.O_CREAT | {os}.O_WRONLY, 0o644))
        touched = None
        while True:
            if {time}.monotonic() > end:
                if rank != 0:
                    {os}.unlink(flag)
                missing = f"rank {{other}}" if rank == 0 else f"rank 0 {{what}}"
                raise TimeoutError(f"rank {{rank}} waited {{timeout}} s for {{missing}} (by files in {{{os}.getcwd()}})")
            try:
                if rank != 0:
                    {os}.utime(flag)
                elif touched not in (None, {os}.stat(flag).st_mtime_ns):
                    {os}.unlink(flag)
                    break
                else:
                    touched = {os}.stat(flag).st_mtime_ns
            except FileNotFoundError:
                if rank != 0:
                    break
            {time}.sleep(0.2)
'''

_SAME = '''\
def {name}(value):
    """Return the value of rank 0 on every rank, by a file in the working folder; on one card the value itself."""
    make = value if callable(value) else lambda: value
    if int({os}.getenv("RANK_SIZE", "1")) == 1:
        return make()
    path = f".value_of_rank_0.{{{os}.getenv('MS_SCHED_PORT', '')}}"
    if {os}.getenv("RANK_ID", "0") == "0":
        with open(path + ".new", "wb") as file:
            {pickle}.dump(make(), file)
        {os}.replace(path + ".new", path)
    {wait}("to say what all ranks call their files")
    with open(path, "rb") as file:
        value = {pickle}.load(file)
    {wait}("to see that all ranks know what it calls its files")
    if {os}.getenv("RANK_ID", "0") == "0":
        {os}.remove(path)
    return value
'''

_KINDS = {
    "wait": ("wait_for_rank_0", _WAIT, {"os": "os", "time": "time"}),
    "same": ("same_on_all_ranks", _SAME, {"os": "os", "pickle": "pickle"}),
    "sampled": ("shard_sampled", _SAMPLED, {"sampler": names.DISTRIBUTED_SAMPLER}),
    "drawn": ("shard_draws", _DRAWN, {}),
    "source": ("shard_source", _SOURCE, {"types": "types", "itertools": "itertools"}),
    "batch": ("batch_per_rank", BATCH, {}),
    "rate": ("scale_learning_rate", RATE, {"schedule": names.LR_SCHEDULE, "tensor": names.TENSOR}),
    "warmup": ("warm_up_learning_rate", WARMUP, {
        "schedule": names.LR_SCHEDULE, "tensor": names.TENSOR, "minimum": names.MINIMUM}),
}  # fmt: skip


class Helpers:
    """Chooses a name for each helper in each file, once, and makes the edits that define and use it."""

    def __init__(self, startup: Startup) -> None:
        self._startup = startup
        self._chosen: dict[tuple[Script, str], tuple[str, tuple[Edit, ...]]] = {}

    def wrap(self, kind: str, script: Script, node: cst.BaseExpression, supply: Supply) -> list[Edit]:
        """Return the edits that pass an expression through a helper, with rank and size.

        Args:
            kind: "sampled" (for a dataset), "source" or "drawn" (for what a ``GeneratorDataset`` reads).
            script: the file of ``node``.
            node: the expression.
            supply: what rank and size are called there.
        """
        name, define = self._define(kind, script)
        # The span of an expression leaves out its brackets, and a generator expression must keep its own.
        left, right = ("((", ")") if isinstance(node, cst.GeneratorExp) else ("(", "")
        return [*define, Wrap(script, node, name + left, f"{right}, {supply.size}, {supply.rank})")]

    def apply(
        self, kind: str, script: Script, node: cst.BaseExpression, *more: str, needs: tuple[Need, ...] = ()
    ) -> list[Edit]:
        """Return the edits that pass an expression through a helper, with further arguments.

        Args:
            kind: "batch" (for a batch size), "rate" or "warmup" (for a learning rate).
            script: the file of ``node``.
            node: the expression.
            more: the arguments behind it.
            needs: the imports that these take.
        """
        name, define = self._define(kind, script)
        # The span of an expression leaves out its brackets, and a generator expression must keep its own.
        left, right = ("((", "))") if isinstance(node, cst.GeneratorExp) else ("(", ")")
        return [*define, Wrap(script, node, name + left, f"{right[1:]}, {', '.join(more)})", needs)]

    def call(self, kind: str, script: Script, *arguments: str) -> tuple[str, tuple[Edit, ...]]:
        """Return a call of a helper as text, and the edits that define it."""
        name, define = self._define(kind, script)
        return f"{name}({', '.join(arguments)})", define

    def wait(self, script: Script, what: str) -> tuple[str, tuple[Edit, ...]]:
        """Return the line that makes all ranks wait for rank 0, and the edits that define what it calls.

        Args:
            script: the file it goes into.
            what: what rank 0 does, behind "rank 0": "to finish convert()".
        """
        name, define = self._define("wait", script)
        quoted = what.replace("\\", "").replace('"', "'")
        return f'{name}("{quoted}")', define

    def same(self, script: Script) -> tuple[str, tuple[Edit, ...]]:
        """Return the name of the function that gives all ranks the value of rank 0, and the edits that define it."""
        return self._define("same", script)

    def is_shared(self, script: Script, node: cst.BaseExpression) -> bool:
        """Whether a value is passed through the function that gives all ranks the value of rank 0."""
        return any(
            isinstance(parent, cst.Call)
            and isinstance(parent.func, cst.Name)
            and parent.func.value.startswith(_KINDS["same"][0])
            for parent in script.tree.ancestors(node)
        )

    def waits(self, script: Script, statement: cst.CSTNode) -> bool:
        """Whether a statement calls the function that waits."""
        if not isinstance(statement, cst.SimpleStatementLine) or not isinstance(statement.body[0], cst.Expr):
            return False
        call = statement.body[0].value
        return (
            isinstance(call, cst.Call)
            and isinstance(call.func, cst.Name)
            and call.func.value.startswith("wait_for_rank_0")
        )

    def is_wait(self, script: Script, node: cst.CSTNode) -> bool:
        """Whether a node stands in a function of ours that ranks wait in, put in by an earlier run."""
        function = script.bindings.scope_of(node).function()
        return (
            function is not None
            and isinstance(function.node, cst.FunctionDef)
            and function.node.name.value.startswith((_KINDS["wait"][0], _KINDS["same"][0]))
        )

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
        edits: tuple[Edit, ...] = ()
        if kind == "same":
            spelled["wait"], edits = self._define("wait", script)
        there = self._there(script, wanted, template.format(name=wanted, **spelled))
        if there:
            return wanted, edits
        name = speller.fresh(wanted)
        lines = tuple(template.format(name=name, **spelled).splitlines())
        return name, (*edits, Define(script, name, lines, needs))

    def _there(self, script: Script, name: str, text: str) -> bool:
        """Whether an earlier run put this very helper into the file."""
        return any(
            isinstance(binding.node, cst.FunctionDef) and script.tree.text(binding.node).split() == text.split()
            for binding in script.bindings.module.bindings.get(name, [])
        )


def calls_helper(kind: str, script: Script, node: cst.CSTNode) -> bool:
    """Whether an expression is a call of a helper that an earlier run put into the file."""
    wanted, template, _ = _KINDS[kind]
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name):
        return False
    head = template.split('"""')[1].split()
    return node.func.value.startswith(wanted) and any(
        isinstance(binding.node, cst.FunctionDef) and head == _docstring(script, binding.node).split()
        for binding in script.bindings.module.bindings.get(node.func.value, [])
    )


def _docstring(script: Script, function: cst.FunctionDef) -> str:
    return next(iter(script.tree.text(function).split('"""')[1:2]), "")


__all__ = ["Helpers", "calls_helper"]
