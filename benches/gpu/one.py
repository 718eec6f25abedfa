"""Runs one workload on one allocator in this process and prints a line of JSON. Called by `run.py`."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time

CONFIGURATIONS = {
    "native": "",
    "expandable": "expandable_segments:True",
    "async": "backend:cudaMallocAsync",
    "lowtide": "",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload")
    parser.add_argument("allocator", choices=CONFIGURATIONS)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--timed", type=int, required=True)
    parser.add_argument("--warm", type=int, required=True)
    options = parser.parse_args()
    os.environ["PYTORCH_ALLOC_CONF"] = os.environ["PYTORCH_CUDA_ALLOC_CONF"] = CONFIGURATIONS[options.allocator]

    import torch

    if options.allocator == "lowtide":
        import lowtide.torch

        lowtide.torch.install(history=False)
        if os.environ.get("LOWTIDE_MEASURE"):
            lowtide._lowtide.measure_hooks(True)
    from workloads import WORKLOADS

    torch.cuda.init()
    run = WORKLOADS[options.workload]()
    times, losses, calls = [], [], []
    result = {"workload": options.workload, "allocator": options.allocator}

    def peaks(kind: str) -> None:
        result[f"{kind}_allocated"] = torch.cuda.max_memory_allocated()
        result[f"{kind}_reserved"] = torch.cuda.max_memory_reserved()

    begin = time.perf_counter()
    for step in range(1, max(options.steps, options.timed) + 1):
        losses.append(next(run))
        torch.cuda.synchronize()
        now = time.perf_counter()
        times.append(now - begin)
        if options.allocator == "lowtide":
            calls.append(lowtide.torch.stats().get("driver_calls", 0))
        if step == options.warm:
            peaks("first")
            torch.cuda.reset_peak_memory_stats()
        if step == options.steps:
            peaks("warm")
        begin = time.perf_counter()
    result["losses"] = losses
    result["step_ms"] = 1000 * statistics.median(times[options.warm :])
    result["times_ms"] = [round(1000 * t, 2) for t in times]
    if options.allocator == "lowtide":
        result["driver_calls"] = [b - a for a, b in zip([0, *calls], calls, strict=False)]
        result["stats"] = lowtide.torch.stats()
        result["warnings"] = lowtide._lowtide.device_warnings()
    print("RESULT " + json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
