"""What README shows is what the tool says and does."""

import re
from pathlib import Path

from ms_distify import convert
from ms_distify.report.terminal import finding_lines, summary

README = (Path(__file__).parents[1] / "README.md").read_text()
REST = """\
net = nn.SequentialCell(nn.Flatten(), nn.Dense(3072, 10))
loss = nn.CrossEntropyLoss()
model = ms.Model(net, loss, nn.Momentum(net.trainable_params(), 0.1, 0.9), metrics={"accuracy"})
model.train(10, train)
print(model.eval(test))
"""
SHOWN = re.search(r"```diff\n(.*?)```\n\nand says, line by line.*?```\n(.*?)wrote ", README, re.DOTALL)
assert SHOWN is not None
DIFF, REPORT = SHOWN.groups()


def side(sign: str) -> str:
    return "".join(line[1:] + "\n" if line else "\n" for line in DIFF.splitlines() if not line.startswith(sign))


def test_the_diff_is_what_comes_out() -> None:
    result = convert((side("+") + REST).encode())
    assert result.output.decode() == side("-") + REST


def test_the_report_is_what_is_said() -> None:
    findings = convert((side("+") + REST).encode()).findings
    assert "\n".join([*finding_lines(findings), summary(findings)]) + "\n" == REPORT
