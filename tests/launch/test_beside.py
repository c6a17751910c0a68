from __future__ import annotations

from pathlib import Path

import pytest

from ms_distify.launch import LAUNCHER_NAME, is_ours
from ms_distify.launch.beside import choose, digest, pick, recorded, render_for


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


@pytest.mark.parametrize(
    ("present", "several", "name"),
    [
        pytest.param({}, False, "run_distribute.sh", id="nothing there"),
        pytest.param({}, True, "run_distribute_a.sh", id="several programs"),
        pytest.param({"run_distribute.sh": "a.py"}, False, "run_distribute.sh", id="its own"),
        pytest.param({"run_distribute_a.sh": "a.py"}, False, "run_distribute_a.sh", id="its own, by its name"),
        pytest.param({"run_distribute.sh": "b.py"}, False, "run_distribute_a.sh", id="another's"),
        pytest.param({"run_distribute_b.sh": "b.py"}, False, "run_distribute_a.sh", id="another's, by its name"),
        pytest.param(
            {"run_distribute.sh": "a.py", "run_distribute_b.sh": "b.py"}, False, "run_distribute.sh", id="both"
        ),
        pytest.param({"run_distribute.sh": None}, False, "run_distribute.sh", id="foreign: the caller refuses it"),
    ],
)
def test_pick(present: dict[str, str | None], several: bool, name: str) -> None:
    assert pick("a.py", present, several=several) == name
