"""Runs one workload in this process, on whatever allocator it was started with, and prints a line of JSON. Called by
`lowtide bench host`."""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import time

from workloads import WORKLOADS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if options.workload != "small":
        import torch

        torch.manual_seed(0)
        torch.set_num_threads(options.threads)
    step = WORKLOADS[options.workload]()
    for _ in range(options.warm_up):
        step()
    times = []
    before = resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(options.steps):
        begin = time.perf_counter()
        value = step()
        times.append(time.perf_counter() - begin)
    after = resource.getrusage(resource.RUSAGE_SELF)
    status = memory()
    torch = sys.modules.get("torch")
    result = {
        "cpu_ms": 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / options.steps,
        "system_ms": 1e3 * (after.ru_stime - before.ru_stime) / options.steps,
        "faults": (after.ru_minflt - before.ru_minflt) / options.steps,
        "wall_ms": 1e3 * statistics.median(times),
        "peak_rss_bytes": status["VmHWM"],
        "rss_bytes": status["VmRSS"],
        "value": value,
        "torch": torch.__version__ if torch else None,
    }
    print(json.dumps(result))


def memory() -> dict[str, int]:
    """What the system says of this process's memory, in bytes."""
    with open("/proc/self/status") as file:
        fields = (line.split() for line in file if line.startswith("Vm"))
        return {field[0].rstrip(":"): 1024 * int(field[1]) for field in fields}


if __name__ == "__main__":
    main()
