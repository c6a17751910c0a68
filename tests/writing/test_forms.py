"""Bytes outside the edits stay (DESIGN 1, point 8), whatever form the file has."""

from __future__ import annotations

import codecs
import difflib
import re

import pytest
from support import HEAD, TRAINING, run

BODY = HEAD + 'ms.set_context(mode=0)\ntrain = ds.MnistDataset("/d").batch(8, drop_remainder=True)\n' + TRAINING
C40 = (
    '#!/usr/bin/env python\n# -*- coding: gbk -*-\n"""文档"""\nfrom __future__ import annotations\n'
    + BODY.replace("mode=0)", "mode=0)  # 模式")
)  # fmt: skip
UTF8 = C40.replace("gbk", "utf-8")

FORMS = [
    pytest.param(C40.encode("gbk"), id="GBK"),
    pytest.param(codecs.BOM_UTF8 + UTF8.encode(), id="BOM"),
    pytest.param(UTF8.replace("\n", "\r\n").encode(), id="CRLF"),
    pytest.param(UTF8.replace("\n", "\r\n").replace("annotations\r\n", "annotations\r").encode(), id="lone CR in CRLF"),
    pytest.param(codecs.BOM_UTF8 + UTF8.replace("\n", "\r\n").encode(), id="BOM and CRLF"),
    pytest.param(UTF8.replace("\n", "\r").encode(), id="CR only"),
    pytest.param(("# coding: latin-1\n# é\n" + BODY).encode("latin-1"), id="latin-1"),
    pytest.param(("# coding: shift_jis\n# 表\n" + BODY).encode("shift_jis"), id="Shift JIS"),
    pytest.param(("# -*- coding: utf8 -*-\n# é\n" + BODY).encode(), id="utf8"),
    pytest.param(("#-*-coding:UTF-8-*-\n# é\n" + BODY).encode(), id="cookie without spaces"),
    pytest.param(BODY.replace("\n", "\r\n", 2).encode(), id="mixed line ends"),
    pytest.param(BODY.rstrip("\n").encode(), id="no final newline"),
    pytest.param(BODY.encode() + b"   ", id="spaces at the end"),
    pytest.param(BODY.encode() + b"\n\n  \n\t\n", id="blank lines at the end"),
    pytest.param(BODY.encode() + b"# end", id="a comment at the end"),
    pytest.param(BODY.replace("train = ", "\x0c\ntrain = ").encode(), id="form feed on a line of its own"),
    pytest.param(BODY.replace("net = ", "\x0cnet = ").encode(), id="form feed before code"),
    pytest.param(BODY.replace("train = ", "\x0ctrain = ").encode(), id="form feed before the edit"),
    pytest.param(BODY.replace("\n", "\r\n").replace("net = ", "\x0c\x0cnet = ").encode(), id="form feeds and CRLF"),
    pytest.param(BODY.replace("ms.set", "x = 1; y = 2\nms.set").encode(), id="semicolons"),
    pytest.param(BODY.replace("net = ", "net \\\n  = \\\n  ").encode(), id="continuations"),
    pytest.param(BODY.replace('"/d"', '"/d" \\\n   ').encode(), id="continuation in the call"),
    pytest.param(BODY.replace('"/d"', "'/d' + '" + "x" * 5000 + "'").encode(), id="a very long line"),
    pytest.param(BODY.replace("net", "网络").encode(), id="Unicode identifiers"),
    pytest.param(BODY.replace("  ", "\t").encode(), id="tabs"),
    pytest.param(BODY.replace("train = ", "if 1:\n\ttrain = ").encode(), id="tab indentation"),
    pytest.param(BODY.replace("net = ", 's = """a\n\tb \n  \\\n"""\nnet = ').encode(), id="a string over lines"),
    pytest.param(BODY.replace("\n", "  \n").encode(), id="spaces at every line's end"),
]


@pytest.mark.parametrize("raw", FORMS)
def test_bytes_outside_the_edits_stay(raw: bytes) -> None:
    result = run(raw)
    assert not result.refused, result.findings
    compile(raw, "before", "exec")
    compile(result.output, "after", "exec")
    # latin-1 keeps every byte; lines end where Python ends them
    before, after = (re.split(r"(?<=\n)|(?<=\r)(?!\n)", text.decode("latin-1")) for text in (raw, result.output))
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    changed = 0
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind == "equal":
            continue
        old, new = "".join(before[i:j]), "".join(after[k:m])
        if old:
            changed += 1
            rest = iter(new)  # what was there is still there in its order, with something put in
            assert all(char in rest for char in old), (old, new)
            assert "MnistDataset" in old, "only the constructor's line is changed, all others are inserted"
        else:
            assert kind == "insert"
    assert changed == 1
    ends = {end: len(re.findall(end, raw.decode("latin-1"))) for end in ("\r\n", "\r(?!\n)", "(?<!\r)\n")}
    grown = {end: len(re.findall(end, result.output.decode("latin-1"))) - count for end, count in ends.items()}
    main = max(ends, key=lambda end: ends[end])
    assert all(count == 0 for end, count in grown.items() if end != main), "inserted lines end as most lines do"
    assert grown[main] > 0
    assert raw.endswith((b"\n", b"\r")) == result.output.endswith((b"\n", b"\r"))
    if "__future__" in raw.decode("latin-1"):
        text = result.output.decode("latin-1")
        assert text.index("__future__") < text.index("import os")


def test_c39() -> None:
    before = HEAD + (
        "train = ds.ImageFolderDataset(\n"
        '    "/data/train",   # 训练集\n'
        "    shuffle=True,    # keep\n"
        ")  # end\n"
    ) + TRAINING  # fmt: skip
    out = run(before.encode()).output.decode()
    assert (
        "train = ds.ImageFolderDataset(\n"
        '    "/data/train",   # 训练集\n'
        "    shuffle=True,    # keep\n"
        "    num_shards=rank_size,\n"
        "    shard_id=rank_id,\n"
        ")  # end\n"
    ) in out
