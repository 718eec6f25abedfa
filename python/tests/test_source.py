"""The source distribution: it has everything that a wheel is made of."""

from __future__ import annotations

import posixpath
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INCLUDED = re.compile(r'include_(?:str|bytes)!\(\s*"([^"]+)"')


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of the source distribution, by their paths in it."""
    pytest.importorskip("maturin")
    if shutil.which("cargo") is None:
        pytest.skip("needs cargo")
    folder = tmp_path_factory.mktemp("source")
    words = [sys.executable, "-m", "maturin", "sdist", "--out", str(folder)]
    done = subprocess.run(words, check=False, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        return {
            member.name.split("/", 1)[1]: files.extractfile(member).read()  # type: ignore[union-attr]
            for member in files.getmembers()
            if member.isfile()
        }


def test_what_makes_the_wheel_is_there(source: dict[str, bytes]) -> None:
    for path in ("python/backend.py", "pyproject.toml", "Cargo.lock", "crates/python/Cargo.toml"):
        assert path in source, path
    folders = (ROOT / "crates" / name for name in ("malloc", "serving"))
    for path in (path for folder in folders for path in folder.rglob("*") if path.suffix in (".rs", ".toml")):
        assert path.relative_to(ROOT).as_posix() in source, path


def test_what_programs_include_is_there(source: dict[str, bytes]) -> None:
    found = 0
    for path, text in source.items():
        if path.endswith(".rs"):
            for name in INCLUDED.findall(text.decode()):
                assert posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) in source, (path, name)
                found += 1
    assert found > 10


def test_nothing_that_was_built_is_there(source: dict[str, bytes]) -> None:
    assert not [path for path in source if path.endswith((".so", ".pyc"))]
