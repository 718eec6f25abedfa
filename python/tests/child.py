"""Runs programs in processes of their own: what Lowtide does to PyTorch stays until a process ends."""

from __future__ import annotations

import csv
import gzip
import os
import subprocess
import sys
import textwrap
from pathlib import Path


def run(program: str, *, cwd: Path | None = None, timeout: float = 300, **variables: str) -> str:
    """What the program prints; it must end well."""
    done = start(program, cwd=cwd, timeout=timeout, **variables)
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def start(
    program: str, *, cwd: Path | None = None, timeout: float = 300, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs the program to its end, whatever that is."""
    return command([sys.executable, "-c", textwrap.dedent(program)], cwd=cwd, timeout=timeout, **variables)


def lowtide(*arguments: str, cwd: Path, timeout: float = 300, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs the command line."""
    return command([sys.executable, "-m", "lowtide", *arguments], cwd=cwd, timeout=timeout, **variables)


def command(
    words: list[str], *, cwd: Path | None, timeout: float, **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LOWTIDE_")}
    environment |= {"NO_COLOR": "1", "OMP_NUM_THREADS": "1", **variables}
    return subprocess.run(words, capture_output=True, text=True, cwd=cwd, env=environment, timeout=timeout)


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a trace."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        return list(csv.DictReader(file))
