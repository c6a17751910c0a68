"""What the user chose: the command line over ``[tool.ms-distify]`` in pyproject.toml."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

MAX_SEED = 2**32 - 1  # what mindspore.set_seed takes
_LIMITS = {"seed": (0, MAX_SEED), "ranks": (1, 9999), "warmup_epochs": (0, 9999)}
_WORDS = {"global_batch": ("grow", "keep"), "scale_lr": ("none", "linear")}
_FLAGS = frozenset({"quiet_ranks", "shard_eval"})


class SettingsError(Exception):
    """What was chosen is no setting, or does not go together; the message is one line for the user."""


@dataclass(frozen=True)
class Settings:
    """The choices that shape a conversion.

    Attributes:
        seed: the seed that is set where the program sets none.
        ranks: the number of cards the launcher starts unless told otherwise.
        global_batch: "grow" leaves the batch size to each rank, "keep" divides it by the number of ranks.
        scale_lr: "linear" multiplies the learning rate by the number of ranks, "none" leaves it.
        warmup_epochs: over how many epochs the learning rate rises to that.
        quiet_ranks: whether rank 0 alone prints.
        shard_eval: whether evaluations are dealt over the ranks as well, and their counts summed.
    """

    seed: int = 0
    ranks: int = 8
    global_batch: str = "grow"
    scale_lr: str = "none"
    warmup_epochs: int = 0
    quiet_ranks: bool = False
    shard_eval: bool = False

    def over(self, **chosen: Any) -> Settings:
        """Return these settings with those replaced that are not None.

        Raises:
            SettingsError: they do not go together.
        """
        settings = replace(self, **{key: value for key, value in chosen.items() if value is not None})
        if settings.scale_lr != "none" and settings.global_batch == "keep":
            raise SettingsError(
                "the learning rate is scaled for a batch that grows: --scale-lr does not go with --global-batch keep"
            )
        if settings.warmup_epochs and settings.scale_lr == "none":
            raise SettingsError("--warmup-epochs leads up to a scaled learning rate; it needs --scale-lr linear")
        return settings


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
        wrong = _wrong(key, value)
        if wrong:
            raise SettingsError(f"{file}: [tool.ms-distify] {key} must be {wrong}")
    return Settings(**table)


def _wrong(key: str, value: object) -> str:
    """Return what a setting must be if a value is no such thing, or nothing."""
    if key in _WORDS:
        return "" if value in _WORDS[key] else " or ".join(f'"{word}"' for word in _WORDS[key])
    if key in _FLAGS:
        return "" if isinstance(value, bool) else "true or false"
    low, high = _LIMITS[key]
    fits = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
    return "" if fits else f"a whole number from {low} to {high}"
