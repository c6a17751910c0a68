"""The page of all rules, made from their docstrings: ``python -m ms_distify.report.docs > docs/rules.md``."""

from __future__ import annotations

import sys

from ..rules import Rule, rules

_HEAD = """\
# The rules

Made from the rules' docstrings by `make docs`; `ms-distify explain CODE` shows the same. "FACTS n" are the numbers of
[mindspore.md](mindspore.md).

| code | |
|---|---|
"""


def page() -> str:
    """Return the text of docs/rules.md."""
    table = "".join(f"| [{rule.code}](#{rule.code.lower()}) | {rule.title} |\n" for rule in rules())
    return _HEAD + table + "".join(_section(rule) for rule in rules())


def _section(rule: Rule) -> str:
    """Return a rule's docstring as Markdown: ``::`` opens a code block, double back quotes become single ones."""
    lines, code = [f"\n## {rule.code}\n"], False
    for line in rule.doc.splitlines():
        if code and line and not line.startswith("    "):
            lines.append("```\n")
            code = False
        if line.endswith("::"):
            lines += [line[:-1], "\n```python"]
            code = True
        elif code:
            if line or not lines[-1].endswith("```python"):
                lines.append(line[4:])
        else:
            lines.append(line.replace("``", "`"))
    if code:
        lines.append("```")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
