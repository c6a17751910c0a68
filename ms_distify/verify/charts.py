"""Curves by step as inline SVG, with the words and the table of figures that say the same without the picture.

The drawing is stretched to the width it finds, and only the drawing: labels are HTML over its edges, so that they keep
their size on a narrow screen. Lines keep their width (``vector-effect`` in the style sheet).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from .text import quoted

WIDTH, HEIGHT = 1000, 320
_MOST = sys.float_info.max
_ROWS = 21  # of a table of figures, at most
_NAMED = 8  # lines that are spoken of one by one, at most
_ZERO = 0.06  # where the zeros of a logarithmic scale lie, in parts of the height; its least decade is at twice that


@dataclass(frozen=True)
class Line:
    """One curve.

    Attributes:
        name: what the legend and the tooltip call it; empty for one of many that the legend speaks of together.
        values: its values, one a step; NaN and infinity are shown as such, not drawn.
        look: classes of the style sheet.
        tooltip: its name where ``name`` is empty.
        derived: whether it says nothing that other lines do not: what it lacks is not remarked upon.
    """

    name: str
    values: Sequence[float]
    look: str
    tooltip: str = ""
    derived: bool = False

    @property
    def called(self) -> str:
        """How it is called in words."""
        return self.name or self.tooltip

    @property
    def finite(self) -> list[float]:
        """The values that can be drawn."""
        return [value for value in self.values if math.isfinite(value)]


@dataclass(frozen=True)
class Scale:
    """Where values lie between the bottom (0) and the top (1) of a drawing.

    Attributes:
        log: whether it is logarithmic; zeros then have a line of their own below the least decade.
        low: value at the bottom; of a logarithmic scale the least decade.
        high: value at the top; of a logarithmic scale the greatest decade.
        zero: whether a logarithmic scale has zeros.
    """

    log: bool
    low: float
    high: float
    zero: bool = False

    def place(self, value: float) -> float:
        """Return where a finite value lies."""
        if not self.log:
            # Halved, for the difference of two large numbers can be infinite.
            return (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        if value <= 0:
            return _ZERO
        bottom = 2 * _ZERO if self.zero else 0.0
        return bottom + (1 - bottom) * (math.log10(value) - self.low) / (self.high - self.low)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Yield places and labels."""
        if self.log:
            if self.zero:
                yield _ZERO, "0"
            every = max(1, math.ceil((self.high - self.low) / 6))
            for decade in range(int(self.low), int(self.high) + 1, every):
                bottom = 2 * _ZERO if self.zero else 0.0
                yield (
                    bottom + (1 - bottom) * (decade - self.low) / (self.high - self.low),
                    f"1e{decade}" if decade else "1",
                )
            return
        step = _nice(self.high / 5 - self.low / 5)
        for number in range(math.ceil(self.low / step), math.floor(self.high / step) + 1):
            yield self.place(number * step), f"{number * step:.6g}"


def scale_for(values: Sequence[float], *, log: bool) -> Scale:
    """Return a scale on which finite values have room."""
    if log:
        positive = [value for value in values if value > 0]
        least = math.floor(math.log10(min(positive))) if positive else -1
        greatest = math.ceil(math.log10(max(positive))) if positive else 0
        return Scale(True, least, max(greatest, least + 1), zero=len(positive) < len(values))
    low, high = min(values), max(values)
    room = (high / 2 - low / 2) * 0.1 or abs(high) * 0.1 or 1.0
    return Scale(False, max(low - room, -_MOST), min(high + room, _MOST))


def _nice(step: float) -> float:
    """Return 1, 2 or 5 times a power of ten that is not less than ``step``."""
    if not step > 1e-300:
        return 1e-300
    power = 10.0 ** math.floor(math.log10(step))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= step), 10 * power)


def chart(
    name: str,
    title: str,
    lines: Sequence[Line],
    *,
    log: bool,
    first: int,
    say: str,
    together: tuple[str, str] | None = None,
    table: Sequence[Line] | None = None,
) -> str:
    """Return a figure.

    Args:
        name: for ids; letters only.
        title: what it shows.
        lines: the curves, those drawn last on top; at least one has a finite value.
        log: whether the scale is logarithmic.
        first: the step of the first value.
        say: what to see in it, in words.
        together: the look and the words for the lines without a name, in the legend.
        table: the columns of the table of figures, where they are not the lines.
    """
    scale = scale_for([value for line in lines for value in line.finite], log=log)
    last = first + max(len(line.values) for line in lines) - 1
    drawn = "\n".join(_draw(line, scale, first, last) for line in lines)
    kind = "Logarithmic scale" if log else "Linear scale"
    notes = _notes(lines, first)
    desc = " ".join([f"{kind}, steps {first} to {last}.", say, *notes])
    grid = "".join(f"M0 {HEIGHT * (1 - place):.1f}H{WIDTH}" for place, _ in scale.ticks())
    across = [(_across(step, first, last) / WIDTH, str(step)) for step in _steps(first, last)]
    return f"""<figure class="chart">
<figcaption>{kind}</figcaption>
<div class="plot">
<div class="up" aria-hidden="true">{_labels(scale.ticks(), "bottom")}</div>
<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" aria-labelledby="{name}-title {name}-desc">
<title id="{name}-title">{quoted(title)}</title>
<desc id="{name}-desc">{quoted(desc)}</desc>
<path class="grid" d="{grid}"/>
{drawn}
</svg>
<div class="across" aria-hidden="true">{_labels(across, "left")}</div>
<div class="unit" aria-hidden="true">step</div>
</div>
{_legend(lines, together)}
{"".join(f'<p class="note">{quoted(text)}</p>' for text in (say, *notes) if text)}
{_figures(title, table or lines, first, last)}
</figure>"""


def _draw(line: Line, scale: Scale, first: int, last: int) -> str:
    """Return the stretches of a curve between what cannot be drawn, and marks at the top where that is."""
    drawn, lost = [], []
    for finite, group in groupby(enumerate(line.values, first), key=lambda item: math.isfinite(item[1])):
        points = [(_across(step, first, last), value) for step, value in group]
        if not finite:
            # The way of a path of one point is nothing, which a round cap makes a dot of.
            lost.append(f"M{points[0][0]:.1f} 6h{points[-1][0] - points[0][0]:.1f}")
            continue
        placed = [f"{x:.1f},{HEIGHT * (1 - scale.place(value)):.1f}" for x, value in points]
        if len(placed) == 1:
            drawn.append(f'<path class="dot" d="M{placed[0]}h0"/>')
        else:
            drawn.append(f'<polyline points="{" ".join(placed)}"/>')
    marks = f'<path class="lost" d="{"".join(lost)}"/>' if lost and not line.derived else ""
    return f'<g class="line {line.look}"><title>{quoted(line.called)}</title>{"".join(drawn)}{marks}</g>'


def _across(step: int, first: int, last: int) -> float:
    return WIDTH * (step - first) / (last - first) if last > first else WIDTH / 2


def _steps(first: int, last: int) -> list[int]:
    """Return the steps that are labelled: some round ones, and where it begins."""
    every = max(1, int(_nice((last - first) / 6)))
    round_ones = [step for step in range(every * (first // every), last + 1, every) if step > first]
    if round_ones and round_ones[0] - first < every / 2:
        del round_ones[0]
    return [first, *round_ones]


def _labels(places: Iterator[tuple[float, str]] | list[tuple[float, str]], side: str) -> str:
    return "".join(f'<span style="{side}:{100 * place:.2f}%">{quoted(text)}</span>' for place, text in places)


def _legend(lines: Sequence[Line], together: tuple[str, str] | None) -> str:
    entries = [(line.look, line.name) for line in lines if line.name]
    if together is not None:
        entries.insert(0, together)
    keys = "".join(
        f'<li><svg class="key" viewBox="0 0 36 10" aria-hidden="true"><g class="line {look}">'
        f'<polyline points="1,5 35,5"/></g></svg> {quoted(text)}</li>'
        for look, text in entries
    )
    return f'<ul class="legend">{keys}</ul>'


def _notes(lines: Sequence[Line], first: int) -> list[str]:
    """Return what a picture cannot show: values that are no numbers, and curves that end early."""
    longest = max(len(line.values) for line in lines)
    notes = []
    for line in lines:
        if line.derived:
            continue
        lost = [step for step, value in enumerate(line.values, first) if not math.isfinite(value)]
        if lost:
            notes.append(
                f"{line.called}: NaN or infinite in {len(lost)} of {len(line.values)} values, "
                f"first in step {lost[0]} (marked at the upper edge)."
            )
        if not line.values:
            notes.append(f"{line.called}: nothing was seen.")
        elif len(line.values) < longest:
            notes.append(f"{line.called}: ends after step {first + len(line.values) - 1}.")
    if len(notes) > _NAMED:
        notes[_NAMED:] = [f"The like holds for others, {len(notes) - _NAMED} more remarks in all."]
    return notes


def _figures(title: str, lines: Sequence[Line], first: int, last: int) -> str:
    """Return some of the figures as a table."""
    steps = list(range(first, last + 1))
    if len(steps) > _ROWS:
        steps = [steps[round(index * (len(steps) - 1) / (_ROWS - 1))] for index in range(_ROWS)]
    head = "".join(f'<th scope="col">{quoted(line.called)}</th>' for line in lines)
    rows = "\n".join(
        f'<tr><th scope="row">{step}</th>'
        + "".join(f"<td>{_figure(line, step - first)}</td>" for line in lines)
        + "</tr>"
        for step in steps
    )
    some = "" if len(steps) == last - first + 1 else f", {len(steps)} of {last - first + 1} steps"
    return f"""<details><summary>The figures{some}</summary>
<div class="wide" tabindex="0" role="region" aria-label="{quoted(title)}, figures"><table class="figures">
<caption>{quoted(title)}{some}</caption>
<thead><tr><th scope="col">step</th>{head}</tr></thead>
<tbody>
{rows}
</tbody></table></div></details>"""


def _figure(line: Line, index: int) -> str:
    if index >= len(line.values):
        return "–"
    value = line.values[index]
    return f"{value:.6g}" if math.isfinite(value) else ("NaN" if math.isnan(value) else f"{value}")
