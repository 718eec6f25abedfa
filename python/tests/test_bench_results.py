"""`benches/gpu` without a device: runs that are made up go through its file, its table and its verdict."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BENCHES = Path(__file__).parents[2] / "benches/gpu"
sys.path.insert(0, str(BENCHES))
import allocators
import latency
import one
import run
from forked import Forked
from results import Mixed, Results
from table import Table

GB = 10**9


def made_up(allocator: str, number: int = 1, workload: str = "resnet50", **changed: Any) -> dict[str, Any]:
    """A run of twelve steps, of which ten are the first ones; Lowtide's reach everything."""
    ours = allocator.startswith("lowtide")
    usual = {
        "times_ms": [120.0] * 10 + [100.0] * 2,
        "losses": [3.0, 2.0],
        "first_requested": 10 * GB,
        "first_active": 10 * GB,
        "first_reserved": 11 * GB,
        "late_requested": 10 * GB,
        "late_active": 10 * GB,
        "late_reserved": 10.05 * GB if ours else 12 * GB,
        "beyond_reserved": GB // 4,
        "machine": "a made-up GPU",
    }
    hooks = {"hook_ns": [10**6] * 12, "driver_calls": [0] * 12} if ours else {}
    name = {"workload": workload, "allocator": allocator, "round": number, "steps": 12, "first": 10}
    return name | usual | hooks | changed


def rivals(**changed: Any) -> list[dict[str, Any]]:
    return [made_up(name, number, **changed) for name in ("native", "expandable") for number in (1, 2, 3)]


def verdict(*runs: dict[str, Any], beside: list[dict[str, Any]] | None = None) -> str:
    table = Table([*(rivals() if beside is None else beside), *runs])
    return table.reached(table.rows[runs[0]["workload"], runs[0]["allocator"]])


def test_a_row_is_the_median_of_its_runs_with_their_spread() -> None:
    steps = [[120.0] * 10 + [late, late + 2] for late in (90.0, 110.0, 100.0)]
    table = Table(made_up("native", n, times_ms=times, late_reserved=n * GB) for n, times in enumerate(steps, 1))
    row = table.rows["resnet50", "native"]
    assert (row.step_ms, row.steps_ms) == (101.0, [91.0, 111.0, 101.0])
    assert row.first_ms == 1200.0
    assert row.peak == 11 * GB, "the first steps' peak is part of the whole run's"
    assert table.late_ratio(row) == 0.2
    assert row.hook_share is None
    assert "   3   11.000  0.2000   101.00      91.0-111.0     1.20             0.250" in table.lines()[2]


def test_lowtide_that_costs_nothing_has_reached_it() -> None:
    assert verdict(*(made_up("lowtide", number) for number in (1, 2, 3))) == "yes"
    assert verdict(made_up("lowtide-online")) == "yes"


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({"first_reserved": 12.01 * GB}, "peak"),
        ({"late_reserved": 10.11 * GB}, "late"),
        ({"times_ms": [120.0] * 10 + [101.5] * 2}, "step"),
        ({"times_ms": [133.0] * 10 + [100.0] * 2}, "first"),
        ({"times_ms": [133.0] * 10 + [101.5] * 2, "late_reserved": 12.5 * GB}, "peak, late, step, first"),
    ],
)
def test_what_was_not_reached_is_named(changed: dict[str, Any], missed: str) -> None:
    assert verdict(made_up("lowtide", **changed)) == f"no: {missed}"


def test_the_smaller_and_the_faster_rival_counts() -> None:
    small = [made_up("native"), made_up("expandable", late_reserved=10.06 * GB, first_reserved=10.04 * GB)]
    assert verdict(made_up("lowtide", first_reserved=10 * GB), beside=small) == "yes"
    assert verdict(made_up("lowtide", late_reserved=10.07 * GB), beside=small) == "no: peak"
    fast = [made_up("native"), made_up("expandable", times_ms=[50.0] * 12)]
    assert verdict(made_up("lowtide"), beside=fast) == "no: step"


def test_where_runs_of_one_allocator_differ_the_time_in_the_hooks_counts() -> None:
    slow = [made_up("lowtide", n, times_ms=[120.0] * 10 + [ms] * 2) for n, ms in enumerate((120.0, 140.0, 130.0), 1)]
    assert verdict(*slow) == "yes"
    busy = [run | {"hook_ns": [0] * 10 + [1_500_000] * 2} for run in slow]
    assert verdict(*busy) == "no: step"
    unmeasured = [{name: value for name, value in run.items() if name != "hook_ns"} for run in slow]
    assert verdict(*unmeasured) == "no: step"
    unsteady = [made_up("native", 1), made_up("native", 2, times_ms=[120.0] * 10 + [105.0] * 2), made_up("expandable")]
    assert verdict(made_up("lowtide", times_ms=[120.0] * 10 + [110.0] * 2), beside=unsteady) == "yes"


def test_offload_is_measured_against_what_the_native_allocator_says_is_not_yet_done() -> None:
    beside = rivals(workload="llama_offload", late_active=20 * GB, late_reserved=26 * GB)
    ours = made_up("lowtide", workload="llama_offload", late_reserved=20.1 * GB)
    assert verdict(ours, beside=beside) == "yes"
    assert verdict(ours | {"late_reserved": 20.3 * GB}, beside=beside) == "no: late"
    table = Table(beside)
    assert table.late_ratio(table.rows["llama_offload", "native"]) == 1.3
    other = [run | {"workload": "resnet50"} for run in beside]
    assert verdict(ours | {"workload": "resnet50"}, beside=other) == "no: late"


def test_without_a_rival_or_with_a_failed_run_nothing_was_reached() -> None:
    assert verdict(made_up("lowtide"), beside=[made_up("native")]) == "unknown: needs expandable"
    assert verdict(made_up("lowtide"), made_up("lowtide", 2, error="out of memory")) == "no: failed"
    assert verdict(made_up("native")) == ""


def test_losses_are_compared_with_those_of_the_native_allocator() -> None:
    def compared(*runs: dict[str, Any]) -> str:
        table = Table(runs)
        return table.losses(table.rows["resnet50", "lowtide"])

    assert compared(made_up("native"), made_up("lowtide")) == "equal"
    assert compared(made_up("native"), made_up("lowtide"), made_up("lowtide", 2, losses=[3.0, 2.1])) == "differ"
    assert compared(made_up("native"), made_up("native", 2, losses=[3.0, 2.1]), made_up("lowtide")) == "vary"
    assert compared(made_up("lowtide")) == ""


def test_a_failure_is_a_row_with_its_reason() -> None:
    lines = Table([made_up("native", error="torch.OutOfMemoryError: CUDA out of memory")]).lines()
    assert "resnet50       native          0 1 failed: torch.OutOfMemoryError: CUDA out of memory" in lines


def test_rounds_are_interleaved() -> None:
    keys = run.wanted(["a", "b"], ["native", "lowtide"], 2)
    first = [("a", "native", 1), ("a", "lowtide", 1), ("b", "native", 1), ("b", "lowtide", 1)]
    second = [("a", "lowtide", 2), ("a", "native", 2), ("b", "lowtide", 2), ("b", "native", 2)]
    assert keys == first + second
    keys = run.wanted(["a"], ["native", "expandable", "lowtide"], 5)
    assert [on for _, on, _ in keys[::3]] == ["native", "expandable", "lowtide", "native", "expandable"]


def test_what_was_cut_off_goes_on_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, keys, made = tmp_path / "results.jsonl", run.wanted(["a", "b"], ["native", "lowtide"], 3), []

    def measure(key: run.Key) -> dict[str, Any]:
        if len(made) == 5:
            made.append("cut off")
            raise KeyboardInterrupt
        made.append(key)
        return made_up(key[1], key[2], workload=key[0])

    with pytest.raises(KeyboardInterrupt):
        run.gather(keys, Results(path), measure)
    assert len(path.read_text().splitlines()) == 5, "every run is written when it is over"
    assert run.gather(keys, Results(path), measure)
    assert "has 5 of 12 runs; 7 to go" in capsys.readouterr().err
    assert [key for key in made if key != "cut off"] == keys
    assert len(Results(path)) == 12
    assert run.gather(keys, Results(path), measure)
    assert len(made) == 13, "nothing is measured twice"


def test_no_run_begins_after_the_time_that_was_given(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    assert not run.gather([("a", "native", 1)], results, lambda key: made_up(*key[1:]), until=0)
    assert len(results) == 0


def test_half_a_line_is_left_out_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "results.jsonl"
    whole = json.dumps(made_up("native"))
    path.write_text(f"{whole}\n{whole[:50]}")
    results = Results(path)
    assert len(results) == 1
    assert f"{path}:2: not a whole result" in capsys.readouterr().err
    results.add(made_up("lowtide"))
    assert ("resnet50", "lowtide", 1) in Results(path), "the next result begins on a line of its own"


def test_a_failure_is_measured_again_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    Results(path).add(made_up("native", error="no memory"))
    results = Results(path)
    assert ("resnet50", "native", 1) in results
    results.forget_failures()
    assert ("resnet50", "native", 1) not in results
    results.add(made_up("native"))
    assert ["error" in result for result in Results(path)] == [False], "the later run counts"


def test_runs_of_other_lengths_are_not_mixed(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    results.add(made_up("native"))
    results.check_settings(steps=12, first=10)
    with pytest.raises(Mixed, match="has runs with `steps` 12, not 28"):
        results.check_settings(steps=28, first=10)


def test_the_report_of_a_file_measures_nothing(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    for result in [*rivals(), made_up("lowtide")]:
        Results(path).add(result)
    command = [sys.executable, str(BENCHES / "run.py"), "--report", str(path)]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines() == Table(Results(path)).lines()
    assert "1.00%     0.250  equal  yes" in shown.stdout
    assert len(Results(path)) == 7


@pytest.mark.parametrize("allocator", ["native", "async"])
def test_a_run_that_ends_without_a_result_is_a_failure(
    allocator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ended(Forked):
        def run(self, arguments: list[str], timeout: float) -> subprocess.CompletedProcess[str]:
            return subprocess.CompletedProcess(arguments, 1, "", "there is no device\n")

    # What is chosen when PyTorch is loaded has a process that loads it.
    (tmp_path / "one.py").write_text("raise SystemExit('there is no device')")
    monkeypatch.setattr(run, "HERE", tmp_path)
    result = run.measure(Ended(), ("resnet50", allocator, 2), 12, 10)
    assert (result["round"], result["error"]) == (2, "there is no device")


def test_runs_are_forked_from_a_process_that_outlives_them() -> None:
    with Forked() as forked:
        wrong = forked.run(["resnet50", "nobody's", "--steps=2", "--first=1"], timeout=240)
        assert wrong.returncode == 2
        assert "invalid choice" in wrong.stderr
        first = forked._server
        unknown = forked.run(["nothing", "native", "--steps=2", "--first=1"], timeout=240)
        assert (unknown.returncode, unknown.stdout) == (1, "")
        assert run.reason(unknown.stderr)
        assert forked._server is first
        with pytest.raises(subprocess.TimeoutExpired):
            forked.run(["nothing", "native", "--steps=2", "--first=1"], timeout=0.0)
        assert forked.run(["resnet50", "nobody's", "--steps=2", "--first=1"], timeout=240).returncode == 2
        assert forked._server is not first


def test_the_reason_of_a_failure_is_the_line_of_its_exception() -> None:
    traceback = "Traceback (most recent call last):\n  File ...\n    raise error\n"
    told = "torch.OutOfMemoryError: CUDA out of memory. Lowtide: 4 GiB asked\nalive: 3\nhint: a smaller batch\n"
    assert run.reason(traceback + told) == "torch.OutOfMemoryError: CUDA out of memory. Lowtide: 4 GiB asked"
    assert run.reason("killed\n") == "killed"
    assert run.reason("") == ""


def test_an_allocator_whose_package_is_absent_is_left_out_and_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(allocators.importlib.util, "find_spec", lambda name: None if name == "comfy_aimdo" else name)
    assert run.installed(["native", "aimdo", "lowtide"]) == ["native", "lowtide"]
    assert "aimdo is left out: the package `comfy_aimdo` is not installed" in capsys.readouterr().err


def test_the_runner_knows_every_workload() -> None:
    pytest.importorskip("torch", reason="the workloads are PyTorch's")
    from workloads import WORKLOADS

    assert sorted(run.WORKLOADS) == sorted(WORKLOADS)


class Counting(allocators.Allocator):
    """An allocator whose numbers are the steps that were made."""

    def __init__(self) -> None:
        self.made, self.resets, self.calls = 0, 0, []

    def run(self) -> Iterator[float]:
        yield 0.0
        while True:
            self.made += 1
            yield float(self.made)

    def begin_step(self, step: int) -> None:
        self.calls.append((step, self.made))

    def synchronize(self) -> None:
        pass

    def reset_peaks(self) -> None:
        self.resets += 1

    def peaks(self) -> dict[str, int]:
        return {"reserved": 10 * self.made + self.resets}

    def beyond_reserved(self) -> int:
        return 7

    def counters(self) -> dict[str, int]:
        return {"hook_ns": self.made**2}


def test_a_run_tells_its_first_steps_from_the_later_ones() -> None:
    allocator = Counting()
    found = one.measure(allocator.run(), allocator, steps=4, first=3)
    assert found["losses"] == [1.0, 2.0, 3.0, 4.0] and len(found["times_ms"]) == 4
    assert (found["first_reserved"], found["late_reserved"]) == (30, 41)
    assert found["hook_ns"] == [1, 3, 5, 7], "what each step added"
    assert allocator.calls == [(1, 0), (2, 1), (3, 2), (4, 3)]
    assert found["beyond_reserved"] == 7


def test_latency_counts_the_turns_after_the_warm_ones() -> None:
    pytest.importorskip("torch", reason="tensors are PyTorch's")
    allocator = Counting()
    allocator.counters = lambda: {"hook_ns": 500_000 * len(allocator.calls), "driver_calls": len(allocator.calls)}
    allocator.synchronize = lambda: allocator.calls.append("warm")
    found = latency.measure(allocator, warm=20, turns=500, device="cpu")
    assert list(found) == latency.CASES
    assert all(numbers["us"] > 0 and numbers["driver_calls"] == 0 for numbers in found.values()), found


def test_latency_keeps_at_most_400_tensors_of_the_named_sizes() -> None:
    turns = latency.many_sizes(20_000)
    assert turns == latency.many_sizes(20_000), "every allocator gets the same"
    assert {place for place, _ in turns} == set(range(latency.ALIVE))
    sizes = sorted(size for _, size in turns)
    assert 512 <= sizes[0] and sizes[-1] <= 32 << 20
    assert 120_000 < sizes[10_000] < 142_000, "half are below the middle of the exponents"


def test_the_table_of_latencies_has_medians_and_the_most_driver_calls() -> None:
    def found(us: float, **ours: float) -> latency.Result:
        return {case: {"us": us, **ours} for case in latency.CASES}

    ours = [
        found(4.0, hooks_us=0.4, driver_calls=0),
        found(5.0, hooks_us=0.6, driver_calls=2),
        found(4.5, hooks_us=0.5, driver_calls=0),
    ]
    shown = latency.lines({"native": [found(3.0), found(2.0), found(4.0)], "lowtide": ours})
    assert shown[1].split() == ["one", "size", "native", "3.00", "2.00-4.00"]
    assert shown[4].split() == ["400", "alive", "lowtide", "4.50", "4.00-5.00", "0.500", "2"]


@pytest.mark.gpu
def test_tiny_workloads_run_on_every_allocator_of_a_device(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    command = [sys.executable, str(BENCHES / "run.py"), "--tiny", "--runs=1", "--steps=4", "--first=2", "-o", str(path)]
    command += ["--workloads", "serve_mixed", "train_eval", "accumulate"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr
    results = list(Results(path))
    assert len(results) == 3 * len(allocators.USUAL)
    for result in results:
        assert "error" not in result, result
        assert 0 < result["late_requested"] <= result["late_reserved"] and result["beyond_reserved"] > 0, result
        assert result["allocator"] not in allocators.OURS or 0 < min(result["hook_ns"]), result
