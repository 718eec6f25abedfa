"""`python -m lowtide estimate`, end to end: the verb finds this Python, the file is traced, the exit code is the
answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="estimate traces with PyTorch")

from lowtide.torch.estimation.__main__ import main  # noqa: E402

FILE = """
import torch
from torch import nn

def model():
    return nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 10)).cuda()

def example(batch=64):
    return torch.randn(batch, 256, device="cuda")

def optimizer(parameters):
    return torch.optim.AdamW(parameters)

def loss(output):
    return output.float().pow(2).mean()

def autocast():
    return torch.bfloat16
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LOWTIDE_PYTHON": sys.executable}
    command = [sys.executable, "-m", "lowtide", "estimate", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(FILE)
    return tmp_path


def test_it_fits_and_the_numbers_are_written(folder: Path) -> None:
    ended = run(folder, "train.py", "--memory", "1GiB", "--json", "-o", "x.json", "--trace", "x.csv")
    assert ended.returncode == 0, ended.stderr
    numbers = json.loads(ended.stdout)
    assert numbers == json.loads((folder / "x.json").read_text())
    assert numbers["kind"] == "estimate" and numbers["size"] == 64 and all(numbers["fits"].values())
    assert (folder / "x.csv").read_text().startswith("event,")


def test_it_does_not_fit(folder: Path) -> None:
    ended = run(folder, "train.py", "--memory", "1MiB")
    assert ended.returncode == 1, ended.stderr
    assert "does not fit 1.0 MiB" in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.py"], "missing.py"),
        (["empty.py"], "no function model()"),
        (["train.py", "--memory", "12 parsecs"], "is not a unit of memory"),
    ],
)
def test_trouble_with_the_file_is_exit_code_two_with_a_hint(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    (folder / "empty.py").write_text("")
    monkeypatch.chdir(folder)
    assert main(arguments) == 2
    written = capsys.readouterr().err
    assert said in written and "hint:" in written


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["missing.py"], "missing.py"), (["train.py", "--python", "no-such-python"], "no-such-python")],
)
def test_trouble_is_exit_code_two_of_the_verb_too(folder: Path, arguments: list[str], said: str) -> None:
    ended = run(folder, *arguments)
    assert ended.returncode == 2
    assert said in ended.stderr and "hint:" in ended.stderr
