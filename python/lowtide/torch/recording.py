"""Writes down what a program allocates: a trace with time, stream, thread and place in the program.

    with lowtide.torch.record("trace.csv.gz"):
        train()

CUDA memory is recorded whatever allocator serves it. CPU tensors are recorded too; where there are both, theirs is a
file of its own beside the other: `trace.cpu.csv.gz`.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.autograd.graph

from lowtide import _lowtide
from lowtide._lowtide import option
from lowtide.torch import failures, steps
from lowtide.torch.sizes import size

# Numbers and other small tensors of the CPU come and go by the thousand and take hardly any memory.
MIN_SIZE: int = option("min-size")


@dataclass(frozen=True)
class Recorded:
    """What became of a recording: its files and the peak of each, in bytes, by kind of memory (`cuda`, `cpu`); how many
    events and steps it has, and how many CPU blocks were too small for it."""

    files: dict[str, os.PathLike[str]]
    peak: dict[str, int]
    events: int
    steps: int
    left_out: int


_backward: Callable[..., Any] | None = None


def start(
    path: str | os.PathLike[str], *, min_size: int | str = MIN_SIZE, list: str | os.PathLike[str] | None = None
) -> None:
    """Begins to record. The recording ends with `stop()` or with the program; whatever was written up to the last step
    can be read at any time. `min_size`: the smallest CPU tensor that is recorded. `list`: a file to which the names of
    the files are added."""
    _lowtide.start_recording(os.fspath(path), size(min_size), None if list is None else os.fspath(list))
    failures.say_at_exit()  # Functions are called in reverse: after the recording has ended.
    atexit.register(stop)
    steps.follow()
    _follow_backward()
    if torch.backends.cuda.is_built():
        torch.cuda._lazy_call(_record_cuda)


def stop() -> Recorded | None:
    """Ends the recording, and tells what became of it; `None` where there is none."""
    atexit.unregister(stop)
    _leave_backward()
    told = _lowtide.stop_recording()
    return None if told is None else Recorded(**told)


@contextmanager
def record(path: str | os.PathLike[str], *, min_size: int | str = MIN_SIZE) -> Iterator[None]:
    """Records what is done within."""
    start(path, min_size=min_size)
    try:
        yield
    finally:
        stop()


def _record_cuda() -> None:
    """Called when CUDA has started: an error here must not end the program."""
    try:
        _lowtide.record_cuda()
    except RuntimeError as error:
        print(f"lowtide: CUDA memory is not recorded: {' '.join(str(error).split())}", file=sys.stderr)


def _follow_backward() -> None:
    """Tells the recorder who waits for a backward pass: its threads have no place in the program of their own."""
    global _backward
    if _backward is not None:
        return
    _backward = inner = torch.autograd.graph._engine_run_backward

    def _engine_run_backward(*arguments: Any, **named: Any) -> Any:
        _lowtide.enter_backward()
        try:
            return inner(*arguments, **named)
        finally:
            _lowtide.leave_backward()

    torch.autograd.graph._engine_run_backward = _engine_run_backward
    torch.autograd._engine_run_backward = _engine_run_backward  # type: ignore[attr-defined]


def _leave_backward() -> None:
    global _backward
    if _backward is not None:
        torch.autograd.graph._engine_run_backward = _backward
        torch.autograd._engine_run_backward = _backward  # type: ignore[attr-defined]
        _backward = None
