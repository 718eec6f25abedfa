"""Recording with real PyTorch on the CPU: sizes, steps, places, threads, and what a program that dies leaves."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import child
import pytest

pytest.importorskip("torch")

TRAINING = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(3):
    loss = model(torch.ones(64, 256)).pow(2).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def kinds(rows: list[dict[str, str]]) -> dict[str, int]:
    count: dict[str, int] = {}
    for row in rows:
        count[row["event"]] = count.get(row["event"], 0) + 1
    return count


def test_every_block_has_its_size_its_place_and_its_end(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import torch\n"
        "import lowtide.torch.recording as recording\n"
        "def make():\n"
        "    first = torch.empty(1000, 1000)\n"
        "    second = torch.empty(5000, dtype=torch.int8)\n"
        "    return first\n"
        "with recording.record('x.csv.gz', min_size=0):\n"
        "    kept = make()\n"
        "    torch.empty(0)\n"
        "    del kept\n"
    )
    done = child.command([sys.executable, "program.py"], cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    rows = child.rows(tmp_path / "x.csv.gz")
    place = f"{tmp_path}/program.py" if rows[0]["site"].startswith("/") else "program.py"
    told = [(row["event"], row["id"], row["bytes"], row["site"]) for row in rows]
    assert told == [
        ("alloc", "0", "4000000", f"{place}:4 make"),
        ("alloc", "1", "5000", f"{place}:5 make"),
        ("free", "1", "", ""),
        ("free", "0", "", ""),
    ]
    times = [int(row["time_ns"]) for row in rows]
    assert times == sorted(times)
    assert {row["thread"] for row in rows} == {"0"}
    assert {row["device"] for row in rows} == {""}


def test_a_training_has_its_steps_and_categories_and_can_be_planned_and_replayed(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    done = child.lowtide("record", "-o", "t.csv.gz", "--", sys.executable, "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "wrote t.csv.gz: " in done.stderr and "3 steps" in done.stderr
    assert done.stderr.strip().endswith("next: `lowtide report t.csv.gz`")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv.gz", "train.py"]
    rows = child.rows(tmp_path / "t.csv.gz")
    assert [row["id"] for row in rows if row["event"] == "step"] == ["1", "2", "3"]
    blocks = [row for row in rows if row["event"] == "alloc"]
    weights = [int(row["bytes"]) for row in blocks if row["category"] == "parameter"]
    assert weights.count(256 * 512 * 4) == 2
    categories = {row["category"] for row in blocks}
    assert {"parameter", "forward", "backward", "optimizer"} <= categories
    backward = [row["site"] for row in blocks if row["category"] == "backward"]
    assert backward and all("backward of " in site and "train.py:8" in site for site in backward)
    for verb in ("plan", "replay", "explain"):
        again = child.lowtide(verb, "t.csv.gz", cwd=tmp_path)
        assert again.returncode == 0, again.stderr


def test_both_steps_of_the_program_and_of_the_optimizer_count_once(tmp_path: Path) -> None:
    program = TRAINING.replace("optimizer.zero_grad()", "optimizer.zero_grad()")
    (tmp_path / "train.py").write_text(program)
    child.lowtide("record", "-o", "t.csv", "--", sys.executable, "train.py", cwd=tmp_path)
    assert kinds(child.rows(tmp_path / "t.csv"))["step"] == 3


def test_threads_are_told_apart_and_nothing_is_lost(tmp_path: Path) -> None:
    child.run(
        """
        import threading, torch
        import lowtide.torch.recording as recording
        def work(index):
            for turn in range(500):
                torch.empty(2048 + index)
        with recording.record("x.csv.gz", min_size=1):
            threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
        """,
        cwd=tmp_path,
    )
    rows = child.rows(tmp_path / "x.csv.gz")
    assert kinds(rows) == {"alloc": 2000, "free": 2000}
    by_size: dict[str, set[str]] = {}
    for row in rows:
        if row["event"] == "alloc":
            by_size.setdefault(row["bytes"], set()).add(row["thread"])
    assert len(by_size) == 4
    assert all(len(threads) == 1 for threads in by_size.values())


def test_a_program_that_is_killed_leaves_a_trace_up_to_its_last_step(tmp_path: Path) -> None:
    endless = TRAINING.replace("range(3)", "range(10**9)") + "    print(step, flush=True)\n"
    (tmp_path / "train.py").write_text(endless)
    words = [sys.executable, "-m", "lowtide", "record", "-o", "t.csv.gz", "--", sys.executable, "train.py"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        while int(process.stdout.readline()) < 20:
            pass
        time.sleep(0.2)
        # The verb passes this on, and the program has no handler of it.
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        talk = process.stderr.read()
    assert process.returncode == 128 + signal.SIGTERM
    assert "wrote t.csv.gz" in talk, talk
    rows = child.rows(tmp_path / "t.csv.gz")
    assert kinds(rows)["step"] >= 15
    assert child.lowtide("plan", "t.csv.gz", cwd=tmp_path).returncode == 0


def test_a_failed_allocation_is_a_row_and_raises_as_before(tmp_path: Path) -> None:
    child.run(
        """
        import torch
        import lowtide.torch.recording as recording
        with recording.record("x.csv.gz"):
            try:
                torch.empty(1 << 50)
            except RuntimeError as error:
                assert "can't allocate memory" in str(error), error
            else:
                raise SystemExit("no error")
        """,
        cwd=tmp_path,
    )
    assert [(row["event"], row["bytes"]) for row in child.rows(tmp_path / "x.csv.gz")] == [("oom", str(4 << 50))]


def test_blocks_of_before_and_after_the_recording_are_freed_as_ever(tmp_path: Path) -> None:
    child.run(
        """
        import torch
        import lowtide.torch.recording as recording
        before = torch.ones(100_000)
        recording.start("x.csv.gz")
        within = torch.ones(100_000)
        del before
        told = recording.stop()
        assert told.events == 1 and told.steps == 0 and told.peak == {"cpu": 400_000}, told
        del within
        assert recording.stop() is None
        torch.ones(100_000)
        with recording.record("y.csv.gz"):
            torch.ones(100_000)
        """,
        cwd=tmp_path,
    )
    assert kinds(child.rows(tmp_path / "y.csv.gz")) == {"alloc": 1, "free": 1}


def test_small_blocks_are_left_out_and_counted(tmp_path: Path) -> None:
    out = child.run(
        """
        import torch
        import lowtide.torch.recording as recording
        recording.start("x.csv.gz", min_size="1KiB")
        for size in (255, 256, 257):
            torch.empty(size)
        print(recording.stop().left_out)
        """,
        cwd=tmp_path,
    )
    assert out.strip() == "1"
    assert [row["bytes"] for row in child.rows(tmp_path / "x.csv.gz") if row["event"] == "alloc"] == ["1024", "1028"]


def test_a_forked_child_records_nothing_and_works(tmp_path: Path) -> None:
    child.run(
        """
        import os, torch
        import lowtide.torch.recording as recording
        recording.start("x.csv.gz")
        kept = torch.full((100_000,), 7.0)
        pid = os.fork()
        if pid == 0:
            total = sum(torch.ones(100_000).sum().item() for _ in range(10)) + kept.sum().item()
            del kept
            assert recording.stop() is None
            os._exit(0 if total == 1_700_000 else 1)
        assert os.waitpid(pid, 0)[1] == 0
        assert recording.stop().events == 1
        """,
        cwd=tmp_path,
    )


def test_without_a_recording_nothing_is_changed() -> None:
    child.run(
        """
        import torch, lowtide, lowtide.torch
        inner = torch.autograd.graph._engine_run_backward
        import lowtide.torch.recording as recording
        assert torch.autograd.graph._engine_run_backward is inner
        recording.start("/dev/null")
        assert torch.autograd.graph._engine_run_backward is not inner
        recording.stop()
        assert torch.autograd.graph._engine_run_backward is inner and torch.autograd._engine_run_backward is inner
        """
    )
