"""Builds the wheel: maturin makes the module, and this puts the libraries beside it that `lowtide run` loads before a
program. Run as a script, it makes the libraries alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "python" / "lowtide"
# The one that goes under a program, and the one that it opens.
LIBRARIES = {"lowtide-malloc": "liblowtide_malloc.so", "lowtide-serving": "liblowtide_serving.so"}


def settle() -> None:
    """Lets the lock file know that a source distribution is without the developers' commands. Versions stay."""
    if (ROOT / "PKG-INFO").exists():
        subprocess.run(["cargo", "update", "--workspace", "--quiet"], cwd=ROOT, check=True)


def make_libraries() -> None:
    """Builds the libraries and puts them into the package. There are none but for Linux."""
    settle()
    if not sys.platform.startswith("linux"):
        return
    packages = [word for package in LIBRARIES for word in ("--package", package)]
    command = ["cargo", "build", "--release", "--locked", *packages]
    done = subprocess.run(
        [*command, "--message-format=json-render-diagnostics"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    messages = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    made = {Path(name).name: name for message in messages for name in message.get("filenames", [])}
    for library in LIBRARIES.values():
        if library not in made:
            raise RuntimeError(f"cargo made no {library}")
        place = PLACE / library
        place.unlink(missing_ok=True)
        shutil.copyfile(made[library], place)
        place.chmod(0o755)
        if strip := shutil.which("strip"):
            subprocess.run([strip, "--strip-debug", str(place)], check=False)


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """The wheel, with the libraries."""
    import maturin

    make_libraries()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """A wheel that leads to this folder, in which the libraries then are."""
    import maturin

    make_libraries()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def __getattr__(name: str) -> Any:
    """Everything else is maturin's."""
    import maturin

    return getattr(maturin, name)


if __name__ == "__main__":
    make_libraries()
