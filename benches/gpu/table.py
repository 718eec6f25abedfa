"""What all runs come to: a row for each workload and allocator, medians over its runs, and whether Lowtide costs
nothing there: no more memory and time than the better of PyTorch's allocators."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from allocators import OURS
from results import Result

RIVALS = ["native", "expandable"]

# Freed memory that other streams still use cannot be used again: these are measured against what is not yet done.
NOT_YET_DONE = {"llama_offload"}

MOST_LATE_WASTE = 1.01
MOST_STEP_TIME = 1.01
MOST_FIRST_TIME = 1.10
MOST_HOOK_SHARE = 0.01
# Runs of one allocator that differ by more say nothing about a hundredth of a step.
STEADY = 0.01


@dataclass(frozen=True)
class Row:
    """All runs of one allocator on one workload."""

    workload: str
    allocator: str
    runs: list[Result]
    failures: list[Result]

    def median(self, number: Callable[[Result], float]) -> float:
        return statistics.median(map(number, self.runs))

    @property
    def peak(self) -> float:
        """The most that was reserved, set-up and all steps."""
        return self.median(lambda run: max(run["first_reserved"], run["late_reserved"]))

    @property
    def late_reserved(self) -> float:
        return self.median(lambda run: run["late_reserved"])

    @property
    def late_requested(self) -> float:
        return self.median(lambda run: run["late_requested"])

    @property
    def late_active(self) -> float:
        return self.median(lambda run: run["late_active"])

    @property
    def steps_ms(self) -> list[float]:
        """The median late step of every run."""
        return [statistics.median(late(run, "times_ms")) for run in self.runs]

    @property
    def step_ms(self) -> float:
        return statistics.median(self.steps_ms)

    @property
    def is_steady(self) -> bool:
        return max(self.steps_ms) - min(self.steps_ms) <= STEADY * self.step_ms

    @property
    def first_ms(self) -> float:
        """What the first steps took together."""
        return self.median(lambda run: sum(run["times_ms"][: run["first"]]))

    @property
    def hook_share(self) -> float | None:
        """The part of the late steps' time that was spent in the allocator's hooks, where it is measured."""
        if not all("hook_ns" in run for run in self.runs):
            return None
        return self.median(lambda run: sum(late(run, "hook_ns")) / 1e6 / sum(late(run, "times_ms")))

    @property
    def beyond_reserved(self) -> float:
        return self.median(lambda run: run["beyond_reserved"])


def late(run: Result, name: str) -> list[float]:
    """The numbers of the steps behind the first ones."""
    return run[name][run["first"] :]


class Table:
    """The rows of all workloads."""

    def __init__(self, results: Iterable[Result]) -> None:
        gathered: dict[tuple[str, str], list[Result]] = {}
        for result in results:
            gathered.setdefault((result["workload"], result["allocator"]), []).append(result)
        self.rows = {
            names: Row(*names, [run for run in runs if "error" not in run], [run for run in runs if "error" in run])
            for names, runs in gathered.items()
        }

    def row(self, workload: str, allocator: str) -> Row | None:
        """A row that has runs to look at."""
        row = self.rows.get((workload, allocator))
        return row if row and row.runs else None

    def late_ratio(self, row: Row) -> float:
        """What is reserved from the late steps on, over what is requested (or not yet done) then."""
        needed = row.late_requested
        if row.workload in NOT_YET_DONE:
            # Lowtide does not count what is freed and not done: the native allocator does, on the same work.
            native = self.row(row.workload, "native")
            counts = native if row.allocator in OURS and native else row
            needed = max(needed, counts.late_active)
        return row.late_reserved / needed

    def losses(self, row: Row) -> str:
        """How the losses compare with the native allocator's."""
        native = self.row(row.workload, "native")
        if native is None or native is row:
            return ""
        usual = native.runs[0]["losses"]
        if any(run["losses"] != usual for run in native.runs):
            return "vary"
        return "equal" if all(run["losses"] == usual for run in row.runs) else "differ"

    def reached(self, row: Row) -> str:
        """Whether Lowtide costs nothing in this row, or what it costs; empty for the others."""
        if row.allocator not in OURS:
            return ""
        if row.failures:
            return "no: failed"
        rivals = [self.row(row.workload, name) for name in RIVALS]
        if None in rivals:
            return "unknown: needs " + " and ".join(n for n, r in zip(RIVALS, rivals, strict=True) if r is None)
        missed = [name for name, met in self._conditions(row, *rivals).items() if not met]
        return "no: " + ", ".join(missed) if missed else "yes"

    def _conditions(self, row: Row, native: Row, expandable: Row) -> dict[str, bool]:
        if row.is_steady and native.is_steady and expandable.is_steady:
            is_fast = row.step_ms <= MOST_STEP_TIME * min(native.step_ms, expandable.step_ms)
        else:
            is_fast = row.hook_share is not None and row.hook_share <= MOST_HOOK_SHARE
        return {
            "peak": row.peak <= min(native.peak, expandable.peak),
            "late": self.late_ratio(row) <= MOST_LATE_WASTE,
            "step": is_fast,
            "first": row.first_ms <= MOST_FIRST_TIME * native.first_ms,
        }

    def lines(self) -> list[str]:
        """The table as text, and below it what its words mean."""
        machines = sorted({run["machine"] for row in self.rows.values() for run in row.runs if "machine" in run})
        head = (
            f"{'workload':<14} {'allocator':<14} {'n':>2} {'peak GB':>8} {'late':>7} {'step ms':>8} {'min-max':>15} "
            f"{'first s':>8} {'hooks':>7} {'beyond GB':>9} {'losses':>6}  reached"
        )
        return [*machines, head, *map(self._line, self.rows.values()), "", *LEGEND]

    def _line(self, row: Row) -> str:
        name = f"{row.workload:<14} {row.allocator:<14} {len(row.runs):>2}"
        failed = f"{len(row.failures)} failed: {row.failures[0]['error'][:100]}" if row.failures else ""
        if not row.runs:
            return f"{name} {failed}"
        spread = f"{min(row.steps_ms):.1f}-{max(row.steps_ms):.1f}"
        hooks = "" if row.hook_share is None else f"{row.hook_share:.2%}"
        numbers = (
            f"{row.peak / 1e9:>8.3f} {self.late_ratio(row):>7.4f} {row.step_ms:>8.2f} {spread:>15} "
            f"{row.first_ms / 1e3:>8.2f} {hooks:>7} {row.beyond_reserved / 1e9:>9.3f}"
        )
        return f"{name} {numbers} {self.losses(row):>6}  {self.reached(row)} {failed}".rstrip()


LEGEND = [
    "n: runs; every number is the median over them. peak: the most that was reserved in the whole run.",
    "late: reserved over requested after the first steps (llama_offload: over what is not yet done).",
    "step: the median time of a step after the first steps; min-max: of the runs. first: the first steps together.",
    "hooks: time inside Lowtide's hooks, as a part of the step. beyond: device memory that is not reserved memory.",
    "losses: against native's; vary: native's own differ from run to run.",
    "reached: peak no larger than the smaller of native and expandable, late at most 1.01, step at most 1.01 x the",
    "faster of them (where the runs of one differ by more than 1%: hooks at most 1%), first at most 1.10 x native's.",
]
