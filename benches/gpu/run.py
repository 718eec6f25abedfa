"""Measures PyTorch's allocators and Lowtide's on training and inference, side by side on one GPU.

    python benches/gpu/run.py                                   all workloads, all allocators
    python benches/gpu/run.py --workloads resnet50 maskrcnn --allocators native lowtide -o result.json

Each pair runs in a process of its own. Peaks are those of the first `--steps` steps; the time is the median of the
steps behind the first `--warm` ones, up to `--timed`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

ALLOCATORS = ["native", "expandable", "async", "lowtide"]
HERE = Path(__file__).parent


def measure(workload: str, allocator: str, options: argparse.Namespace) -> dict:
    command = [sys.executable, str(HERE / "one.py"), workload, allocator]
    for name in ("steps", "timed", "warm"):
        command += [f"--{name}", str(getattr(options, name))]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=HERE)
    for line in ended.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line.removeprefix("RESULT "))
    tail = ended.stderr.strip().splitlines()[-1:] or ["no word"]
    return {"workload": workload, "allocator": allocator, "error": tail[0], "stderr": ended.stderr[-4000:]}


def row(result: dict, native: dict | None) -> str:
    name = f"{result['workload']:<15} {result['allocator']:<11}"
    if "error" in result:
        return f"{name} failed: {result['error'][:120]}"
    requested = max(result["first_allocated"], result["warm_allocated"])
    reserved = max(result["first_reserved"], result["warm_reserved"])
    equal = "" if native is None else "equal" if native["losses"] == result["losses"] else "differ"
    waste = 100 * (reserved / requested - 1)
    gigabytes = f"{requested / 1e9:>9.3f} {reserved / 1e9:>9.3f} {result['warm_reserved'] / 1e9:>9.3f}"
    return f"{name} {gigabytes} {waste:>7.2f}% {result['step_ms']:>9.2f} {equal:>7}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ["llama_varlen", "mixtral_moe", "resnet50", "maskrcnn", "llama_fixed", "llama_offload", "llama_generate"]
    parser.add_argument("--workloads", nargs="+", default=names, choices=names, metavar="NAME")
    parser.add_argument("--allocators", nargs="+", default=ALLOCATORS, choices=ALLOCATORS, metavar="NAME")
    parser.add_argument("--steps", type=int, default=16, help="steps whose peak counts [16]")
    parser.add_argument("--timed", type=int, default=28, help="steps in all [28]")
    parser.add_argument("--warm", type=int, default=4, help="steps before the time is taken [4]")
    parser.add_argument("-o", "--output", type=Path, help="all numbers as JSON")
    options = parser.parse_args()

    print(f"{'':<27} {'allocated':>9} {'reserved':>9} {'warm':>9} {'waste':>8} {'step ms':>9} {'losses':>7}")
    results = []
    for workload in options.workloads:
        native = None
        for allocator in options.allocators:
            result = measure(workload, allocator, options)
            results.append(result)
            print(row(result, native), flush=True)
            if allocator == "native" and "error" not in result:
                native = result
    if options.output:
        options.output.write_text(json.dumps(results))
        print(f"wrote {options.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
