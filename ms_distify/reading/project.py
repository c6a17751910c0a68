"""The files of one program and the imports between them.

Imports are resolved as Python would from the place of the started script: its folder first, then literal
additions to ``sys.path``; relative imports from the importing file. Anything not found there is a library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

import libcst as cst

from .bindings import Binding, Selector
from .script import Script, read_script
from .search_path import search_path
from .source import SourceError

# A program of more files than this is not followed further; nobody's training script imports so many.
_MAX_FILES = 2000


class Project:
    """A started script and the local files it imports.

    Attributes:
        entry: the script the user starts.
        unreadable: local modules that could not be read, with the reason.
    """

    def __init__(self, entry: Script, named: frozenset[Path] = frozenset()) -> None:
        self.entry = entry
        self.named = named
        self.unreadable: dict[Path, SourceError] = {}
        self._overrides: dict[Path, bytes] = {}
        self._by_file: dict[Path, Script | None] = {}
        if entry.file is not None:
            self._by_file[entry.file.resolve()] = entry
        self._homes: dict[cst.CSTNode, Script] = {}
        self._homed: set[Script] = set()

    def override(self, contents: Mapping[Path, bytes]) -> None:
        """Read some files as if they had other contents; call it before anything is asked."""
        self._overrides = {file.resolve(): content for file, content in contents.items()}

    @cached_property
    def _roots(self) -> list[Path]:
        if self.entry.file is None:
            return []
        return [self.entry.file.resolve().parent, *search_path(self.entry)]

    @cached_property
    def _all(self) -> list[Script]:
        found = [self.entry]
        for script in found:
            if len(found) > _MAX_FILES:
                break
            for node, module in self._imported(script):
                del node
                if module not in found:
                    found.append(module)
        return found

    def scripts(self) -> list[Script]:
        """Return the entry script and every local file it imports, directly or not."""
        return self._all

    def _imported(self, script: Script) -> Iterator[tuple[cst.CSTNode, Script]]:
        for scope in script.bindings.scopes.values():
            for bindings in scope.bindings.values():
                for binding in bindings:
                    if binding.kind == "import":
                        for module in self._modules_of(script, binding):
                            yield binding.node, module
        for node, name in script.bindings.stars:
            starred = self._find(script, name)
            if starred is not None:
                yield node, starred

    def _modules_of(self, script: Script, binding: Binding) -> Iterator[Script]:
        if isinstance(binding.node, cst.Import):
            for alias in binding.node.names:
                name = script.tree.module.code_for_node(alias.name)
                module = self._find(script, name)
                if module is not None:
                    yield module
            return
        found = self.resolve(script, binding)
        if found is not None:
            yield found[0]

    def imports_at(self, script: Script, node: cst.CSTNode) -> list[Script]:
        """Return the local files that an import statement runs."""
        return [module for statement, module in self._imported(script) if statement is node]

    def resolve(self, script: Script, binding: Binding) -> tuple[Script, str | None] | None:
        """Return the local file an import binding comes from, and the name in it; None for a library."""
        qualified = binding.qualified or ""
        if qualified == "mindspore" or qualified.startswith("mindspore."):
            return None
        if isinstance(binding.node, cst.Import):
            module = self._find(script, qualified)
            return None if module is None else (module, None)
        head, _, attribute = qualified.rpartition(".")
        if not head.strip("."):
            # `from . import x`: the dots that rpartition took off belong to the module
            head = "." * (len(qualified) - len(qualified.lstrip(".")))
        module = self._find(script, head)
        # `from . import data` in a package's own __init__ means the file data.py: nothing else has that name
        # yet.
        own = module is script
        if module is not None and not own and attribute in module.bindings.module.bindings:
            return module, attribute
        submodule = self._find(script, qualified)
        if submodule is not None:
            return submodule, None
        return None if module is None else (module, attribute)

    def module_attribute(self, script: Script, dotted: str) -> Script | None:
        """Return the local file of ``package.module`` where the package's folder has no file itself."""
        if dotted.startswith("mindspore") or not self._roots:
            return None
        return self._find(script, dotted)

    def star_names(self, script: Script, name: str) -> Iterator[tuple[Script, list[Binding]]]:
        """Yield where a name can come from through star imports of local files."""
        seen = {script}
        stack = [script]
        while stack:
            current = stack.pop()
            for _, qualified in current.bindings.stars:
                module = self._find(current, qualified)
                if module is None or module in seen:
                    continue
                seen.add(module)
                found = module.bindings.global_bindings(name)
                if found:
                    yield module, found
                    return
                stack.append(module)

    @cached_property
    def attribute_names(self) -> frozenset[str]:
        """The names of all methods and attributes that the program's own classes have."""
        found: set[str] = set()
        for script in self.scripts():
            for scope in script.bindings.scopes.values():
                if scope.kind == "class":
                    found.update(scope.bindings)
            found.update(target.attr.value for target, _, _ in script.bindings.attribute_assignments)
        return frozenset(found)

    def attribute_assignments(
        self, name: str
    ) -> Iterator[tuple[Script, cst.Attribute, cst.BaseExpression, tuple[Selector, ...]]]:
        """Yield every ``something.name = value`` of the program."""
        for script in self.scripts():
            for target, value, path in script.bindings.attribute_assignments:
                if target.attr.value == name:
                    yield script, target, value, path

    def home(self, node: cst.CSTNode) -> Script | None:
        """Return the file a function or class is defined in."""
        if node not in self._homes:
            for script in self.scripts():
                if script not in self._homed:
                    self._homed.add(script)
                    self._homes.update(dict.fromkeys(script.bindings.scopes, script))
        return self._homes.get(node)

    def _find(self, script: Script, qualified: str) -> Script | None:
        """Return the local file of a module name, as Python would find it from ``script``."""
        name = qualified.lstrip(".")
        level = len(qualified) - len(name)
        parts = name.split(".") if name else []
        if level:
            if script.file is None:
                return None
            base = script.file.resolve().parent
            for _ in range(level - 1):
                base = base.parent
            return self._load(base, parts)
        for root in self._roots:
            module = self._load(root, parts)
            if module is not None:
                return module
        return None

    def _load(self, base: Path, parts: list[str]) -> Script | None:
        path = base.joinpath(*parts)
        candidates = [path / "__init__.py"] if not parts else [path / "__init__.py", path.with_name(path.name + ".py")]
        for candidate in candidates:
            file = candidate
            if file in self._by_file:
                found = self._by_file[file]
                if found is not None:
                    return found
                continue
            self._by_file[file] = None
            if not file.is_file():
                continue
            resolved = file.resolve()
            if self._by_file.get(resolved) is not None:
                return self._by_file[resolved]
            try:
                raw = self._overrides.get(resolved)
                raw = file.read_bytes() if raw is None else raw
                script = read_script(raw, self._shown(file), file, named=resolved in self.named)
            except (SourceError, OSError) as error:
                self.unreadable[file] = error if isinstance(error, SourceError) else SourceError(str(error))
                continue
            script.bindings.leave_out_main()
            self._by_file[file] = self._by_file[resolved] = script
            return script
        return None

    def _shown(self, file: Path) -> str:
        """Return how a found file is called in messages: relative as the entry is."""
        assert self.entry.file is not None
        try:
            relative = file.resolve().relative_to(self.entry.file.resolve().parent)
        except ValueError:
            return str(file)
        return str(Path(self.entry.path).parent / relative)
