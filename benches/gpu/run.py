"""Measures PyTorch's allocators and Lowtide's on training and inference, side by side on one GPU.

    python benches/gpu/run.py -o results.jsonl          three rounds of all workloads on all allocators
    python benches/gpu/run.py -o results.jsonl          again: goes on where that was cut off
    python benches/gpu/run.py --report results.jsonl    the table of what was measured so far
    python benches/gpu/run.py --workloads resnet50 maskrcnn --allocators native expandable lowtide

Every run is a process of its own (forked from one that has imported PyTorch), and a line of the file when it is over.
A round has each workload on each allocator once, and each round begins with another allocator. What comes first reads
files that nobody has read and loads kernels that nobody has used, so a workload is run for two steps that do not count
before it is measured. Peaks and times are told apart: those of the first `--first` steps, and those of the steps after
them.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from allocators import CONFIGURATIONS, LOADED, USUAL, missing_package
from forked import Forked
from results import Key, Mixed, Result, Results
from table import Table

HERE = Path(__file__).parent
WORKLOADS = [
    "llama_varlen",
    "mixtral_moe",
    "resnet50",
    "maskrcnn",
    "llama_fixed",
    "llama_offload",
    "llama_generate",
    "segment_sizes",
    "train_eval",
    "serve_mixed",
    "two_models",
    "accumulate",
]

# What a run may take; one that hangs must not hold up the others.
LONGEST_RUN = 600


def main() -> None:
    options = arguments().parse_args()
    if options.report:
        if not options.report.exists():
            raise SystemExit(f"error: {options.report} does not exist")
        print("\n".join(Table(Results(options.report)).lines()))
        return
    if not 0 < options.first < options.steps:
        raise SystemExit("error: `--first` must be at least 1 and less than `--steps`")
    results = Results(options.output)
    try:
        results.check_settings(steps=options.steps, first=options.first, tiny=options.tiny)
    except Mixed as error:
        raise SystemExit(f"error: {error}\nhint: name another file with `-o`") from None
    if options.retry:
        results.forget_failures()
    warm: set[str] = set()
    with Forked() as forked:

        def measured_warm(key: Key) -> Result:
            workload, allocator, _ = key
            if workload not in warm:
                warm.add(workload)
                measure(forked, (workload, allocator, 0), steps=2, first=1, tiny=options.tiny)
            return measure(forked, key, options.steps, options.first, options.tiny)

        measured = gather(
            wanted(options.workloads, installed(options.allocators), options.runs),
            results,
            measured_warm,
            until=time.monotonic() + options.stop_after,
        )
    print("\n".join(Table(results).lines()))
    if not measured:
        say(f"stopped after {options.stop_after:.0f} s; the same command goes on")


def wanted(workloads: list[str], allocators: list[str], rounds: int) -> list[Key]:
    """All runs, in their order: allocators that are compared run soon after one another, in turn the first."""
    runs = []
    for number in range(1, rounds + 1):
        begin = (number - 1) % max(len(allocators), 1)
        turn = allocators[begin:] + allocators[:begin]
        runs += [(name, on, number) for name in workloads for on in turn]
    return runs


def installed(allocators: list[str]) -> list[str]:
    """The allocators that can be started here; of the others it is said why not."""
    missing = {name: package for name in allocators if (package := missing_package(name))}
    for name, package in missing.items():
        say(f"{name} is left out: the package `{package}` is not installed")
    return [name for name in allocators if name not in missing]


def gather(
    keys: Iterable[Key], results: Results, measure: Callable[[Key], Result], until: float = float("inf")
) -> bool:
    """Makes the runs that are not there yet; whether all of them are there now."""
    keys = list(keys)
    missing = [key for key in keys if key not in results]
    if len(missing) < len(keys):
        say(f"{results.path} has {len(keys) - len(missing)} of {len(keys)} runs; {len(missing)} to go")
    for number, (workload, allocator, turn) in enumerate(missing, 1):
        if time.monotonic() >= until:
            return False
        result = measure((workload, allocator, turn))
        results.add(result)
        how = f"failed: {result['error'][:120]}" if "error" in result else f"{sum(result['times_ms']) / 1e3:.1f} s"
        say(f"{number} of {len(missing)}: round {turn}, {workload}, {allocator}: {how}")
    return True


def measure(forked: Forked, key: Key, steps: int, first: int, tiny: bool = False) -> Result:
    """A run in a process of its own."""
    workload, allocator, turn = key
    settings = {"steps": steps, "first": first, "tiny": tiny}
    result: Result = {"workload": workload, "allocator": allocator, "round": turn, **settings}
    arguments = [workload, allocator, f"--steps={steps}", f"--first={first}", *(["--tiny"] if tiny else [])]
    try:
        if allocator in LOADED:
            command = [sys.executable, str(HERE / "one.py"), *arguments]
            ended = subprocess.run(command, capture_output=True, text=True, cwd=HERE, timeout=LONGEST_RUN)
        else:
            ended = forked.run(arguments, timeout=LONGEST_RUN)
    except subprocess.TimeoutExpired:
        return result | {"error": f"not done after {LONGEST_RUN} s"}
    for line in ended.stdout.splitlines():
        if line.startswith("RESULT "):
            return result | json.loads(line.removeprefix("RESULT "))
    return result | {"error": reason(ended.stderr) or f"ended with {ended.returncode}", "stderr": ended.stderr[-4000:]}


def reason(stderr: str) -> str:
    """The line that says why a program failed: that of an exception, whose message may go on below it, or the last."""
    lines = stderr.strip().splitlines()
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Interrupt): ", line)]
    return (raised or lines or [""])[-1]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", nargs="+", default=WORKLOADS, choices=WORKLOADS, metavar="NAME")
    parser.add_argument("--allocators", nargs="+", default=USUAL, choices=CONFIGURATIONS, metavar="NAME")
    parser.add_argument("--runs", type=int, default=3, help="rounds [3]")
    parser.add_argument("--steps", type=int, default=28, help="steps of a run [28]")
    parser.add_argument("--first", type=int, default=10, help="steps that count as the first ones [10]")
    parser.add_argument("--tiny", action="store_true", help="tiny models, to see whether everything runs")
    parser.add_argument("-o", "--output", type=Path, help="keeps each run here; what is there is not measured again")
    parser.add_argument("--retry", action="store_true", help="measures again what failed")
    parser.add_argument(
        "--stop-after", type=float, default=float("inf"), metavar="SECONDS", help="begins no run after that time"
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="prints the table of a file and measures nothing")
    return parser


if __name__ == "__main__":
    main()
