"""What is read about files: which statements every rank reaches alike, and which paths are the same.

A file is written by rank 0 alone. Two questions decide how: does another rank read it later (then all must wait), and
do all ranks come by a place equally often (only there may they wait for each other).
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..reading.bindings import literal
from ..reading.expressions import is_main_guard
from ..reading.program import Program
from ..reading.roles import argument, body_of, calls_in, parts
from ..reading.script import Script
from ..reading.tree import children, values, walk
from .paths import Key, beginning, dest, folder, parents, pattern, plain

_ENDS = (cst.Return, cst.Break, cst.Continue)
_STATEMENTS = (cst.SimpleStatementLine, cst.BaseCompoundStatement)
# What may stand in a condition or behind `in` of a loop that comes out alike on all ranks.
_PURE = frozenset({"range", "enumerate", "zip", "len", "str", "int", "float", "bool", "isinstance", "getattr", "hasattr",
                   "list", "tuple", "sorted", "reversed", "min", "max", "set"})  # fmt: skip
_PURE_METHODS = frozenset(
    {"lower", "upper", "startswith", "endswith", "split", "strip", "get", "keys", "items", "values"}
)
_PARSES = frozenset({"parse_args", "parse_known_args"})
_PATHS = (cst.Name, cst.Attribute, cst.SimpleString, cst.FormattedString, cst.BinaryOperation, cst.Call,
          cst.Subscript)  # fmt: skip
_MAX_DEPTH = 12


class Files:
    """The files of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._readers: list[tuple[Script, cst.Call, frozenset[Key]]] | None = None
        self._arguments: dict[str, list[tuple[Script, cst.Call, cst.BaseExpression]]] | None = None
        self._closures: dict[cst.CSTNode, list[tuple[Script, cst.Call]]] = {}
        # What was decided so far: statements that rank 0 alone will run, statements at which ranks will wait for each
        # other, and what ranks will not run together, so that none may wait for another there.
        self.alone: set[cst.CSTNode] = set()
        self.waits: set[cst.CSTNode] = set()
        self.apart: set[cst.CSTNode] = set()
        # Calls that give a time or a random value, of which all ranks take rank 0's.
        self.shared: set[cst.CSTNode] = set()

    # -- who runs it -------------------------------------------------------------------------------------------------

    def guarded(self, script: Script, node: cst.CSTNode, depth: int = 0) -> bool:
        """Whether a node runs only under a condition on the rank, where it stands or wherever its function is called."""
        if self.program.guarded_by_rank(script, node) or node in self.alone:
            return True
        if self.alone and any(parent in self.alone for parent in script.tree.ancestors(node)):
            return True
        scope = script.bindings.scope_of(node).function()
        if scope is None or depth > _MAX_DEPTH:
            return False
        sites = self.program.flow.call_sites(scope.node)
        return bool(sites) and all(self.guarded(home, call, depth + 1) for home, call in sites)

    def own_place(self, script: Script, path: cst.BaseExpression) -> bool:
        """Whether a path differs between ranks by intention: it has the rank, the process or chance in it."""
        return self.program.mentions_rank(script, path) or self._made_of(script, path, names.OWN_PLACES)

    # -- do all ranks come here alike --------------------------------------------------------------------------------

    def alike(self, script: Script, node: cst.CSTNode, depth: int = 0) -> bool:
        """Whether all ranks surely reach a node, equally often, and could wait for each other there."""
        tree = script.tree
        if node in self.apart or script.tree.statement(node) in self.apart:
            return False
        below = node
        for parent in tree.ancestors(node):
            if isinstance(parent, (cst.FunctionDef, cst.Lambda)):
                return (
                    isinstance(parent, cst.FunctionDef)
                    and below is parent.body
                    and not script.bindings.yields.get(parent)
                    and depth < _MAX_DEPTH
                    and self._called_alike(parent, depth)
                )
            if not self._passed_alike(script, parent, below):
                return False
            below = parent
        return True

    def _called_alike(self, function: cst.FunctionDef, depth: int) -> bool:
        sites = self.program.flow.call_sites(function)
        visited = self.program.timeline.visited
        reached = [(home, call) for home, call in sites if call in visited]
        return bool(reached) and all(self.alike(home, call, depth + 1) for home, call in sites)

    def _passed_alike(self, script: Script, parent: cst.CSTNode, below: cst.CSTNode) -> bool:
        """Whether all ranks go on alike from ``parent`` to ``below``, which stands in it."""
        if isinstance(parent, cst.If):
            return below is parent.test or is_main_guard(parent) or self.same(script, parent.test)
        if isinstance(parent, cst.For):
            return below is parent.iter or (
                below is parent.body
                and self.same(script, parent.iter)
                and all(self._goes_on(script, statement) for statement in parent.body.body)
            )
        if isinstance(parent, (cst.Try, cst.TryStar)):
            return not parent.handlers
        if isinstance(parent, cst.BooleanOperation):
            return below is parent.left
        if isinstance(parent, (cst.While, cst.Match, cst.IfExp, cst.BaseComp, cst.Await, cst.ExceptHandler)):
            return False
        if isinstance(parent, (cst.IndentedBlock, cst.SimpleStatementSuite, cst.Module)):
            before = list(parent.body[: _index(parent.body, below)])
            return all(self._goes_on(script, statement) for statement in before)
        return True

    def _goes_on(self, script: Script, statement: cst.CSTNode) -> bool:
        """Whether no rank alone leaves the block at a statement."""
        if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
            return True
        inside = (part for part in parts(statement) if isinstance(part, _ENDS))
        return all(
            all(
                not isinstance(parent, cst.If) or self.same(script, parent.test)
                for parent in self._between(script, end, statement)
            )
            and not any(
                isinstance(parent, (cst.While, cst.Try, cst.TryStar))
                or (isinstance(parent, cst.For) and not self.same(script, parent.iter))
                for parent in self._between(script, end, statement)
            )
            for end in inside
        )

    def _between(self, script: Script, node: cst.CSTNode, top: cst.CSTNode) -> Iterator[cst.CSTNode]:
        for parent in script.tree.ancestors(node):
            yield parent
            if parent is top:
                return

    def same(self, script: Script, test: cst.BaseExpression) -> bool:
        """Whether an expression surely has the same value on all ranks: it is made of arguments and constants alone."""
        stack: list[cst.CSTNode] = [test]
        while stack:
            part = stack.pop()
            if isinstance(part, cst.Call):
                func = part.func
                if isinstance(func, cst.Attribute) and func.attr.value in _PURE_METHODS:
                    stack.append(func.value)
                elif self.program.flow.qualified(script, part) not in _PURE:
                    return False
                stack.extend(arg.value for arg in part.args)
            elif isinstance(part, (cst.Await, cst.Yield, cst.NamedExpr, cst.Lambda)):
                return False
            elif isinstance(part, (cst.Name, cst.Attribute)):
                if literal(part) is ... and not self._setting(script, part):
                    return False
            else:
                stack.extend(children(part))
        return not self.program.mentions_rank(script, test)

    def _setting(self, script: Script, node: cst.BaseExpression) -> bool:
        """Whether a value is a literal, something of a library, or a setting of the program's start."""
        found = self.program.flow.origins(script, node)
        if found and all(
            origin.kind in ("literal", "class", "function", "module")
            or (origin.kind == "external" and not origin.qualified.startswith("mindspore."))
            or (
                isinstance(node, cst.Name)
                and isinstance(origin.node, cst.Attribute)
                and self._setting(origin.script, origin.node)
            )
            for origin in found
        ):
            return True
        return (
            isinstance(node, cst.Attribute)
            and not any(True for _ in self.program.project.attribute_assignments(node.attr.value))
            and self._settings(script, node.value)
        )

    def _settings(self, script: Script, node: cst.BaseExpression) -> bool:
        """Whether an object holds the arguments of the command line, or settings that the program assigns nowhere."""
        found = self.program.flow.origins(script, node)
        return bool(found) and all(
            origin.kind == "instance"
            or (
                isinstance(origin.node, cst.Call)
                and isinstance(origin.node.func, cst.Attribute)
                and origin.node.func.attr.value in _PARSES
            )
            for origin in found
        )

    def looks_at_files(self, script: Script, test: cst.BaseExpression) -> bool:
        """Whether an expression itself asks which files there are."""
        return any(
            isinstance(part, cst.Call)
            and (
                self.program.flow.qualified(script, part) in names.FILE_STATE
                or (isinstance(part.func, cst.Attribute) and part.func.attr.value in names.FILE_STATE_METHODS)
            )
            for part in walk(test)
        )

    def clock(self, script: Script, path: cst.BaseExpression) -> bool:
        """Whether a path has the time in it, and so differs between ranks."""
        return self._made_of(script, path, names.CLOCKS)

    def by_rank(self, script: Script, path: cst.BaseExpression) -> bool:
        """Whether a path has the rank in it, also by way of attributes."""
        by_call = any(True for _ in self._sources(script, path, names.RANK_CALLS, set()))
        return by_call or self.program.mentions_rank(script, path)

    def clocks(self, script: Script, path: cst.BaseExpression) -> list[tuple[Script, cst.Call]]:
        """Return the calls that give the times and random values in a path."""
        return list(self._sources(script, path, names.CLOCKS | names.TEMPORARY, set()))

    def _made_of(self, script: Script, node: cst.CSTNode, calls: frozenset[str]) -> bool:
        """Whether some calls go into a value, other than those of which all ranks take rank 0's."""
        return any(call not in self.shared for _, call in self._sources(script, node, calls, set()))

    def _sources(
        self, script: Script, node: cst.CSTNode, calls: frozenset[str], seen: set[cst.CSTNode]
    ) -> Iterator[tuple[Script, cst.Call]]:
        """Yield those of some calls that go into a value."""
        if node in seen or len(seen) > 200:
            return
        seen.add(node)
        for part in values(node):
            if isinstance(part, cst.Call) and self.program.flow.qualified(script, part) in calls:
                yield script, part
            elif isinstance(part, (cst.Name, cst.Attribute)) and literal(part) is ...:
                for origin in self.program.flow.origins(script, part):
                    if origin.kind in ("call", "unknown", "literal") and origin.node is not part:
                        yield from self._sources(origin.script, origin.node, calls, seen)
                if isinstance(part, cst.Attribute):
                    for home, default in self._defaults(script, part):
                        yield from self._sources(home, default, calls, seen)

    def _defaults(self, script: Script, setting: cst.Attribute) -> Iterator[tuple[Script, cst.BaseExpression]]:
        """Yield what an argument of the command line (``args.out``) is where it is not given."""
        if not self._settings(script, setting.value):
            return
        for home in self.program.scripts:
            for call in home.bindings.calls:
                if isinstance(call.func, cst.Attribute) and call.func.attr.value == "add_argument":
                    flags = [literal(arg.value) for arg in call.args if arg.keyword is None]
                    default = argument(call, 9, "default")
                    if default is not None and any(dest(flag) == setting.attr.value for flag in flags):
                        yield home, default

    # -- what it runs ------------------------------------------------------------------------------------------------

    def closure(self, script: Script, node: cst.CSTNode) -> list[tuple[Script, cst.Call]]:
        """Return the calls that running a node makes, in it and in the functions of the program it enters."""
        known = self._closures.get(node)
        if known is None:
            known, seen, stack = [], {node}, [(script, node)]
            while stack:
                home, current = stack.pop()
                for call in calls_in(current):
                    known.append((home, call))
                    for where, function in self.program.flow.targets(home, call):
                        body = body_of(function)
                        if body not in seen:
                            seen.add(body)
                            stack.append((where, body))
            self._closures[node] = known
        return known

    def inside(self, script: Script, *statements: cst.CSTNode) -> set[cst.CSTNode]:
        """Return the statements and calls that are run with some statements, in the functions they enter as well."""
        found: set[cst.CSTNode] = set()
        for statement in statements:
            found.update(part for part in walk(statement) if isinstance(part, _STATEMENTS))
            for home, call in self.closure(script, statement):
                found.add(call)
                for _, function in self.program.flow.targets(home, call):
                    found.update(part for part in walk(function) if isinstance(part, _STATEMENTS))
        return found

    def needs_all(self, script: Script, node: cst.CSTNode, *, draws: bool = True) -> str:
        """Return why rank 0 must not run a node alone, or nothing; ``draws``: that it draws is a reason, too."""
        if self.program.roles.steps(script, node):
            return "it trains"
        if self.program.sums_evaluations and self._evaluates(script, node):
            return "it evaluates, which takes all ranks"
        trained = {event.node for event in self.program.timeline.of("train")}
        for home, call in self.closure(script, node):
            name = self.program.flow.qualified(home, call)
            if call in trained:
                return "it trains"
            if name in names.COLLECTIVES or name in (names.INIT, names.GRAD_REDUCER):
                return f"{name.rpartition('.')[2]} takes all ranks"
            if name in names.OF_PROCESS:
                return f"it changes the process ({name}), which goes on with that"
            if draws and (name in names.PYTHON_DRAWS or name in names.NUMPY_DRAWS):
                return f"it draws ({name}), and ranks that do not would go on with other numbers"
        return ""

    def _evaluates(self, script: Script, node: cst.CSTNode) -> bool:
        """Whether running a node evaluates a dataset, in it or in the functions of the program it enters."""
        sinks = {sink.node for sink in self.program.roles.sinks if sink.role in ("eval", "read")}
        entered = [f for home, call in self.closure(script, node) for _, f in self.program.flow.targets(home, call)]
        return any(part in sinks for top in (node, *entered) for part in walk(top))

    # -- which file --------------------------------------------------------------------------------------------------

    def read_back(self, script: Script, path: cst.BaseExpression) -> list[tuple[Script, cst.Call]]:
        """Return the calls of the program that may read the file a path names, as far as can be told.

        Those of functions that are known to read, by what the path is made of; any other call that is given a path of
        the same words; and what lists its folder.
        """
        wanted = self.keys(script, path)
        found = [(home, call) for home, call, keys in self._reads() if keys & wanted]
        text = _text(script, path)
        for home, call, argument_ in self._given().get(text, ()):
            if argument_ is not path and self.keys(home, argument_) & wanted and not self._no_reader(home, call):
                found.append((home, call))
        for home, call, name in self.program.calls(*names.FOLDER_READERS):
            parameter, position = names.FOLDER_READERS[name]
            listed = argument(call, position, parameter)
            if listed is None:
                continue
            holds = self._folders(script, path, deep=name in names.DEEP_READERS)
            if (self.keys(home, listed) | self.keys(home, folder(listed) or listed) | pattern(listed)) & holds:
                found.append((home, call))
        return list({call: (home, call) for home, call in found}.values())

    def _folders(
        self, script: Script, path: cst.BaseExpression, *, deep: bool, seen: tuple[cst.CSTNode, ...] = ()
    ) -> set[Key]:
        """Return what tells the folder that a path lies in; ``deep``: those around it as well."""
        if path in seen or len(seen) > _MAX_DEPTH:
            return set()
        found: set[Key] = {("text", name) for name in parents(beginning(path))[: None if deep else 1]}
        above = folder(path)
        if above is not None:
            found |= self.keys(script, above)
            found |= self._folders(script, above, deep=True, seen=(*seen, path)) if deep else set()
        if isinstance(path, (cst.Name, cst.Attribute)):
            for origin in self.program.flow.origins(script, path):
                if isinstance(origin.node, _PATHS) and origin.kind in ("call", "unknown", "literal"):
                    found |= self._folders(origin.script, origin.node, deep=deep, seen=(*seen, path))
        return found

    def _given(self) -> dict[str, list[tuple[Script, cst.Call, cst.BaseExpression]]]:
        """Return the arguments of all calls, by their words."""
        if self._arguments is None:
            self._arguments = {}
            for script in self.program.scripts:
                for call in script.bindings.calls:
                    for arg in call.args:
                        if isinstance(arg.value, _PATHS) and literal(arg.value) not in (None, True, False):
                            self._arguments.setdefault(_text(script, arg.value), []).append((script, call, arg.value))
        return self._arguments

    def _no_reader(self, script: Script, call: cst.Call) -> bool:
        """Whether a call that is given a path surely reads nothing there, or is looked at elsewhere."""
        name = self.program.flow.qualified(script, call)
        if name in names.PATH_FUNCTIONS or name in names.OPENERS or name in names.LOGGERS or name in names.ROTATING:
            return True
        if name in names.SAVERS or name in names.WRITER_DIRECTORIES or name in (names.SAVE_CHECKPOINT, names.EXPORT):
            return True
        method = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
        if method in names.PATH_METHODS or method in names.SAVE_METHODS:
            return True
        return bool(self.program.flow.targets(script, call))  # what it does with the path is seen there

    def _reads(self) -> list[tuple[Script, cst.Call, frozenset[Key]]]:
        if self._readers is None:
            self._readers = []
            for script, call, name in self.program.calls(*names.READERS):
                parameter, position = names.READERS[name]
                self._reader(script, call, argument(call, position, parameter))
            for script, call, name in self.program.calls(*names.OPENERS):
                if not self.writes(script, call, name)[0]:
                    self._reader(script, call, argument(call, 0, names.OPENERS[name][0]))
        return self._readers

    def _reader(self, script: Script, call: cst.Call, path: cst.BaseExpression | None) -> None:
        assert self._readers is not None
        if path is not None:
            self._readers.append((script, call, self.keys(script, path)))

    def rows_saved(self) -> list[tuple[Script, cst.Call]]:
        """Return the calls that write the rows of a dataset into a file: ``dataset.save(path)``."""
        sites = {site.call for site in self.program.roles.sites}
        return [
            (script, call)
            for script in self.program.scripts
            for call in script.bindings.calls
            if isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "save"
            and any(origin.node in sites for origin in self.program.flow.origins(script, call.func.value))
        ]

    def writes(self, script: Script, call: cst.Call, name: str) -> tuple[bool, str]:
        """Return whether a call of ``open`` or the like writes, and its mode ("?" where it cannot be told)."""
        mode = argument(call, 1, names.OPENERS[name][1])
        if mode is None:
            return False, "?" if any(arg.star for arg in call.args) else "r"
        value = self.program.flow.constant(script, mode)
        if not isinstance(value, str):
            return False, "?"
        return bool(set(value) & set("wax+")), value

    def keys(self, script: Script, path: cst.BaseExpression) -> frozenset[Key]:
        """Return what tells a path from others: two with one of these in common may be the same file."""
        found: set[Key] = set()
        value = self.program.flow.constant(script, path)
        if isinstance(value, str):
            return frozenset({("text", plain(value))})
        text = _text(script, path)
        if not isinstance(path, (cst.SimpleString, cst.ConcatenatedString)):
            found.add(("words", text, self._where_it_means_the_same(script, path)))
        for origin in self.program.flow.origins(script, path):
            if origin.kind == "literal":
                constant = literal(origin.node)
                found.add(("text", plain(constant)) if isinstance(constant, str) else ("node", origin.node))
            elif origin.kind in ("call", "unknown") and origin.node is not path:
                found.add(("node", origin.node))
        return frozenset(found)

    def _where_it_means_the_same(self, script: Script, path: cst.BaseExpression) -> object:
        """Return the function within which the words of a path name one file; None: in the whole program.

        ``args.out`` and ``self.path`` and what is set at module level are the same in every function.
        """
        home = script.bindings.scope_of(path).function()
        for part in values(path):
            if isinstance(part, cst.Name) and literal(part) is ...:
                if isinstance(script.tree.parent.get(part), cst.Attribute):
                    continue
                bindings = script.bindings.lookup(part)
                if any(binding.scope.kind != "module" for binding in bindings):
                    return home.node if home is not None else None
        return None


def _text(script: Script, node: cst.CSTNode) -> str:
    """Return the words of an expression, however they are laid out and quoted."""
    return "".join(script.tree.text(node).split()).replace('"', "'")


def _index(body: object, statement: cst.CSTNode) -> int:
    assert isinstance(body, (list, tuple))
    return next((i for i, item in enumerate(body) if item is statement), len(body))


__all__ = ["Files"]
