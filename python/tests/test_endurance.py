"""Threads, steps, forks and ends over simulated devices with contents."""

from __future__ import annotations

import textwrap
from pathlib import Path

import child
import pytest
from simulated import PRELUDE, run


def test_threads_and_streams_do_not_share_bytes() -> None:
    run(
        """
        import random, threading
        serve(192 * MIB)
        wrong, refused = [], []
        def work(seed):
            chance, held = random.Random(seed), []
            def drop(index):
                block, size, device, stream, value = held.pop(index)
                if not holds(block, size, value):
                    wrong.append((seed, size, value))
                free(block, size, device, stream)
            for turn in range(1500):
                if held and (chance.random() < 0.45 or len(held) > 40):
                    drop(chance.randrange(len(held)))
                else:
                    size = chance.choice([chance.randrange(1, 4096), chance.randrange(1, MIB), 1536 * 1024])
                    device, stream = chance.randrange(2), chance.randrange(4)
                    block, value = alloc(size, device, stream), chance.randrange(256)
                    if block is None:
                        refused.append(size)
                        continue
                    fill(block, size, value)
                    held.append((block, size, device, stream, value))
                    if chance.random() < 0.2:
                        record_stream(block, chance.randrange(4))
                if turn % 100 == 0 and seed == 0:
                    lowtide.step()
                if turn % 400 == 399 and seed == 1:
                    reset()
            while held:
                drop(-1)
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert not wrong, wrong
        for device in range(2):
            told = stats(device)
            assert told["requested_bytes"] == 0 and told["allocations"] == told["frees"], told
        reset()
        assert stats(0)["reserved_bytes"] == stats(1)["reserved_bytes"] == 0
        """
    )


STEPS = """
import time
sizes = [40, 8, 24, 16, 60, 4]
def step():
    blocks = []
    for number, size in enumerate(sizes):
        block = alloc(size * MIB, stream=number % STREAMS)
        fill(block, 64, number)
        blocks.append((block, size, number))
        if number % 2:
            early, size, number = blocks.pop(0)
            assert holds(early, 64, number)
            free(early, size * MIB, stream=number % STREAMS)
    lowtide.step()
    for block, size, number in blocks:
        assert holds(block, 64, number)
        free(block, size * MIB, stream=number % STREAMS)
"""


@pytest.mark.parametrize("streams", [1, 2])
def test_steps_are_learned_and_then_cost_no_call(streams: int) -> None:
    run(
        f"STREAMS = {streams}\n"
        + STEPS
        + textwrap.dedent(
            """
            serve(512 * MIB)
            for _ in range(150):
                step()
                time.sleep(0.01)
            before = stats()
            for _ in range(20):
                step()
            after = stats()
            assert after["plan_hits"] - before["plan_hits"] >= 19 * len(sizes), (before, after)
            for name in ("driver_calls", "waits", "plan_misses", "reserved_bytes"):
                assert after[name] == before[name], (name, before, after)
            assert after["steps"] == before["steps"] + 20
            """
        )
    )


def test_plans_are_remembered_from_run_to_run(tmp_path: Path) -> None:
    program = (
        "STREAMS = 1\n"
        + STEPS
        + textwrap.dedent(
            f"""
            serve(512 * MIB, plans={str(tmp_path)!r})
            for _ in range(COUNT):
                step()
                time.sleep(0.01)
            print(stats()["plan_hits"])
            """
        )
    )
    run("COUNT = 30\n" + program)
    assert list(tmp_path.iterdir()), "nothing was written"
    assert int(run("COUNT = 4\n" + program)) >= 6


def test_a_forked_child_lets_go_and_ends_while_its_parent_goes_on() -> None:
    run(
        """
        import os, signal, threading
        serve(256 * MIB)
        stop = False
        def churn():
            while not stop:
                block = alloc(2 * MIB, stream=3)
                if block is not None:
                    free(block, 2 * MIB, stream=3)
        threads = [threading.Thread(target=churn) for _ in range(2)]
        [thread.start() for thread in threads]
        for turn in range(40):
            block = alloc(5 * MIB)
            fill(block, 5 * MIB, turn)
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                free(block, 5 * MIB)
                record_stream(block, 1)
                served = alloc(5 * MIB)
                reset()
                os._exit(0 if served is None and stats() == {} else 1)
            assert os.waitpid(child, 0)[1] == 0, turn
            assert holds(block, 5 * MIB, turn)
            free(block, 5 * MIB)
        stop = True
        [thread.join() for thread in threads]
        assert stats()["requested_bytes"] == 0
        """
    )


def test_a_forked_child_may_end_as_any_program_does() -> None:
    run(
        """
        import os
        serve()
        block = alloc(5 * MIB)
        child = os.fork()
        if child == 0:
            lowtide.step()
            free(block, 5 * MIB)
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """
    )


def test_a_process_ends_with_live_blocks_and_busy_threads() -> None:
    done = child.start(
        PRELUDE
        + textwrap.dedent(
            """
            import threading, time
            serve(256 * MIB)
            kept = [alloc(MIB, stream=index) for index in range(20)]
            def churn():
                while True:
                    block = alloc(2 * MIB)
                    if block is not None:
                        free(block, 2 * MIB)
                    lowtide.step()
            threading.Thread(target=churn, daemon=True).start()
            time.sleep(0.2)
            """
        )
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
