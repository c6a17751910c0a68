"""The rules, one file each, found by themselves.

A rule module has a docstring (what, why, before and after: the user's documentation is made from it) and one function
decorated with :func:`rule`. A rule reads facts and yields decisions; it never touches the tree.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import libcst as cst

from ..model import CHANGED, KEPT, NOTED, REFUSED, Decision, Edit, Finding, Need, texts
from ..plan.batches import Batches
from ..plan.files import Files
from ..plan.files_edits import prepare
from ..plan.helpers import Helpers, deals_evaluations
from ..plan.reducers import Reducers
from ..plan.sharding import Sharding, constructor_argument, sharding
from ..plan.shards import Shards
from ..plan.stamps import Stamp, stamps
from ..plan.startup import Startup
from ..plan.turns import Turns
from ..reading.program import Program
from ..reading.roles import Site
from ..reading.script import Script
from ..settings import Settings


class Context:
    """What a rule may ask: the program, the shared plans, the settings; and how it answers."""

    def __init__(self, program: Program, settings: Settings) -> None:
        self.program = program
        self.settings = settings
        program.sums_evaluations = settings.shard_eval or deals_evaluations(program)
        self._startup: Startup | None = None
        self._shards: Shards | None = None
        self._reducers: Reducers | None = None
        self._helpers: Helpers | None = None
        self._files: Files | None = None
        self._turns: Turns | None = None
        # Known once `files` was asked for: times that ranks have in common;
        self.stamps: list[Stamp] = []
        # for each call that prepares data: how rank 0 does it alone, or why not.
        self.prepared: dict[cst.Call, tuple[list[Edit], str]] = {}
        self._batches: Batches | None = None
        self.decisions: list[Decision] = []

    @property
    def startup(self) -> Startup:
        """The start-up plan."""
        if self._startup is None:
            self._startup = Startup(self.program)
        return self._startup

    @property
    def shards(self) -> Shards:
        """The plan that brings rank and size to constructors."""
        if self._shards is None:
            self._shards = Shards(self.program, self.startup)
        return self._shards

    @property
    def reducers(self) -> Reducers:
        """The plan that puts reducers behind gradients."""
        if self._reducers is None:
            self._reducers = Reducers(self.program, self.startup, self.many_ranks)
        return self._reducers

    @property
    def helpers(self) -> Helpers:
        """The functions that are put into the user's files."""
        if self._helpers is None:
            self._helpers = Helpers(self.startup)
        return self._helpers

    @property
    def files(self) -> Files:
        """What is known about files."""
        if self._files is None:
            self._files = Files(self.program)
            self.stamps = stamps(self.program, self.helpers, self._files)
            self.prepared = prepare(self.program, self.helpers, self._files, self.rank_0)
            self._turns = Turns(self.program, self.startup, self.helpers, self._files)
        return self._files

    @property
    def turns(self) -> Turns:
        """Where rank 0 goes first."""
        assert self.files is not None
        assert self._turns is not None
        return self._turns

    @property
    def batches(self) -> Batches:
        """The calls that form the batches of training datasets."""
        if self._batches is None:
            self._batches = Batches(self.program)
        return self._batches

    @property
    def keeps_batch(self) -> bool:
        """Whether all ranks together take the batch that one card took, so that steps stay those of one card."""
        return self.settings.global_batch == "keep" or self.batches.all_divided

    def role(self, site: Site) -> tuple[str, str]:
        """Return the role of a dataset ("train", "eval", "read" or "none") and how it is known."""
        for word in ("train", "eval"):
            if self.program.pragma(site.script, site.call, word):
                return word, f"says '# ms-distify: {word}'"
        for role in ("train", "eval", "read"):
            uses = site.uses_as(role)
            if uses:
                return role, f"flows to {uses[0].how}"
        return "none", ""

    def sharded(self, site: Site) -> bool:
        """Whether a training dataset is dealt over the ranks already."""
        return self.sharding(site).done

    def sharding(self, site: Site) -> Sharding:
        """Return whether a training dataset is dealt over the ranks already, and if not, what stands in the way."""
        return sharding(self.program, self.startup, site)

    @property
    def incomplete(self) -> bool:
        """Whether any edit was decided so far; for a rule that runs last."""
        return any(decision.edits for decision in self.decisions)

    def asks_for(self, *variables: str) -> bool:
        """Whether any edit decided so far uses one of some variables; for a rule that runs last."""
        words = re.compile(r"\b(?:" + "|".join(map(re.escape, variables)) + r")\b")
        return any(words.search(text) for decision in self.decisions for edit in decision.edits for text in texts(edit))

    def rank_test(self, script: Script, node: cst.CSTNode) -> tuple[str, str, tuple[Need, ...]]:
        """Return, for a place: the rank, a condition that is true on rank 0 and on one card, and the imports."""
        if self.startup.visible(script, node):
            rank = self.startup.rank_names.rank
            return rank, f"{rank} in (None, 0)", ()
        os_name, needs = self.startup.speller(script).spell("os", node)
        rank = f"{os_name}.getenv('RANK_ID', '0')"
        # RANK_ID alone may be left over from another job in the user's shell.
        return rank, f'{os_name}.getenv("RANK_SIZE", "1") == "1" or {os_name}.getenv("RANK_ID") == "0"', needs

    def rank_0(self, script: Script, node: cst.CSTNode) -> tuple[str, tuple[Need, ...]]:
        """Return, for a place, a condition that is true on rank 0 and on one card, and its imports."""
        return self.rank_test(script, node)[1:]

    def many_ranks(self, script: Script, node: cst.CSTNode) -> tuple[str, tuple[Need, ...]]:
        """Return a condition that is true on the ranks of a launched program, and its imports."""
        if self.startup.visible(script, node) and self.startup.rank_names.own:
            return f"{self.startup.rank_names.size} is not None", ()
        return self.startup.condition(node, script)


@dataclass(frozen=True)
class Rule:
    """A rule.

    Attributes:
        code: e.g. "MSD201".
        title: one line.
        check: yields the decisions for a program.
        doc: the module's docstring.
        releases: the MindSpore releases it speaks for: "all", or the oldest one as ">=2.3".
        last: it runs behind the others, because it looks at their edits.
    """

    code: str
    title: str
    check: Callable[[Context], Iterator[Decision]]
    doc: str
    releases: str = "all"
    last: bool = False


Check = Callable[[Context], Iterator[Decision]]
_FOUND: dict[str, Rule] = {}


def rule(code: str, title: str, *, releases: str = "all", last: bool = False) -> Callable[[Check], Check]:
    """Register a rule; the documentation is the docstring of the module the function stands in."""

    def register(check: Check) -> Check:
        module = inspect.getmodule(check)
        _FOUND[code] = Rule(code, title, check, inspect.getdoc(module) or "", releases, last)
        return check

    return register


def documented(code: str, title: str, doc: str | None) -> None:
    """Give a code its documentation where another rule or the pipeline decides about it."""
    _FOUND[code] = Rule(code, title, _decided_elsewhere, inspect.cleandoc(doc or ""))


def _decided_elsewhere(context: Context) -> Iterator[Decision]:
    del context
    yield from ()


@lru_cache(maxsize=1)
def rules() -> tuple[Rule, ...]:
    """Return all rules in the order of their codes."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return tuple(_FOUND[code] for code in sorted(_FOUND))


def explain(code: str) -> str | None:
    """Return the documentation of a rule, None if there is no such rule."""
    for known in rules():
        if known.code == code:
            return f"{known.code}: {known.title}\n\n{known.doc}"
    return None


def decide(code: str, status: str, script: Script, node: cst.CSTNode, message: str, *edits: Edit) -> Decision:
    """Make the decision about one site."""
    start = script.tree.start(node)
    finding = Finding(code, status, script.path, script.source.line(start), script.source.column(start), message)
    return Decision(finding, tuple(edits))


__all__ = [
    "CHANGED",
    "KEPT",
    "NOTED",
    "REFUSED",
    "Context",
    "Rule",
    "constructor_argument",
    "decide",
    "documented",
    "explain",
    "rule",
    "rules",
]
