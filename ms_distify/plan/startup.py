"""Where a program starts up: the place of init, rank and size, and the names under which they are known.

The place is one block: behind the last context call that comes before anything is built, before the first thing
built, and on the way to every training (DESIGN 3). What stands in the way is recorded as a problem with its line.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from ..mindspore import names
from ..model import Need
from ..reading.bindings import Binding, Scope, literal
from ..reading.program import Program
from ..reading.script import Script
from ..reading.timeline import (
    BUILD,
    CONTEXT,
    INIT,
    PARALLEL,
    RANK,
    RESET,
    SEED,
    TRAIN,
    Event,
    Frame,
    diverge,
)
from .spelling import Speller


@dataclass(frozen=True)
class Place:
    """Where start-up lines go: before or after a statement."""

    script: Script
    statement: cst.CSTNode
    where: str


@dataclass(frozen=True)
class Problem:
    """Why the start-up cannot be placed."""

    code: str
    script: Script
    node: cst.CSTNode
    message: str


@dataclass(frozen=True)
class RankNames:
    """The variables that hold rank and group size, None (or 0 and 1) on one card."""

    rank: str
    size: str
    scope: Scope
    script: Script
    own: bool


class Startup:
    """The start-up of a program as it is and as it should be.

    Attributes:
        contexts, inits, parallels, resets, seeds, builds, trains: the events of each kind, in order.
        place: where missing lines go; None if there is nowhere safe (see ``problems``).
        guarded: whether they go under "started by the launcher", because no init of the user's says so.
        prelude: where ``rank = size = None`` goes, if not at ``place``.
        moved: context calls that move up in front of what was built before them.
        problems: why not.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        line = program.timeline
        self.contexts, self.inits, self.parallels = line.of(CONTEXT), line.of(INIT), line.of(PARALLEL)
        self.resets, self.seeds, self.builds, self.trains = line.of(RESET), line.of(SEED), line.of(BUILD), line.of(TRAIN)
        self._later = sorted(line.of(BUILD, PARALLEL, RANK, TRAIN), key=lambda event: event.order)
        self.place: Place | None = None
        self.prelude: Place | None = None
        self.guarded = True
        self.moved: list[Event] = []
        self.problems: list[Problem] = []
        self._spellers: dict[Script, Speller] = {}
        self._names: RankNames | None = None
        self._parameters: dict[cst.CSTNode, tuple[str, str]] = {}
        if self.inits:
            self._place_after_init()
        elif self.trains:
            self._place_init()

    # -- names ---------------------------------------------------------------------------------------------------

    def speller(self, script: Script) -> Speller:
        """Return the speller of a file."""
        if script not in self._spellers:
            self._spellers[script] = Speller(script)
        return self._spellers[script]

    @property
    def rank_names(self) -> RankNames:
        """The variables for rank and size: the user's where they have usable ones, else new ones."""
        if self._names is None:
            self._names = self._existing_names() or self._new_names()
        return self._names

    def _new_names(self) -> RankNames:
        assert self.place is not None
        speller = self.speller(self.place.script)
        scope = self.place.script.bindings.scope_of(self.place.statement)
        while scope.kind == "class" and scope.parent is not None:
            scope = scope.parent
        return RankNames(
            speller.fresh("rank_id", "dp_rank_id"), speller.fresh("rank_size", "dp_rank_size"), scope,
            self.place.script, own=True,
        )  # fmt: skip

    def _existing_names(self) -> RankNames | None:
        for script in self.program.scripts:
            for scope in script.bindings.scopes.values():
                rank = self._holder(script, scope, names.GET_RANK)
                size = self._holder(script, scope, names.GET_GROUP_SIZE)
                if rank is not None and size is not None:
                    return RankNames(rank.name, size.name, scope, script, own=False)
        return None

    def _holder(self, script: Script, scope: Scope, qualified: str) -> Binding | None:
        """Return a variable of a scope that surely holds the result of get_rank() or get_group_size() when trained."""
        visited = self.program.timeline.visited
        for bindings in scope.bindings.values():
            for binding in bindings:
                call = _taken(binding)
                if not isinstance(call, cst.Call) or self.program.flow.qualified(script, call) != qualified:
                    continue
                if scope.kind == "class" or call not in visited:
                    continue
                event = next((e for e in self.program.timeline.of(RANK) if e.node is call), None)
                one_card = (None, 0) if qualified == names.GET_RANK else (None, 1)
                others = [b for b in bindings if b is not binding]
                defaulted = any(literal(b.value) in one_card for b in others if b.value is not None)
                if event is not None and (not event.conditional or defaulted):
                    return binding
        return None

    def visible(self, script: Script, node: cst.CSTNode) -> bool:
        """Whether the rank and size variables can be read where ``node`` is evaluated, and when it is."""
        if self.place is None:
            return False
        known = self.rank_names
        if script is not known.script or self._too_early(node):
            return False
        scope: Scope | None = script.bindings.scope_of(node)
        while scope is not None:
            if scope is known.scope:
                return True
            scope = scope.parent
        return False

    def _too_early(self, node: cst.CSTNode) -> bool:
        """Whether a call is made before the start-up is done."""
        assert self.place is not None
        line, at = self.program.timeline, self.place.statement
        clock = line.finished.get(at, 0) if self.place.where == "after" else line.begun.get(at, 0)
        return line.visited.get(node, clock) < clock

    @property
    def first_build(self) -> Event | None:
        """The first thing that is built, if anything is."""
        return self.builds[0] if self.builds else None

    def condition(self, place: cst.CSTNode, script: Script) -> tuple[str, tuple[Need, ...]]:
        """Return the expression that is true on the ranks of a launched program, and its imports."""
        os_name, needs = self.speller(script).spell("os", place)
        return f'int({os_name}.getenv("RANK_SIZE", "1")) > 1', needs

    # -- place ---------------------------------------------------------------------------------------------------

    def _place_after_init(self) -> None:
        first = self.inits[0]
        self.guarded = False
        script, statement = _anchor(first.frames[-1])
        outermost = next((f for f in first.frames if f.conditional or f.repeated), None)
        same_block = len(self.inits) == 1
        if outermost is None:
            self.place = Place(script, statement, "after")
            return
        # `if args.distributed: init()`: rank and size exist only there, so they get their one-card value before it.
        level = first.frames.index(outermost)
        if level == 0 or first.frames[-1].script is not first.frames[level - 1].script or any(f.repeated for f in first.frames):
            self.problems.append(Problem("MSD107", first.script, first.node, "init() runs in a way that cannot be completed"))
            return
        outer = first.frames[level - 1]
        home = outer.script.bindings.scope_of(outer.statement)
        if same_block and first.script.bindings.scope_of(first.node) is home:
            self.place = Place(script, statement, "after")
            self.prelude = Place(outer.script, outer.statement, "before")
        else:
            self.guarded = True
            self.place = Place(outer.script, outer.statement, "after")

    def _place_init(self) -> None:
        first = self._later[0]
        before = [event for event in self.contexts if event.order < first.order]
        after = [event for event in self.contexts if event.order > first.order]
        if not before and after:
            self._move_up(after, first)
            if self.problems:
                return
        elif any(self.program_device(event) for event in after):
            late = next(event for event in after if self.program_device(event))
            self.problems.append(_built_too_early(first, late))
            return
        if before:
            self._behind(before[-1], first)
        elif self.moved:
            script, statement = _anchor(_frame_at(first, self.moved[0]))
            self.place = Place(script, statement, "before")
        else:
            self._without_context(first)
        self._check_reach()

    def program_device(self, event: Event) -> bool:
        """Whether a context call chooses the device, so that init must come behind it."""
        if event.kind != CONTEXT:
            return False
        if self.program.flow.qualified(event.script, event.node) == names.SET_DEVICE:
            return True
        words = {arg.keyword.value for arg in event.node.args if arg.keyword is not None}
        return bool(words & {"device_target", "device_id"}) or any(arg.star for arg in event.node.args)

    def _behind(self, context: Event, first: Event) -> None:
        level = diverge(context.frames, first.frames)
        if level < 0:
            self.problems.append(_built_too_early(first, context))
            return
        frame = context.frames[level]
        if any(f.repeated for f in context.frames[: level + 1]):
            message = "the context is set inside a loop; set it once, before the loop"
            self.problems.append(Problem("MSD107", context.script, context.node, message))
            return
        script, statement = _anchor(frame)
        self.place = Place(script, statement, "after")

    def _move_up(self, late: list[Event], first: Event) -> None:
        """Plan to move context calls in front of what is built before them, or say why that is not possible."""
        for context in late:
            level = diverge(first.frames, context.frames)
            frame = context.frames[-1]
            movable = (
                level >= 0
                and level == len(context.frames) - 1
                and isinstance(frame.statement, cst.SimpleStatementLine)
                and len(frame.statement.body) == 1
                and isinstance(frame.statement.body[0], cst.Expr)
                and frame.statement.body[0].value is context.node
                and self._bound_before(context, first.frames[level])
            )
            if not movable:
                if context is late[0] or self.program_device(context):
                    self.problems.append(_built_too_early(first, context))
                return
            self.moved.append(context)

    def _bound_before(self, context: Event, target: Frame) -> bool:
        """Whether every name a context call uses has its value before the statement it shall move in front of."""
        script = context.script
        limit = script.tree.start(target.statement)
        scope = script.bindings.scope_of(context.node)
        stack: list[cst.CSTNode] = [context.node]
        while stack:
            node = stack.pop()
            if isinstance(node, cst.Attribute):
                stack.append(node.value)
                continue
            if isinstance(node, cst.Arg):
                stack.append(node.value)
                continue
            if isinstance(node, cst.Name):
                found = script.bindings.lookup(node)
                if any(b.scope is scope and b.at >= limit for b in found):
                    return False
            elif isinstance(node, cst.Call):
                stack.extend([node.func, *node.args])
            elif literal(node) is ...:
                return False
        return True

    def _without_context(self, first: Event) -> None:
        """No context call: start up in the main guard or at module level, before the first thing built."""
        train = self.trains[0]
        frames = first.frames
        level = 0
        for index, (a, b) in enumerate(zip(first.frames, train.frames)):
            inside_module = a.script is self.program.entry and not _in_function(a)
            if a.block is not b.block or not inside_module or a.repeated or a.conditional:
                break
            level = index
            if a.index != b.index:
                break
        script, statement = _anchor(frames[level])
        self.place = Place(script, statement, "before")

    def _check_reach(self) -> None:
        """Every training must lie behind the place; two trainings in two branches have no common one."""
        if self.place is None:
            return
        for train in self.trains:
            on_way = any(
                frame.script is self.place.script
                and self.place.statement in frame.block.body
                and (
                    frame.statement is not self.place.statement or self.place.where == "before"
                )
                for frame in train.frames
            )
            if not on_way:
                message = (
                    "this training does not come after the context at "
                    f"{self.place.script.where(self.place.statement)}; set the context once, before both"
                )
                self.problems.append(Problem("MSD107", train.script, train.node, message))
                return


def _taken(binding: Binding) -> cst.CSTNode | None:
    """Return the expression a binding takes, through ``a, b = x, y``."""
    value: cst.CSTNode | None = binding.value
    for kind, key in binding.path:
        if kind != "item" or not isinstance(value, (cst.Tuple, cst.List)) or not isinstance(key, int):
            return None
        value = value.elements[key].value if key < len(value.elements) else None
    return value


def _anchor(frame: Frame) -> tuple[Script, cst.CSTNode]:
    """Return the statement of a frame, or the one around it where the block is written on one line."""
    node: cst.CSTNode = frame.statement
    tree = frame.script.tree
    while not isinstance(tree.parent.get(node), (cst.Module, cst.IndentedBlock)):
        parent = tree.parent.get(node)
        if parent is None:
            break
        node = parent
    while isinstance(tree.parent.get(node), cst.If) and isinstance(node, cst.If):
        node = tree.parent[node]  # an elif: insert around the whole chain
    return frame.script, node


def _frame_at(first: Event, moved: Event) -> Frame:
    return first.frames[diverge(first.frames, moved.frames)]


def _in_function(frame: Frame) -> bool:
    return frame.script.bindings.scope_of(frame.statement).function() is not None


def _built_too_early(built: Event, context: Event) -> Problem:
    where = context.script.where(context.node)
    message = f"{built.what or built.kind} is built before the context at {where}; set the context first"
    return Problem("MSD105", built.script, built.node, message)
