"""Runs one workload on one allocator in this process and prints a line of JSON. Called by `run.py`."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from typing import Any

from allocators import CONFIGURATIONS, Allocator, start


def measure(run: Iterator[float], allocator: Allocator, steps: int, first: int) -> dict[str, Any]:
    """The numbers of `steps` steps: what they took, and the peaks up to step `first` and of those after it."""
    next(run)
    allocator.synchronize()
    times, losses, counted = [], [], [allocator.counters()]
    peaks: dict[str, dict[str, int]] = {}
    for step in range(1, steps + 1):
        begin = time.perf_counter()
        allocator.begin_step(step)
        losses.append(next(run))
        allocator.end_step(step)
        allocator.synchronize()
        times.append(round(1000 * (time.perf_counter() - begin), 3))
        counted.append(allocator.counters())
        if step == first:
            peaks["first"] = allocator.peaks()
            allocator.reset_peaks()
    peaks["late"] = allocator.peaks()
    return {
        "times_ms": times,
        "losses": losses,
        **{f"{when}_{name}": value for when, found in peaks.items() for name, value in found.items()},
        "beyond_reserved": allocator.beyond_reserved(),
        **{name: differences([now[name] for now in counted]) for name in counted[0]},
        **allocator.remarks(),
    }


def differences(values: list[int]) -> list[int]:
    return [after - before for before, after in zip(values, values[1:], strict=False)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload")
    parser.add_argument("allocator", choices=CONFIGURATIONS)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()

    allocator = start(options.allocator)
    import torch
    from workloads import WORKLOADS, Setting

    run = WORKLOADS[options.workload](Setting(tiny=options.tiny))
    found = measure(run, allocator, options.steps, options.first)
    found["machine"] = f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}"
    print("RESULT " + json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
