"""The two hooks, run by the real pre-commit from a clone of this repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from test_cli import OURS, PLAIN, PROGRAM, REFUSED

ROOT = Path(__file__).resolve().parent.parent
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
]


@dataclass
class Hooks:
    """A repository with hooks and the environment that pre-commit keeps its installations in."""

    source: Path
    environment: dict[str, str]

    def repository(self, folder: Path, hook: str) -> None:
        git(folder, "init", "-q")
        folder.joinpath(".pre-commit-config.yaml").write_text(
            f"repos:\n- repo: {self.source.as_uri()}\n  rev: v0\n  hooks:\n  - id: {hook}\n"
        )

    def run(self, folder: Path) -> tuple[int, str]:
        git(folder, "add", "-A")
        done = subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", "--all-files", "--color=never"],
            cwd=folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=600,
        )
        return done.returncode, done.stdout.decode()


def git(folder: Path, *arguments: str) -> None:
    names = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *names, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="session")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Hooks:
    """Commit the tree as it is in a repository of its own: hooks are installed from there, once a session."""
    pytest.importorskip("pre_commit", reason="pre-commit is not installed: pip install pre-commit")
    source = tmp_path_factory.mktemp("hooks")
    for name in ("pyproject.toml", "README.md", ".pre-commit-hooks.yaml", "LICENSE"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, source / name)
    shutil.copytree(ROOT / "ms_distify", source / "ms_distify", ignore=shutil.ignore_patterns("__pycache__"))
    git(source, "init", "-q")
    git(source, "add", "-A")
    git(source, "commit", "-qm", "hooks")
    git(source, "tag", "v0")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "PYTHONPATH", "VIRTUAL_ENV"))}
    environment["PRE_COMMIT_HOME"] = str(tmp_path_factory.mktemp("home"))
    return Hooks(source, environment)


@pytest.mark.parametrize("hook", ["ms-distify", "ms-distify-check"])
def test_a_file_without_training_passes(hooks: Hooks, tmp_path: Path, hook: str) -> None:
    hooks.repository(tmp_path, hook)
    (tmp_path / "plain.py").write_text(PLAIN)
    (tmp_path / "net.py").write_text("from mindspore import nn\nnet = nn.Dense(1, 1)\n")
    code, out = hooks.run(tmp_path)
    assert code == 0, out
    assert out.rstrip().endswith("Passed")


def test_the_first_run_rewrites_and_fails_and_the_second_passes(hooks: Hooks, tmp_path: Path) -> None:
    hooks.repository(tmp_path, "ms-distify")
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "plain.py").write_text(PLAIN)
    code, out = hooks.run(tmp_path)
    assert code == 1, out
    assert "files were modified by this hook" in out
    assert OURS in (tmp_path / "train.py").read_text()
    assert (tmp_path / "plain.py").read_text() == PLAIN
    assert not (tmp_path / "run_distribute.sh").exists()
    code, out = hooks.run(tmp_path)
    assert code == 0, out


def test_the_check_shows_diff_and_reasons_and_changes_nothing(hooks: Hooks, tmp_path: Path) -> None:
    hooks.repository(tmp_path, "ms-distify-check")
    (tmp_path / "train.py").write_text(PROGRAM)
    code, out = hooks.run(tmp_path)
    assert code == 1, out
    assert "- exit code: 1" in out
    assert "+++ b/train.py" in out
    assert f'+train = ds.MnistDataset("/d", {OURS})' in out
    assert "would    MSD201  train.py:5" in out
    assert (tmp_path / "train.py").read_text() == PROGRAM


@pytest.mark.parametrize(("hook", "exit_code"), [("ms-distify", 3), ("ms-distify-check", 1)])
def test_a_refused_program_fails_and_says_why(hooks: Hooks, tmp_path: Path, hook: str, exit_code: int) -> None:
    hooks.repository(tmp_path, hook)
    (tmp_path / "train.py").write_text(REFUSED)
    code, out = hooks.run(tmp_path)
    assert code == 1, out
    assert f"- exit code: {exit_code}" in out
    assert "refused  MSD601  train.py:3" in out
    assert (tmp_path / "train.py").read_text() == REFUSED
