"""Where rank 0 goes first: caches, which are loaded where they are there, and made and saved where they are not.

All ranks look whether the file is there, so none of them may look before rank 0 has made it: the others wait in front
of the statements that look, load, make and save; rank 0 waits behind them until the others are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from ..mindspore import names
from ..model import Edit, Insert
from ..reading.program import Program
from ..reading.roles import argument, body_of, parts
from ..reading.script import Script
from ..reading.tree import children
from .files import Files
from .files_edits import OnlyRank0, Site, line_of, short, waits_before
from .helpers import Helpers
from .startup import Startup

_ENDS = (cst.Return, cst.Break, cst.Continue, cst.Yield)
_MAX_CALLS = 6
_WAITED = frozenset({*names.PREPARES, *names.FETCHES, names.LOAD_CHECKPOINT, "shutil.rmtree"})


@dataclass(frozen=True)
class Turn:
    """Statements that rank 0 runs before the others do.

    Attributes:
        script: their file.
        statements: one after the other in one block.
        call: the one of their calls that writes.
        what: what rank 0 does there, for the message of the time-out.
    """

    script: Script
    statements: tuple[cst.CSTNode, ...]
    call: cst.Call
    what: str


class Turns:
    """Finds for each file that is written and looked for at once where rank 0 has to go first."""

    def __init__(self, program: Program, startup: Startup, helpers: Helpers, files: Files) -> None:
        self.program, self.startup, self.helpers, self.files = program, startup, helpers, files
        self._of: dict[cst.CSTNode, list[Turn]] = {}
        if startup.trains:
            for script in program.scripts:
                for call in script.bindings.calls:
                    if not helpers.is_wait(script, call):
                        self._find(script, call)
        for turn in (turn for every in self._of.values() for turn in every):
            files.apart |= files.inside(turn.script, *turn.statements)
            files.waits.update(turn.statements)

    def edits(self, call: cst.Call, only: OnlyRank0) -> list[Edit]:
        """Return the edits by which rank 0 goes first where a call writes; none where it need not.

        Args:
            call: what writes.
            only: gives, for a place, a condition that is true on rank 0 and on one card, and its imports.
        """
        found: list[Edit] = []
        for turn in self._of.get(call, ()):
            first, last = turn.statements[0], turn.statements[-1]
            zero, needs = only(turn.script, turn.call)
            other = zero.replace(" in ", " not in ") if " or " not in zero else f"not ({zero})"
            line, define = self.helpers.wait(turn.script, turn.what)
            found += [
                *define,
                Insert(turn.script, first, "before", (line,), 61, f"{other}:", needs),
                Insert(turn.script, last, "after", (line,), 4, f"{zero}:", needs),
            ]
        return found

    def taken(self, script: Script, node: cst.CSTNode, depth: int = 0) -> bool:
        """Whether an earlier run lets rank 0 go first where a node stands, or wherever its function is called."""
        for parent in (node, *script.tree.ancestors(node)):
            block = script.tree.parent.get(parent)
            body = list(block.body) if isinstance(block, _BLOCKS) else []
            index = next((i for i, item in enumerate(body) if item is parent), 0)
            before = body[index - 1] if index else None
            if isinstance(before, cst.If) and self.helpers.waits(script, before.body.body[0]):
                return self.program.mentions_rank(script, before.test)
        scope = script.bindings.scope_of(node).function()
        sites = self.program.flow.call_sites(scope.node) if scope is not None and depth < _MAX_CALLS else []
        return bool(sites) and all(self.taken(home, call, depth + 1) for home, call in sites)

    # -- what is looked for and written ------------------------------------------------------------------------------

    def _find(self, script: Script, call: cst.Call) -> None:
        path, prepares = self._written(script, call)
        if path is None or self.files.guarded(script, call) or self.files.own_place(script, path):
            return
        if call not in self.program.timeline.visited or (prepares and self.taken(script, call)):
            return
        looks = list(self._decided_by(script, call, path)) if prepares else self._troubled(script, call, path)
        if not looks:
            return
        visited = self.program.timeline.visited
        early = [site for site in looks if visited.get(site[1], 0) < visited[call] or self._beside(script, call, site)]
        asked = [site for site in self._asked(script, call, path) if site not in looks]
        for some in ([*looks, *asked], looks, early):
            turns = self._turns((script, call), some) if some else None
            if turns and self._settle(call, turns):
                return

    def _written(self, script: Script, call: cst.Call) -> tuple[cst.BaseExpression | None, bool]:
        """Return the path of the file that a call writes, and whether it is a MindRecord file."""
        name = self.program.flow.qualified(script, call)
        if name in names.OPENERS:
            path = argument(call, 0, names.OPENERS[name][0])
            return (path if self.files.writes(script, call, name)[0] else None), False
        if name in names.SAVERS and name not in names.REMOVERS:
            parameter, position = names.SAVERS[name]
            return argument(call, position, parameter), False
        if name in names.PREPARES:
            file = name == names.FILE_WRITER
            return argument(call, 0 if file else 1, "file_name" if file else "destination"), True
        if isinstance(call.func, cst.Attribute) and not self.program.flow.targets(script, call):
            method = call.func.attr.value
            if method in names.SAVE_METHODS and call.args:
                return (call.func.value if names.SAVE_METHODS[method] is None else call.args[0].value), False
        return None, False

    def _troubled(self, script: Script, call: cst.Call, path: cst.BaseExpression) -> list[Site]:
        """Return what reads a file where ranks cannot be made to wait for it."""
        site = (script, call)
        reads = [read for read in self.files.read_back(script, path) if read[1] is not call]
        return [read for read in reads if waits_before(self.program, self.helpers, self.files, [read], site)[1]]

    def _asked(self, script: Script, call: cst.Call, path: cst.BaseExpression) -> Iterator[Site]:
        """Yield what asks, in the function of a call that writes a file, whether that file is there."""
        wanted = self.files.keys(script, path)
        scope = script.bindings.scope_of(call).function()
        for home, asking, _ in self.program.calls(*names.FILE_STATE):
            if home is script and asking.args and script.bindings.scope_of(asking).function() is scope:
                if self.files.keys(home, asking.args[0].value) & wanted:
                    yield home, asking

    def _decided_by(self, script: Script, call: cst.Call, path: cst.BaseExpression) -> Iterator[Site]:
        """Yield what asks for the very file that a call writes, if the answer alone lets the call run."""
        below: cst.CSTNode = call
        for parent in script.tree.ancestors(call):
            if isinstance(parent, (cst.FunctionDef, cst.Lambda)):
                return
            tests: list[tuple[cst.BaseExpression, bool]] = []
            if isinstance(parent, cst.If) and below is not parent.test:
                tests.append((parent.test, below is parent.orelse))
            for statement in getattr(parent, "body", ()) if isinstance(parent, _BLOCKS) else ():
                if statement is below:
                    break
                if isinstance(statement, cst.If) and any(isinstance(part, cst.Return) for part in parts(statement)):
                    tests.append((statement.test, True))
            for test, there in tests:
                asked = self._asks(script, test, path, there=there)
                if asked is not None:
                    yield script, asked
            below = parent

    def _asks(
        self, script: Script, test: cst.BaseExpression, path: cst.BaseExpression, *, there: bool
    ) -> cst.Call | None:
        """Return the call if a condition is ``exists(path)`` (``there``) or ``not exists(path)`` and nothing else."""
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not) and not there:
            return self._asks(script, test.expression, path, there=True)
        if not there or not isinstance(test, cst.Call) or not self.files.looks_at_files(script, test):
            return None
        asked = test.args[0].value if test.args else getattr(test.func, "value", test)
        same = self.files.keys(script, asked) & self.files.keys(script, path)
        return test if same else None

    def _beside(self, script: Script, call: cst.Call, site: Site) -> bool:
        """Whether something stands in another branch of the statement that a call stands in."""
        around = {parent for parent in script.tree.ancestors(call) if isinstance(parent, (cst.If, cst.Try))}
        return script is site[0] and any(parent in around for parent in script.tree.ancestors(site[1]))

    # -- where -------------------------------------------------------------------------------------------------------

    def _turns(self, written: Site, looks: Sequence[Site], depth: int = 0) -> list[Turn] | None:
        """Return the statements that hold a write and all that looks for the file, wherever they are run."""
        script, call = written
        wanted = {call, *(look for _, look in looks)}
        scope = script.bindings.scope_of(call).function()
        body = body_of(scope.node) if scope is not None else script.tree.module
        if wanted <= self._calls(script, body) | {call}:
            for statements in self._ranges(script, body, wanted):
                if self._fit(script, statements):
                    what = "to finish" if depth else "to make or find what comes of"
                    return [Turn(script, statements, call, f"{what} {short(script, call)}")]
        sites = self.program.flow.call_sites(scope.node) if scope is not None and depth < _MAX_CALLS else []
        found: list[Turn] = []
        for site in sites:
            if site[1] not in self.program.timeline.visited:
                return None
            # What is looked for within the function is within the call of it.
            outside = [look for look in looks if look[1] not in self._calls(script, body)]
            turns = self._turns(site, outside, depth + 1)
            if turns is None:
                return None
            found += turns
        return found or None

    def _ranges(self, script: Script, body: cst.CSTNode, wanted: set[cst.Call]) -> Iterator[tuple[cst.CSTNode, ...]]:
        """Yield statements of one block that hold some calls, the fewest first; a loop around them before its body."""
        found: list[tuple[cst.CSTNode, ...]] = []
        while True:
            block = list(getattr(body, "body", ()))
            holds = [
                i
                for i, statement in enumerate(block)
                if not isinstance(statement, _DEFINES) and wanted & self._calls(script, statement)
            ]
            if not holds:
                break
            found.append(tuple(block[holds[0] : holds[-1] + 1]))
            if len(holds) > 1:
                break
            inner = [part for part in _blocks(block[holds[0]]) if wanted <= self._calls(script, part)]
            if len(inner) != 1:
                break
            body = inner[0]
        found.reverse()
        loops = [some for some in found if isinstance(some[0], (cst.For, cst.While)) and len(some) == 1]
        yield from [*reversed(loops), *found]

    def _fit(self, script: Script, statements: tuple[cst.CSTNode, ...]) -> bool:
        """Whether rank 0 can run statements before the others do."""
        first = statements[0]
        if line_of(script, first) is not first or not self.files.alike(script, first):
            return False
        for statement in statements:
            if isinstance(statement, _DEFINES):
                continue
            if self.files.needs_all(script, statement, draws=False):
                return False
            for part in parts(statement):
                if isinstance(part, _ENDS) and not _ends_inside(script, part, statement):
                    return False
        inside = self.files.inside(script, *statements)
        if self.files.waits & inside:
            return False
        places = (self.startup.place, self.startup.parallel_place, self.startup.seed_place, self.startup.prelude)
        for place in places:
            if place is not None and place.statement in inside:
                before = place.where == "before" and place.statement is first
                if not before and not (place.where == "after" and place.statement is statements[-1]):
                    return False
        return not self._waits_within(script, statements) and not self._draws_apart(script, statements)

    def _waits_within(self, script: Script, statements: tuple[cst.CSTNode, ...]) -> bool:
        """Whether ranks would wait for each other within statements for another reason."""
        return any(
            self.program.flow.qualified(home, call) in _WAITED
            and not self.files.guarded(home, call)
            and self.files.alike(home, call)
            for statement in statements
            for home, call in self.files.closure(script, statement)
        )

    def _draws_apart(self, script: Script, statements: tuple[cst.CSTNode, ...]) -> bool:
        """Whether statements draw from a generator that the rest of the program draws from, too.

        The others find what rank 0 made, and would go on with other numbers than it.
        """
        inside = {call for statement in statements for _, call in self.files.closure(script, statement)}
        for drawn in (names.PYTHON_DRAWS, names.NUMPY_DRAWS):
            calls = {call for _, call, _ in self.program.calls(*drawn)}
            if calls & inside and calls - inside:
                return True
        return False

    def _settle(self, call: cst.CSTNode, turns: list[Turn]) -> bool:
        """Take turns for a write, unless they overlap those of another; those that lie in others go with them."""
        known = {turn.statements: turn for every in self._of.values() for turn in every}
        settled: list[Turn] = []
        for turn in turns:
            inside = self.files.inside(turn.script, *turn.statements)
            for other in known.values():
                if set(turn.statements) <= self.files.inside(other.script, *other.statements):
                    turn = other
                elif set(other.statements) <= inside:
                    for every in self._of.values():
                        every[:] = [turn if one is other else one for one in every]
                elif set(other.statements) & inside:
                    return False
            settled.append(turn)
        self._of[call] = list({turn.statements: turn for turn in settled}.values())
        return True

    def _calls(self, script: Script, node: cst.CSTNode) -> set[cst.Call]:
        return {call for _, call in self.files.closure(script, node)}


_DEFINES = (cst.FunctionDef, cst.ClassDef)
_BLOCKS = (cst.Module, cst.IndentedBlock)


def _blocks(statement: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the blocks of a compound statement, not those of functions and classes."""
    if isinstance(statement, _DEFINES):
        return
    for part in children(statement):
        if isinstance(part, cst.IndentedBlock):
            yield part
        elif isinstance(part, (cst.Else, cst.If, cst.ExceptHandler, cst.Finally)):
            yield from _blocks(part)


def _ends_inside(script: Script, end: cst.CSTNode, statement: cst.CSTNode) -> bool:
    """Whether ``break`` or ``continue`` ends no more than a loop that lies in a statement."""
    if isinstance(end, (cst.Return, cst.Yield)):
        return False
    for parent in script.tree.ancestors(end):
        if isinstance(parent, (cst.For, cst.While)):
            return True
        if parent is statement:
            return False
    return False


__all__ = ["Turn", "Turns"]
