"""Measures what one allocation and its free cost on PyTorch's allocators and Lowtide's, on one GPU.

    python benches/gpu/latency.py

`one size`: a tensor is made and dropped, again and again. `400 alive`: of 400 tensors of 512 B to 32 MiB (log-uniform)
a random one is dropped, and one of another size takes its place. Every allocator has a process of its own in each
round. Times include Python and PyTorch; the column `in hooks` is Lowtide's part. The first `--warm` turns do not count.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from allocators import OURS, Allocator, missing_package, start

ALLOCATORS = ["native", "expandable", *OURS]
CASES = ["one size", "400 alive"]
ALIVE = 400
ONE_SIZE = 1 << 20
SMALLEST, LARGEST = 512, 32 << 20

Result = dict[str, dict[str, float]]


def one_size(count: int) -> list[tuple[int, int]]:
    return [(0, ONE_SIZE)] * count


def many_sizes(count: int) -> list[tuple[int, int]]:
    draw = random.Random(17)
    low, high = math.log(SMALLEST), math.log(LARGEST)
    return [(draw.randrange(ALIVE), round(math.exp(draw.uniform(low, high)))) for _ in range(count)]


def play(turns: list[tuple[int, int]], places: list[Any], device: str) -> float:
    """Makes every turn, a place and a size: what is there goes, a tensor of that size comes. Microseconds a turn."""
    import torch

    empty, kind = torch.empty, torch.uint8
    begin = time.perf_counter()
    for place, size in turns:
        places[place] = None
        places[place] = empty(size, dtype=kind, device=device)
    return 1e6 * (time.perf_counter() - begin) / len(turns)


def measure(allocator: Allocator, warm: int, turns: int, device: str = "cuda") -> Result:
    """Both cases, one after the other."""
    found: Result = {}
    for case, make in zip(CASES, (one_size, many_sizes), strict=True):
        script, places = make(warm + turns), [None] * ALIVE
        play(script[:warm], places, device)
        allocator.synchronize()
        before = allocator.counters()
        numbers = {"us": play(script[warm:], places, device)}
        after = allocator.counters()
        if after:
            numbers["hooks_us"] = (after["hook_ns"] - before["hook_ns"]) / 1e3 / turns
            numbers["driver_calls"] = after["driver_calls"] - before["driver_calls"]
        found[case] = numbers
    return found


def run(allocator: str, options: argparse.Namespace) -> Result:
    """A process of its own."""
    command = [sys.executable, __file__, "--only", allocator, f"--turns={options.turns}", f"--warm={options.warm}"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent)
    if ended.returncode:
        raise SystemExit(f"error: {allocator} failed\n{ended.stderr}")
    return json.loads(ended.stdout.splitlines()[-1])


def lines(results: dict[str, list[Result]]) -> list[str]:
    """The table: medians over the rounds, the most driver calls of any."""
    head = f"{'case':<10} {'allocator':<15} {'us a pair':>9} {'min-max':>13} {'in hooks':>9} {'driver calls':>13}"
    return [head] + [line(case, name, runs) for case in CASES for name, runs in results.items()]


def line(case: str, allocator: str, runs: list[Result]) -> str:
    times = [found[case]["us"] for found in runs]
    spread = f"{min(times):.2f}-{max(times):.2f}"
    text = f"{case:<10} {allocator:<15} {statistics.median(times):>9.2f} {spread:>13}"
    if "hooks_us" not in runs[0][case]:
        return text
    hooks = statistics.median(found[case]["hooks_us"] for found in runs)
    return f"{text} {hooks:>9.3f} {max(found[case]['driver_calls'] for found in runs):>13}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--allocators", nargs="+", default=ALLOCATORS, choices=ALLOCATORS, metavar="NAME")
    parser.add_argument("--turns", type=int, default=50_000, help="turns that count [50000]")
    parser.add_argument("--warm", type=int, default=2_000, help="turns before them [2000]")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each allocator [3]")
    parser.add_argument("--only", choices=ALLOCATORS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(start(options.only), options.warm, options.turns)))
        return
    for name in options.allocators:
        if package := missing_package(name):
            raise SystemExit(f"error: {name} needs the package `{package}`, which is not installed")
    results: dict[str, list[Result]] = {name: [] for name in options.allocators}
    for _ in range(options.rounds):
        for name, runs in results.items():
            runs.append(run(name, options))
    print("\n".join(lines(results)))


if __name__ == "__main__":
    main()
