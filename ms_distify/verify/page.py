"""A verification as one page: verdict, checks, curves and the diff. It needs no network and no scripts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from .charts import Line, chart
from .outcome import CHECKS, COULD_NOT_RUN, DIFFERENT, DIFFERS, NOT_COMPARED, NOTED, OK, PROVED, Check, Outcome
from .side_by_side import side_by_side
from .text import quoted

# Word and sign stand beside each other, so that nothing is said by colour alone.
_SIGNS = {OK: "✓", DIFFERS: "✗", NOT_COMPARED: "○", NOTED: "•"}
_VERDICTS = {
    PROVED: ("good", "✓", "Proved", "The converted program trains the same model."),
    DIFFERENT: ("bad", "✗", "Differs", ""),
    COULD_NOT_RUN: ("open", "!", "Could not run", ""),
}
# Up to this many ranks each has a colour, a dash and a place in the legend of its own.
_TOLD_APART = 8


def render(outcome: Outcome) -> str:
    """Return the page.

    Nothing in it comes from elsewhere, and its policy lets nothing come: whatever the programs' texts, paths and
    messages hold is shown as text.
    """
    title = f"{outcome.program}: {outcome.verdict}"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{quoted(title)} – ms-distify verify</title>
<style>
{_style()}</style>
</head>
<body>
{_head(outcome)}
<main>
{_changes(outcome)}
{_checks(outcome)}
{_losses(outcome)}
{_differences(outcome)}
{_programs(outcome)}
</main>
</body>
</html>
"""


@cache
def _style() -> str:
    return (Path(__file__).parent / "page.css").read_text(encoding="utf-8")


def _head(outcome: Outcome) -> str:
    look, sign, word, meaning = _VERDICTS.get(outcome.verdict, ("open", "!", outcome.verdict, ""))
    facts = [
        ("Program", f"<code>{quoted(outcome.program)}</code>"),
        ("Compared with", f"<code>{quoted(outcome.converted)}</code>"),
        ("Ranks", str(outcome.ranks)),
        ("Steps", str(outcome.steps)),
        ("Device", quoted(outcome.device)),
    ]
    if outcome.logs:
        facts.append(("What the processes printed", f"<code>{quoted(outcome.logs)}</code>"))
    listed = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts if value)
    why = f'<p class="why">{quoted(outcome.why or meaning)}</p>' if outcome.why or meaning else ""
    return f"""<header>
<p class="what">ms-distify verify</p>
<div class="verdict {look}"><h1><span class="sign" aria-hidden="true">{sign}</span> {quoted(word)}</h1>
{why}</div>
<dl class="facts">{listed}</dl>
</header>"""


def _section(name: str, title: str, content: str) -> str:
    return f'<section aria-labelledby="{name}">\n<h2 id="{name}">{title}</h2>\n{content}\n</section>'


def _changes(outcome: Outcome) -> str:
    if outcome.changes:
        items = "".join(f"<li>{quoted(change)}</li>" for change in outcome.changes)
        content = f"<ul>{items}</ul>"
    else:
        content = "<p>Nothing.</p>"
    return _section("changes", "What was changed to make the runs comparable", content)


def _checks(outcome: Outcome) -> str:
    found = {check.name: check for check in outcome.checks}
    every = [found.get(name, Check(name, "not reached", "the verification ended before it")) for name in CHECKS]
    every += [check for check in outcome.checks if check.name not in CHECKS]
    rows = "\n".join(
        f'<tr class="{quoted(check.status).replace(" ", "-")}"><th scope="row">{quoted(check.name)}'
        f"<small>{quoted(CHECKS.get(check.name, ''))}</small></th>"
        f'<td class="status"><span class="sign" aria-hidden="true">{_SIGNS.get(check.status, "○")}</span> '
        f"{quoted(check.status)}</td><td>{quoted(check.message)}</td></tr>"
        for check in every
    )
    return _section(
        "checks",
        "Checks",
        f"""<table class="checks">
<thead><tr><th scope="col">Check</th><th scope="col">Result</th><th scope="col">What was found</th></tr></thead>
<tbody>
{rows}
</tbody></table>""",
    )


def _losses(outcome: Outcome) -> str:
    title = "Loss by step"
    one, ranks = outcome.curves.one_card, outcome.curves.ranks
    finite = [value for values in [one, *ranks] for value in values if math.isfinite(value)]
    if not finite:
        seen = bool(one) or any(ranks)
        said = "every loss was NaN or infinite" if seen else "no loss was seen in these runs"
        return _section("losses", title, f"<p>There are no curves: {said}.</p>")
    few = len(ranks) <= _TOLD_APART
    names = [f"rank {rank}" for rank in range(len(ranks))]
    lines = [
        Line(name, values, f"rank r{rank}") if few else Line("", values, "many", name)
        for rank, (name, values) in enumerate(zip(names, ranks))
    ]
    table = lines if few else _extremes(ranks)
    card = Line("one card, at the batch of all ranks", one, "card")
    mean = Line("mean of the ranks", _mean(ranks), "mean", derived=True)
    over = [line for line in (card, mean) if line.values and (line is card or len(ranks) > 1)]
    together = None
    if not few:
        together = ("many", f"rank 0 to rank {len(ranks) - 1}, one line each")
        away = _farthest(ranks, mean.values)
        if away is not None:
            over.insert(0, Line(f"rank {away}, farthest from the mean", ranks[away], "away", derived=True))
    say = []
    if not one:
        say.append("No loss of one card was seen.")
    if not any(ranks):
        say.append("No loss of a rank was seen.")
    if len(ranks) > 1:
        say.append("A rank's loss is that of its own rows; the mean of the ranks is what compares with one card.")
    spread = min(finite) > 0 and max(finite) / 1000 > min(finite)
    shown = [line for line in lines if line.values or few]
    figures = [line for line in over if line.look != "away"]
    content = chart(
        "loss",
        title,
        [*shown, *over],
        log=spread,
        first=1,
        say=" ".join(say),
        together=together,
        table=[*figures, *table],
    )
    return _section("losses", title, content)


def _mean(ranks: Sequence[Sequence[float]]) -> list[float]:
    """Return the mean over the ranks, as far as every one of them goes."""
    return [math.fsum(value / len(ranks) for value in values) if _all(values) else math.nan for values in zip(*ranks)]


def _all(values: Sequence[float]) -> bool:
    return all(map(math.isfinite, values))


def _farthest(ranks: Sequence[Sequence[float]], mean: Sequence[float]) -> int | None:
    """Return the rank whose curve is farthest from the mean in all, if it is twice as far as most."""
    away = [
        sum(abs(value / 2 - middle / 2) for value, middle in zip(values, mean) if _all((value, middle)))
        for values in ranks
    ]
    return away.index(max(away)) if max(away) > 2 * sorted(away)[len(away) // 2] else None


def _extremes(ranks: Sequence[Sequence[float]]) -> list[Line]:
    """Return the least and the greatest loss of any rank, step by step."""
    longest = max(map(len, ranks))
    by_step = [
        [values[step] for values in ranks if step < len(values) and math.isfinite(values[step])]
        for step in range(longest)
    ]
    return [
        Line("least of a rank", [min(values, default=math.nan) for values in by_step], ""),
        Line("greatest of a rank", [max(values, default=math.nan) for values in by_step], ""),
    ]


def _differences(outcome: Outcome) -> str:
    title = "Largest difference of any parameter"
    curves = outcome.curves
    lines = [Line("between ranks", curves.between_ranks, "between"), Line("to one card", curves.to_one_card, "to-one")]
    missing = [line.name for line in lines if not line.finite]
    lines = [line for line in lines if line.values]
    if len(missing) == 2:
        said = "every difference was NaN or infinite" if lines else "parameters were not compared"
        return _section("differences", title, f"<p>There are no curves: {said}.</p>")
    say = ["Step 0 is the start, before the first step."]
    for line in lines:
        if line.finite and not any(line.finite) and len(line.finite) == len(line.values):
            say.append(f"Not the least difference {line.name} in any step.")
    for name in missing:
        if all(line.name != name for line in lines):
            say.append(f"Parameters were not compared {name}.")
    content = chart("difference", title, lines, log=True, first=0, say=" ".join(say))
    return _section("differences", title, content)


def _programs(outcome: Outcome) -> str:
    if not outcome.original and not outcome.output:
        content = "<p>There are no programs to show.</p>"
    elif not outcome.original:
        content = "<p>There was no single-card program to compare with: the distributed one was looked at alone.</p>"
    elif not outcome.output:
        content = "<p>There is no converted program.</p>"
    elif outcome.original == outcome.output:
        content = "<p>Nothing: the two programs are the same text.</p>"
    else:
        content = side_by_side(outcome.original, outcome.output, (outcome.program, outcome.converted))
    return _section("programs", "What the conversion changed", content)
