"""Programs built at random from the shapes of CASES.md: nothing else moves, every site is named."""

from __future__ import annotations

import ast
import difflib
import re
from dataclasses import dataclass

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ms_distify import Conversion, convert
from ms_distify.model import REFUSED

IMPORTS = {
    "import mindspore as ms\nimport mindspore.dataset as ds\nfrom mindspore import nn\n": (
        "ms.", "ds.", "ms."),
    "import mindspore\nimport mindspore.nn as nn\nfrom mindspore import dataset as D\n": (
        "mindspore.", "D.", "mindspore."),
    "import mindspore as ms\nfrom mindspore import nn, context\nimport mindspore.dataset as ds\n": (
        "context.", "ds.", "ms."),
    "from mindspore import nn, context, save_checkpoint, Model, set_seed\n"
    "from mindspore.dataset import MnistDataset, Cifar10Dataset, ImageFolderDataset, TFRecordDataset\n": (
        "context.", "", ""),
}  # fmt: skip
CLASSES = {
    "MnistDataset": '"/d"',
    "Cifar10Dataset": '"/c"',
    "ImageFolderDataset": '"/i"',
    "TFRecordDataset": '["/t"]',
}
LAYOUTS = ["({a}{more})", "( {a}{more} )", "({a}{more},)", "(\n    {a}{more},  # 注释\n)",
           "(\n    {a}{more}\n)", "(\n    {a}{more},\n)",
           "({a}  # )(\n    {more})", "({a}{more}\n)"]  # fmt: skip
MORE = ["", ", shuffle=True", ", num_parallel_workers=4", ", num_samples=100"]
NOISE = ["", "# a comment\n", "\n\n",
         "x = '''(\n  # not a comment'''\n", "print('train', \"eval\")\n", "\x0c\n",
         "def helper(num_shards=None):\n\treturn num_shards\n", "y = [1,\n   2]  # 尾\n"]  # fmt: skip
CONTEXTS = ["", "{c}set_context(mode=0)\n", '{c}set_context(mode=1, device_target="Ascend", device_id=3)\n',
            "{c}set_context(mode=0)  # graph\n{c}set_context(device_id=1)\n"]  # fmt: skip
NEWLINES = ["\n", "\r\n"]


@dataclass(frozen=True)
class Program:
    raw: bytes
    sites: tuple[tuple[str, int], ...]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    head, (ctx, data, ms) = draw(st.sampled_from(sorted(IMPORTS.items())))
    pieces = [
        draw(st.sampled_from(["", "#!/usr/bin/env python\n", "# 版权\n"])),
        draw(st.sampled_from(["", '"""Doc."""\n'])),
        head,
    ]
    sites: list[tuple[str, int]] = []

    def add(text: str, what: str = "") -> None:
        if what and text:
            first = sum(piece.count("\n") for piece in pieces) + 1
            sites.extend((what, first + n) for n, line in enumerate(text.split("\n")[:-1]) if what in line)
        pieces.append(text)

    def noise() -> None:
        add(draw(st.sampled_from(NOISE)))

    def dataset(name: str) -> None:
        kind = draw(st.sampled_from(sorted(CLASSES)))
        layout = draw(st.sampled_from(LAYOUTS)).format(a=CLASSES[kind], more=draw(st.sampled_from(MORE)))
        layout = layout.replace("#", "  #").replace("(\n    , ", "(\n    ")
        if "# )(" in layout:  # the comma belongs before the comment
            layout = layout.replace("  #", ",  #", 1).replace("\n    , ", "\n    ").replace("\n    )", "\n)")
        add(f"{name} = {data}{kind}{layout}\n", kind)
        if draw(st.booleans()):
            add(f"{name} = {name}.batch(32, drop_remainder=True)\n")

    noise()
    add(draw(st.sampled_from(CONTEXTS)).format(c=ctx), "set_context")
    noise()
    dataset("train")
    noise()
    evaluates = draw(st.booleans())
    if evaluates:
        dataset("test")
    add("net = nn.Dense(4, 2)\n")
    noise()
    add(f"model = {ms}Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))\n")
    add("model.train(1, train)\n", "model.train")
    if evaluates:
        add("print(model.eval(test))\n", "model.eval")
    if draw(st.booleans()):
        add(f'{ms}save_checkpoint(net, "last.ckpt")\n', "save_checkpoint")
    text = "".join(pieces).replace("\n", draw(st.sampled_from(NEWLINES)))
    if draw(st.booleans()):
        text = text.rstrip("\r\n")
    raw = (b"\xef\xbb\xbf" if draw(st.booleans()) else b"") + text.encode()
    ast.parse(raw)
    return Program(raw, tuple(sites))


def lines(raw: bytes) -> list[bytes]:
    return raw.split(b"\n")


def check(program: Program) -> Conversion:
    result = convert(program.raw)
    findings = [(f.code, f.status, f.line, f.message) for f in result.findings]
    for what, line in program.sites:  # contract 9
        mentioned = any(
            found == line or f"line {line})" in text or f":{line}" in text for _, _, found, text in findings
        )
        assert mentioned, (what, line, findings)
    if result.refused:
        assert result.output == program.raw
        return result
    assert result.changed
    ast.parse(result.output)
    again = convert(result.output)  # contract 8
    assert again.output == result.output
    assert not any(f.status == REFUSED for f in again.findings)
    return result


def is_subsequence(part: bytes, whole: bytes) -> bool:
    rest = iter(whole)
    return all(byte in rest for byte in part)


@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(programs())
def test_nothing_else_moves_and_every_site_is_named(program: Program) -> None:
    result = check(program)
    if result.refused:
        return
    assert result.output.startswith(b"\xef\xbb\xbf") == program.raw.startswith(b"\xef\xbb\xbf")
    before, after = (lines(raw.removeprefix(b"\xef\xbb\xbf")) for raw in (program.raw, result.output))
    sites = {line for what, line in program.sites if what in CLASSES or what in ("set_context", "save_checkpoint")}
    for kind, start, end, _, _ in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        for number in range(start + 1, end + 1) if kind != "equal" else ():
            # a line that is not there any more is one of a site's (or the last, which had no line end)
            near = {number - offset for offset in range(4)}
            assert near & sites or number == len(before), (number, before[number - 1], result.output.decode())
    # a literal device id may be replaced, and a guarded line indented; all other text is there, in its order
    text = re.sub(rb"device_id=\d", b"device_id=", program.raw)
    assert is_subsequence(text, result.output), result.output.decode()
