"""The report of the running process: where its memory went in the last steps, as a page."""

from __future__ import annotations

import gzip
import html
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from lowtide import _lowtide


class Report:
    """A page that needs nothing but a browser. In a notebook it shows itself."""

    def __init__(self, page: str):
        self.html = page

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the page to a file, and says which."""
        Path(path).write_text(self.html, encoding="utf-8")
        return Path(path)

    def _repr_html_(self) -> str:
        # Style and scripts of the page stay apart from the notebook's.
        source = html.escape(self.html, quote=True)
        style = "width: 100%; height: 720px; border: 0"
        return f'<iframe srcdoc="{source}" style="{style}" title="Lowtide report"></iframe>'

    def __repr__(self) -> str:
        return f"Report of {len(self.html)} characters; `save(path)` writes it"


def report(path: str | os.PathLike[str] | None = None) -> Report:
    """The report of the devices that Lowtide serves, over the last steps; with `path` it is written there as well."""
    history = _lowtide.device_history()
    if gzip.decompress(history).count(b"\n") < 2:
        raise RuntimeError(
            "no CUDA device was used under Lowtide yet, so there is nothing to report\n"
            "hint: call `lowtide.torch.install()` first, without `history=False`; `lowtide record` shows CPU tensors"
        )
    with tempfile.TemporaryDirectory(prefix="lowtide-") as folder:
        trace, page = Path(folder, "process.csv.gz"), Path(folder, "report.html")
        trace.write_bytes(history)
        # In a process of its own: what it prints is not the program's.
        command = [sys.executable, "-m", "lowtide", "report", str(trace), "-o", str(page)]
        ended = subprocess.run(command, capture_output=True, text=True)
        if not page.exists():
            raise RuntimeError(f"the report could not be made: {ended.stderr.strip()}")
        made = Report(page.read_text(encoding="utf-8"))
    if path is not None:
        made.save(path)
    return made
