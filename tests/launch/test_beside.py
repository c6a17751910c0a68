from __future__ import annotations

from pathlib import Path

import pytest

from ms_distify.launch import LAUNCHER_NAME, is_ours
from ms_distify.launch.beside import choose, digest, recorded, render_for


@pytest.mark.parametrize("text", ["", "#!/bin/bash\necho mine\n", '# For "a.py", sha256 ' + "0" * 64 + "\n"])
def test_a_foreign_launcher_remembers_nothing(text: str) -> None:
    assert recorded(text) is None


@pytest.mark.parametrize(
    "name", ["train.py", "a b.py", 'q"u\\o.py', "训练.py", "line\nend.py", "$HOME.py", "tr\udcff.py"]
)
def test_a_launcher_remembers_its_program(name: str) -> None:
    text = render_for(Path("out") / name, b"content", default_ranks=4)
    assert is_ours(text)
    assert recorded(text) == (name, digest(b"content"))
    assert text.startswith("#!")


def test_choose(tmp_path: Path) -> None:
    output = tmp_path / "a.py"
    assert choose(output) == tmp_path / LAUNCHER_NAME
    (tmp_path / LAUNCHER_NAME).write_text("echo mine\n")
    assert choose(output) == tmp_path / LAUNCHER_NAME, "the caller refuses it, with its name"
    (tmp_path / LAUNCHER_NAME).write_text(render_for(output, b"", default_ranks=8))
    assert choose(output) == tmp_path / LAUNCHER_NAME
    assert choose(tmp_path / "b.py") == tmp_path / "run_distribute_b.sh"
