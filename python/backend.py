"""Builds the wheel: maturin makes the module, and this puts the library beside it that `lowtide run` loads before a
program. Run as a script, it makes the library alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "python" / "lowtide" / "liblowtide_malloc.so"


def settle() -> None:
    """Lets the lock file know that a source distribution is without the developers' commands. Versions stay."""
    if (ROOT / "PKG-INFO").exists():
        subprocess.run(["cargo", "update", "--workspace", "--quiet"], cwd=ROOT, check=True)


def make_library() -> None:
    """Builds the library and puts it into the package. There is none but for Linux."""
    settle()
    if not sys.platform.startswith("linux"):
        return
    command = ["cargo", "build", "--release", "--locked", "--package", "lowtide-malloc"]
    done = subprocess.run(
        [*command, "--message-format=json-render-diagnostics"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    messages = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    made = [name for message in messages for name in message.get("filenames", []) if name.endswith(PLACE.name)]
    if not made:
        raise RuntimeError(f"cargo made no {PLACE.name}")
    PLACE.unlink(missing_ok=True)
    shutil.copyfile(made[-1], PLACE)
    PLACE.chmod(0o755)
    if strip := shutil.which("strip"):
        subprocess.run([strip, "--strip-debug", str(PLACE)], check=False)


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """The wheel, with the library."""
    import maturin

    make_library()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """A wheel that leads to this folder, in which the library then is."""
    import maturin

    make_library()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def __getattr__(name: str) -> Any:
    """Everything else is maturin's."""
    import maturin

    return getattr(maturin, name)


if __name__ == "__main__":
    make_library()
