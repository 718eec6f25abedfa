"""`lowtide run` on the host: the library that is loaded before a program serves it, and hears of its steps."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import child
import lowtide
import pytest

PYTHON = sys.executable
LIBRARY = Path(lowtide.__file__).with_name("liblowtide_malloc.so")

pytestmark = pytest.mark.skipif(not LIBRARY.is_file(), reason="the package has no liblowtide_malloc.so beside it")
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")

TRAINING = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    optimizer.zero_grad()
    model(torch.randn(256, 512)).square().mean().backward()
    optimizer.step()
"""


def run(*arguments: str, cwd: Path, **variables: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """The end of a command that is run on the host, and what is written of it."""
    done = child.lowtide("run", "-o", "run.json", *arguments, cwd=cwd, **variables)
    return done, json.loads((cwd / "run.json").read_text())


@pytest.mark.skipif(shutil.which("strip") is None, reason="without `strip`, the library has what debuggers need")
def test_what_goes_under_every_program_is_small() -> None:
    # More than that, and the linker has kept what a panic would need.
    assert LIBRARY.stat().st_size < 64 * 1024
    assert LIBRARY.with_name("liblowtide_serving.so").is_file()


@needs_torch
def test_the_steps_of_an_optimizer_are_heard(tmp_path: Path) -> None:
    done, report = run("--", PYTHON, "-c", TRAINING, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    process = report["processes"][0]
    assert (process["steps"], process["steps_by"]) == (12, "marks"), process
    assert process["large"]["allocations"] > 12 and process["stepped_aside"] is None
    assert "12 steps marked by the program" in done.stderr and "next: `lowtide " in done.stderr


@needs_torch
def test_a_program_that_follows_its_steps_itself_is_not_counted_twice(tmp_path: Path) -> None:
    program = "import torch, lowtide.torch.steps as steps\nsteps.follow()\n" + TRAINING
    done, report = run("--", PYTHON, "-c", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert report["processes"][0]["steps"] == 12


@needs_torch
def test_other_parts_can_be_served_beside_the_host(tmp_path: Path) -> None:
    done, report = run("--host", "--pinned", "--", PYTHON, "-c", TRAINING, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert report["processes"][0]["steps"] == 12


def test_steps_are_marked_without_pytorch(tmp_path: Path) -> None:
    program = "import lowtide\nfor _ in range(5): kept = bytearray(1 << 20); lowtide.step()"
    done, report = run("--", PYTHON, "-c", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    process = report["processes"][0]
    assert (process["steps"], process["steps_by"]) == (5, "marks"), process


def test_a_program_is_not_made_to_load_the_package(tmp_path: Path) -> None:
    program = "import sys; print([name for name in sys.modules if 'lowtide' in name or name in ('typing', 'torch')])"
    done, _ = run("--", PYTHON, "-c", program, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_any_program_is_served(tmp_path: Path) -> None:
    done, report = run("--", "sort", "--version", cwd=tmp_path)
    assert done.returncode == 0 and "sort" in done.stdout, done.stderr
    assert report["processes"][0]["command"] == "sort"
