"""Where a program starts up: the place of init, rank and size, and the names under which they are known.

The place is one block: behind the last context call that comes before anything is built, before the first
thing built, and on the way to every training (DESIGN 3). What stands in the way is recorded as a problem with
its line.
"""

from __future__ import annotations

import sys

import libcst as cst

from ..mindspore import names
from ..model import Need
from ..reading.bindings import Scope, literal
from ..reading.program import Program
from ..reading.script import Script
from ..reading.timeline import (
    BUILD,
    CONTEXT,
    INIT,
    PARALLEL,
    PART_SEED,
    RANK,
    RESET,
    SEED,
    TRAIN,
    Event,
    Frame,
    common,
    diverge,
    may_be_left_out,
)
from .early import Device, device
from .place import Place, Problem, anchor, built_too_early, frame_at
from .rank_names import RankNames, existing
from .spelling import Speller


class Startup:
    """The start-up of a program as it is and as it should be.

    Attributes:
        contexts, inits, parallels, resets, seeds, builds, trains: the events of each kind, in order.
        place: where missing lines go; None if there is nowhere safe (see ``problems``).
        guarded: whether they go under "started by the launcher", because no init of the user's says so.
        prelude: where ``rank = size = None`` goes, if not at ``place``.
        parallel_place, parallel_guarded: the same for the parallel context.
        seed_place: where a seed goes.
        moved: context calls that move up in front of what was built before them.
        device: what the start-up says about the device, where the program's own context call comes later.
        problems: why not.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        line = program.timeline
        self.contexts, self.inits, self.parallels = line.of(CONTEXT), line.of(INIT), line.of(PARALLEL)
        self.resets, self.seeds, self.builds, self.trains = (
            line.of(RESET),
            line.of(SEED),
            line.of(BUILD),
            line.of(TRAIN),
        )
        self._settings = line.of(CONTEXT, RESET)
        self._later = sorted(line.of(BUILD, PARALLEL, RANK, TRAIN), key=lambda event: event.order)
        self.place: Place | None = None
        self.prelude: Place | None = None
        self.parallel_place: Place | None = None
        self.seed_place: Place | None = None
        self.guarded = self.parallel_guarded = True
        self.moved: list[Event] = []
        self.device: Device | None = None
        self.problems: list[Problem] = []
        self._spellers: dict[Script, Speller] = {}
        self._names: RankNames | None = None
        if self.inits:
            self._place_after_init()
        elif self.trains:
            self._place_init()
            if self.problems:
                self._place_early(self._later[0])
        self._keep_known()
        self._before_other_seeds()

    # -- names -----------------------------------------------------------------------------------------------

    def speller(self, script: Script) -> Speller:
        """Return the speller of a file."""
        if script not in self._spellers:
            self._spellers[script] = Speller(script)
        return self._spellers[script]

    @property
    def rank_names(self) -> RankNames:
        """The variables for rank and size: the user's where they have usable ones, else new ones."""
        if self._names is None:
            self._names = existing(self.program) or self._new_names()
        return self._names

    def _new_names(self) -> RankNames:
        place = self.place
        if place is None:  # refused; nobody will read them
            entry = self.program.entry
            return RankNames("rank_id", "rank_size", entry.bindings.module, entry, True, sys.maxsize)
        speller = self.speller(place.script)
        scope = place.script.bindings.scope_of(place.statement)
        while scope.kind == "class" and scope.parent is not None:
            scope = scope.parent
        since = self.clock(place)
        rank, size = speller.fresh("rank_id", "dp_rank_id"), speller.fresh("rank_size", "dp_rank_size")
        return RankNames(rank, size, scope, place.script, True, since)

    def visible(self, script: Script, node: cst.CSTNode) -> bool:
        """Whether the rank and size variables can be read where ``node`` is evaluated, and when it is."""
        if self.place is None:
            return False
        known = self.rank_names
        # A call that is made before the start-up is done would find no rank.
        if self.program.timeline.visited.get(node, known.since) < known.since:
            return False
        return known.readable(script, script.bindings.scope_of(node))

    @property
    def first_build(self) -> Event | None:
        """The first thing that is built, if anything is."""
        return self.builds[0] if self.builds else None

    def condition(self, place: cst.CSTNode, script: Script) -> tuple[str, tuple[Need, ...]]:
        """Return the expression that is true on the ranks of a launched program, and its imports."""
        os_name, needs = self.speller(script).spell("os", place)
        return f'int({os_name}.getenv("RANK_SIZE", "1")) > 1', needs

    # -- place -----------------------------------------------------------------------------------------------

    def _place_after_init(self) -> None:
        """The user has init: rank and size go where all trainings can read them, the rest right behind it."""
        first = self.inits[0]
        self.guarded = self.parallel_guarded = False
        inner = first.frames[-1]
        if any(frame.repeated for frame in first.frames):
            message = "init() runs in a loop and cannot be completed there; call it once, before the loop"
            self.problems.append(Problem("MSD107", first.script, first.node, message))
            return
        level = min((common(first.frames, train.frames) for train in self.trains), default=len(first.frames) - 1)
        outer = first.frames[level]
        behind_init, behind = Place(*anchor(inner), "after"), Place(*anchor(outer), "after")
        before = Place(behind.script, behind.statement, "before")
        left_out = may_be_left_out(first, self.trains)
        same_scope = self._scope(inner) is self._scope(outer) or not self._apart(first, level)
        self.place = behind_init if same_scope else behind
        self.parallel_place = behind_init
        if left_out and same_scope and len(self.inits) == 1:
            # `if args.distributed: init()`: rank and size exist only there, so one-card values stand before.
            self.prelude = before
        elif left_out:
            self.place, self.guarded = behind, True
            if len(self.inits) > 1:  # `init("hccl")` in one branch, `init("nccl")` in the other
                self.parallel_place, self.parallel_guarded = behind, True
        self.seed_place = before if left_out else behind_init
        self._behind_resets(first)

    def _apart(self, first: Event, level: int) -> bool:
        """Whether every training lies in a later statement than ``first`` at a level."""
        return all(
            len(train.frames) > level and train.frames[level].index != first.frames[level].index
            for train in self.trains
        )

    def _behind_resets(self, init: Event) -> None:
        """What resets leave comes before the parallel context that is added."""
        if self.parallels or self.parallel_place is None:
            return
        block = self.parallel_place.script.tree.parent.get(self.parallel_place.statement)
        for event in self.resets:
            script, statement = anchor(event.frames[-1])
            early = event.order > init.order and not any(built.order < event.order for built in self.builds)
            if early and block is not None and script.tree.parent.get(statement) is block:
                moved = Place(script, statement, "after")
                if self.place == self.parallel_place:
                    self.place = moved
                self.parallel_place = moved

    def _scope(self, frame: Frame) -> Scope | None:
        return frame.script.bindings.scope_of(frame.statement).function() or frame.script.bindings.module

    def _place_init(self) -> None:
        first = self._later[0]
        before = [event for event in self._settings if event.order < first.order]
        after = [event for event in self.contexts if event.order > first.order]
        if not any(event.kind == CONTEXT for event in before) and after:
            self._move_up(after, first)
            if self.problems:
                return
        elif any(self.program_device(event) for event in after):
            late = next(event for event in after if self.program_device(event))
            self.problems.append(built_too_early(first, late))
            return
        if self.moved:
            script, statement = anchor(frame_at(first, self.moved[0]))
            self.place = Place(script, statement, "before")
        elif before:
            self._behind(before[-1], first)
        else:
            self._without_context(first)
        self.parallel_place = self.seed_place = self.place
        if before and not self.moved:
            self._names_apart(before[-1])
        self._check_reach()

    def _place_early(self, first: Event) -> None:
        """Where the context is set too late or in many places: start up before the first thing built, with the device."""
        problems, moved = self.problems, self.moved
        found = (self.place, self.parallel_place, self.seed_place)
        for deep in (False, True):
            self.problems, self.moved = [], []
            self._without_context(first, deep=deep)
            self._check_reach()
            assert self.place is not None
            late = [event for event in self.contexts if not self._passed(event, self.place)]
            chosen = device(self.program, late, self.place)
            if not self.problems and chosen is not None:
                self.device = chosen
                self.parallel_place = self.seed_place = self.place
                return
        self.problems, self.moved = problems, moved
        self.place, self.parallel_place, self.seed_place = found

    def _passed(self, event: Event, place: Place) -> bool:
        """Whether an event happens before a place is reached."""
        return self.program.timeline.visited.get(event.node, sys.maxsize) < self.clock(place)

    def _names_apart(self, context: Event) -> None:
        """``t = Trainer(); t.train()`` with the context in ``__init__``: rank and size go in between."""
        if self.place is None or all(self._on_way(train) for train in self.trains):
            return
        level = min(common(context.frames, train.frames) for train in self.trains)
        if self._apart(context, level) and not may_be_left_out(context, self.trains):
            self.place = Place(*anchor(context.frames[level]), "after")

    def _keep_known(self) -> None:
        """Functions that read rank and size may be imported elsewhere, where the main guard does not run."""
        place = self.place
        if place is None or self.prelude is not None:
            return
        tree = place.script.tree
        if (
            tree.parent.get(place.statement) is tree.module
            or self._scope_of_place() is not place.script.bindings.module
        ):
            return
        if any(scope.kind == "function" for scope in place.script.bindings.scopes.values()):
            top = place.statement
            while tree.parent.get(top) is not tree.module and top in tree.parent:
                top = tree.parent[top]
            self.prelude = Place(place.script, top, "before")

    def _scope_of_place(self) -> Scope:
        assert self.place is not None
        scope = self.place.script.bindings.scope_of(self.place.statement)
        return scope.function() or self.place.script.bindings.module

    def clock(self, place: Place) -> int:
        """Return the tick of the timeline at which a place is passed."""
        line = self.program.timeline
        return (line.finished if place.where == "after" else line.begun).get(place.statement, 0)

    def _before_other_seeds(self) -> None:
        """A seed of ours must not undo one of the user's: it goes in front of those that come before it.

        ``mindspore.set_seed`` seeds NumPy and the datasets as well, and a conditional seed of the user's
        shall win.
        """
        place = self.seed_place
        if place is None:
            return
        line, limit = self.program.timeline, self.clock(place)
        for event in sorted(line.of(SEED, PART_SEED), key=lambda event: event.order):
            if line.visited.get(event.node, limit) >= limit:
                return
            level = min((common(event.frames, train.frames) for train in self.trains), default=0)
            if not any(frame.repeated for frame in event.frames[: level + 1]):
                self.seed_place = Place(*anchor(event.frames[level]), "before")
                return

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
            message = f"{first.what or first.kind} stands on a line with the context; give it a line of its own"
            self.problems.append(Problem("MSD107", first.script, first.node, message))
            return
        frame = context.frames[level]
        message = ""
        if any(f.repeated for f in context.frames[: level + 1]):
            message = "the context is set inside a loop; set it once, before the loop"
        elif any(self.program.timeline.runs[f.statement] > 1 for f in context.frames[: level + 1]):
            message = "the context is set in a function that is called more than once; set it before the calls"
        if message:
            self.problems.append(Problem("MSD107", context.script, context.node, message))
            return
        script, statement = anchor(frame)
        self.place = Place(script, statement, "after")

    def _move_up(self, late: list[Event], first: Event) -> None:
        """Plan to move context calls in front of what is built before them, or say why that cannot be."""
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
                    self.problems.append(built_too_early(first, context))
                return
            self.moved.append(context)

    def _bound_before(self, context: Event, target: Frame) -> bool:
        """Whether all names a context call uses have their values before the statement it shall precede."""
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

    def _without_context(self, first: Event, *, deep: bool = False) -> None:
        """Start up in the main guard or at module level, before the first thing built; ``deep``: in a function too."""
        train = self.trains[0]
        frames = first.frames
        level = 0
        for index, (a, b) in enumerate(zip(first.frames, train.frames)):
            inside_module = a.script is self.program.entry and (deep or not _in_function(a))
            if a.block is not b.block or not inside_module or a.repeated or a.conditional:
                break
            level = index
            if a.index != b.index:
                break
        script, statement = anchor(frames[level])
        self.place = Place(script, statement, "before")

    def _check_reach(self) -> None:
        """Every training must lie behind the place; two trainings in two branches have no common one."""
        if self.place is None:
            return
        for train in self.trains:
            if not self._on_way(train):
                message = (
                    "this training does not come after the context at "
                    f"{self.place.script.where(self.place.statement)}; set the context once, before both"
                )
                self.problems.append(Problem("MSD107", train.script, train.node, message))
                return

    def _on_way(self, train: Event) -> bool:
        place = self.place
        return place is not None and any(
            frame.script is place.script
            and place.statement in frame.block.body
            and (frame.statement is not place.statement or place.where == "before")
            for frame in train.frames
        )


def _in_function(frame: Frame) -> bool:
    return frame.script.bindings.scope_of(frame.statement).function() is not None
