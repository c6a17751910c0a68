"""Functions that are put into the user's file where one expression is not enough."""

from __future__ import annotations

import libcst as cst

from ..model import Define, Edit, Need, Wrap
from ..reading.program import Program
from ..reading.script import Script
from .helper_texts import KINDS
from .shards import Supply
from .startup import Startup


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
            and parent.func.value.startswith(KINDS["same"][0])
            for parent in script.tree.ancestors(node)
        )

    def over_ranks(self, script: Script, *values: str, mean: bool = False) -> tuple[str, tuple[Edit, ...]]:
        """Return the line that sums variables over the ranks (or averages them), and the edits that define what it calls."""
        name, define = self._define("sum", script)
        joined = ", ".join(values)
        return f"{joined} = {name}({joined}{', mean=True' if mean else ''})", define

    def summing(self, script: Script) -> tuple[str, tuple[Edit, ...]]:
        """Return the name of the function that sums numbers over the ranks, and the edits that define it."""
        return self._define("sum", script)

    def around(self, kind: str, script: Script, node: cst.BaseExpression) -> list[Edit]:
        """Return the edits that pass an expression through a helper that needs nothing else.

        Args:
            kind: "batches" (for what a loop goes over), "part" (for a dataset) or "metrics" (of a ``Model``).
            script: the file of ``node``.
            node: the expression.
        """
        name, define = self._define(kind, script)
        left, right = ("((", "))") if isinstance(node, (cst.GeneratorExp, cst.Tuple)) else ("(", ")")
        return [*define, Wrap(script, node, name + left, right)]

    def is_around(self, kind: str, script: Script, node: cst.BaseExpression | None) -> bool:
        """Whether an expression passes through this helper already."""
        return node is not None and calls_helper(kind, script, node)

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
            and function.node.name.value.startswith((KINDS["wait"][0], KINDS["same"][0]))
        )

    def _define(self, kind: str, script: Script) -> tuple[str, tuple[Edit, ...]]:
        if (script, kind) not in self._chosen:
            self._chosen[script, kind] = self._new(kind, script)
        return self._chosen[script, kind]

    def _new(self, kind: str, script: Script) -> tuple[str, tuple[Edit, ...]]:
        wanted, template, used, called = KINDS[kind]
        speller = self._startup.speller(script)
        spelled = {}
        needs: tuple[Need, ...] = ()
        for word, qualified in used.items():
            # The helper runs when the file is read to its end, so whatever the file imports serves.
            spelled[word], more = speller.spell(qualified, script.tree.module.body[-1])
            needs += more
        before: tuple[Edit, ...] = ()
        for word, other in called.items():
            spelled[word], edits = self._define(other, script)
            before += edits
        there = self._there(script, wanted, template.format(name=wanted, **spelled))
        if there:
            return wanted, before
        name = speller.fresh(wanted)
        lines = tuple(template.format(name=name, **spelled).splitlines())
        return name, (*before, Define(script, name, lines, needs))

    def _there(self, script: Script, name: str, text: str) -> bool:
        """Whether an earlier run put this very helper into the file."""
        return any(
            isinstance(binding.node, cst.FunctionDef) and script.tree.text(binding.node).split() == text.split()
            for binding in script.bindings.module.bindings.get(name, [])
        )


def calls_helper(kind: str, script: Script, node: cst.CSTNode) -> bool:
    """Whether an expression is a call of a helper that an earlier run put into the file."""
    wanted, template = KINDS[kind][:2]
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name):
        return False
    head = template.split('"""')[1].split()
    return node.func.value.startswith(wanted) and any(
        isinstance(binding.node, cst.FunctionDef) and head == _docstring(script, binding.node).split()
        for binding in script.bindings.module.bindings.get(node.func.value, [])
    )


def deals_evaluations(program: Program) -> bool:
    """Whether an earlier run dealt the evaluations of a program over the ranks."""
    wanted = {KINDS[kind][0] for kind in ("batches", "part")}
    return any(
        isinstance(binding.node, cst.FunctionDef)
        for script in program.scripts
        for name in wanted
        for binding in script.bindings.module.bindings.get(name, ())
    )


def _docstring(script: Script, function: cst.FunctionDef) -> str:
    return next(iter(script.tree.text(function).split('"""')[1:2]), "")


__all__ = ["Helpers", "calls_helper", "deals_evaluations"]
