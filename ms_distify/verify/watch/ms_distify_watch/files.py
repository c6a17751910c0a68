"""Records which files a program writes, and keeps it from writing over the user's own."""

from __future__ import annotations

import functools
import os
import sys
from types import ModuleType
from typing import Any

from .after import Actions
from .log import Log

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
_REMOVES = {"os.remove": 0, "os.rmdir": 0, "shutil.rmtree": 0, "os.truncate": 0}
_MOVES = ("os.rename", "shutil.move")
_MAKES = ("os.link", "os.symlink", "shutil.copyfile")
_BY_LIBRARY = "ms_distify.writes"


def watch(config: dict[str, Any], log: Log) -> None:
    """Watch what this process opens, moves and removes.

    Raises (in the program): PermissionError for what lies in the user's project, or was there before the run.
    """
    work = os.path.realpath(config["work"])
    protected = [os.path.realpath(place) for place in config["protect"]]
    began = config["began"]
    free = tuple(
        os.path.realpath(place) + os.sep
        for place in (work, config["record"], os.path.expanduser("~/.cache"), "/dev", "/proc")
    )
    own = os.path.realpath(config["record"]) + os.sep

    def check(path: Any, how: str) -> None:
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if not isinstance(path, str):
            return  # an open file
        real = os.path.realpath(path)
        if real.startswith(own):
            return
        if any((real + os.sep).startswith(place + os.sep) for place in protected) and not real.startswith(
            work + os.sep
        ):
            log.write("forbidden", path=real)
            raise PermissionError(f"ms-distify verify: {real} belongs to the project, which is only read")
        if how != "make" and not real.startswith(free) and _older(real, began):
            log.write("forbidden", path=real)
            raise PermissionError(f"ms-distify verify: {real} was there before; it is not written over")
        if how == "write" and not real.startswith(("/dev/", "/proc/")):
            log.write("write", path=real)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            if (isinstance(mode, str) and set(mode) & set("wax+")) or (mode is None and flags & _WRITES):
                check(path, "write")
        elif event in _REMOVES:
            check(arguments[_REMOVES[event]], "remove")
        elif event in _MOVES:
            check(arguments[0], "remove")
            check(arguments[1], "write")
        elif event in _MAKES:
            check(arguments[1], "write")
        elif event == _BY_LIBRARY:
            check(arguments[0], "write")
        elif event == "os.mkdir" and not os.path.isdir(arguments[0]):
            check(arguments[0], "make")

    sys.addaudithook(hook)


def watch_libraries(actions: Actions) -> None:
    """Watch what MindSpore writes past Python: MindRecord files, each with an index beside it."""

    def tell(paths: list[str]) -> None:
        for path in paths:
            sys.audit(_BY_LIBRARY, path)
            sys.audit(_BY_LIBRARY, f"{path}.db")

    def writers(module: ModuleType) -> None:
        original = module.ShardWriter.open

        @functools.wraps(original)
        def opened(self: Any, paths: Any, *args: Any, **kwargs: Any) -> Any:
            tell([str(path) for path in paths])
            return original(self, paths, *args, **kwargs)

        module.ShardWriter.open = opened

    def datasets(module: ModuleType) -> None:
        original = module.Dataset.save

        @functools.wraps(original)
        def save(self: Any, file_name: Any, num_files: int = 1, *args: Any, **kwargs: Any) -> Any:
            digits = len(str(num_files - 1))
            tell([f"{file_name}{i:0{digits}}" for i in range(num_files)] if num_files > 1 else [str(file_name)])
            return original(self, file_name, num_files, *args, **kwargs)

        module.Dataset.save = save

    actions.after("mindspore.mindrecord.core.shardwriter", writers)
    actions.after("mindspore.dataset.engine.datasets", datasets)


def _older(path: str, began: float) -> bool:
    try:
        return os.stat(path).st_mtime < began
    except OSError:
        return False
