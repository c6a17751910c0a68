"""What the user chose: the command line over ``[tool.ms-distify]`` in pyproject.toml."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

MAX_SEED = 2**32 - 1  # what mindspore.set_seed takes
_LIMITS = {"seed": (0, MAX_SEED), "ranks": (1, 9999)}


class SettingsError(Exception):
    """pyproject.toml holds something that is not a setting."""


@dataclass(frozen=True)
class Settings:
    """The choices that shape a conversion.

    Attributes:
        seed: the seed that is set where the program sets none.
        ranks: the number of cards the launcher starts unless told otherwise.
    """

    seed: int = 0
    ranks: int = 8

    def over(self, **chosen: Any) -> Settings:
        """Return these settings with those replaced that are not None."""
        return replace(self, **{key: value for key, value in chosen.items() if value is not None})


def from_pyproject(start: Path) -> Settings:
    """Read ``[tool.ms-distify]`` of the nearest pyproject.toml at or above a folder.

    Raises:
        SettingsError: unreadable TOML, an unknown key or a value of the wrong type.
    """
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            try:
                raw = file.read_bytes()
            except OSError:
                return Settings()
            # tomllib is not cheap to import and most pyproject.toml files say nothing about us
            return _parse(raw, file) if b"ms-distify" in raw else Settings()
    return Settings()


def _parse(raw: bytes, file: Path) -> Settings:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        document = tomllib.loads(raw.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: {error}") from None
    tool = document.get("tool")
    table = tool.get("ms-distify", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise SettingsError(f"{file}: [tool.ms-distify] must be a table")
    known = {field.name for field in fields(Settings)}
    for key, value in table.items():
        if key not in known:
            raise SettingsError(
                f"{file}: [tool.ms-distify] has no setting {key!r}; there are {', '.join(sorted(known))}"
            )
        low, high = _LIMITS[key]
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise SettingsError(f"{file}: [tool.ms-distify] {key} must be a whole number from {low} to {high}")
    return Settings(**table)
