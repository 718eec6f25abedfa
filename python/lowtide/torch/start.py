"""What `lowtide run`, `record` and `watch` ask of a program by variables, done as soon as it has imported PyTorch."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from lowtide._lowtide import option

# The suffixes of traces, before which the number of the process goes.
_ENDINGS = (".csv.gz", ".csv")


def start() -> None:
    """Does what `LOWTIDE_RUN`, `LOWTIDE_RECORD` and `LOWTIDE_MARK` ask for. What cannot be done is said in a line on
    stderr, and the program goes on without; with `LOWTIDE_STRICT` it is an error."""
    for part in filter(None, (option("run") or "").split(",")):
        if part == "host":
            _attempt("following the steps", _follow)
        else:
            _attempt(f"serving {part} memory", lambda part=part: _install(part))
    path = option("record")
    if path:
        _attempt("recording", lambda: _record(path))
    if option("mark") == "step":
        _attempt("marking steps", _follow)


def _follow() -> None:
    """Has the steps told: the library that serves the host and `lowtide watch` only have to know of them."""
    from lowtide.torch import steps

    steps.follow()


def _install(part: str) -> None:
    from lowtide.torch import install

    if part not in ("device", "cpu", "pinned"):
        raise ValueError(f"LOWTIDE_RUN names {part}; it knows host, device, cpu and pinned")
    install(
        device=part == "device",
        cpu=part == "cpu",
        pinned=part == "pinned",
        limit=option("limit") if part == "device" else None,
    )


def _record(path: str) -> None:
    from lowtide.torch import recording

    recording.start(of_process(path), min_size=option("min-size"), list=option("record-list"))


def of_process(path: str) -> Path:
    """The file of this process: `trace.123.csv.gz` for `trace.csv.gz`."""
    whole = Path(path)
    ending = next((ending for ending in _ENDINGS if whole.name.endswith(ending)), "")
    stem = whole.name.removesuffix(ending)
    return whole.with_name(f"{stem}.{os.getpid()}{ending}")


def _attempt(what: str, act: Callable[[], None]) -> None:
    try:
        act()
    except Exception as error:
        if option("strict"):
            raise
        # A hint speaks of Python's functions, which the program does not call.
        reason = str(error).split("\nhint:")[0]
        print(f"lowtide: not {what}: {' '.join(reason.split())}", file=sys.stderr)
