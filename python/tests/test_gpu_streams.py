"""Threads and streams on a real device: blocks are used again only when nobody uses them any more."""

from __future__ import annotations

from device import INSTALL, LOWTIDE, NATIVE, run

try:
    import pytest
except ImportError:
    pass
else:
    pytestmark = pytest.mark.gpu


RECORDED = """
def one(number):
    main, size = torch.cuda.current_stream(), 4 * MIB
    value = float(number + 1)
    shared = torch.full((size,), value, device="cuda")
    kept = torch.empty_like(shared)
    side.wait_stream(main)
    with torch.cuda.stream(side):
        torch.cuda._sleep(30_000_000)
        kept.copy_(shared)
    if RECORD:
        shared.record_stream(side)
    kept.record_stream(side)
    del shared
    # Where the memory is used again too early, this is what `kept` gets.
    others = [torch.full((size,), -1.0, device="cuda") for _ in range(4)]
    torch.cuda.synchronize()
    return bool((kept == value).all())

side = torch.cuda.Stream()
"""


def test_what_another_stream_uses_is_not_used_again() -> None:
    run(
        INSTALL,
        "RECORD = True\n"
        + RECORDED
        + """
wrong = [number for number in range(40) if not one(number) or lowtide.step()]
assert not wrong, f"a block was used again too early in {wrong} of 40 steps"
""",
    )


def test_the_test_of_streams_would_see_a_block_used_too_early() -> None:
    """The same under PyTorch's own allocator, without telling it of the other stream."""
    run(
        NATIVE,
        "RECORD = False\n"
        + RECORDED
        + """
assert not all(one(number) for number in range(5)), "the stream was never late"
""",
    )


def test_threads_and_streams_keep_their_patterns() -> None:
    told = run(
        LOWTIDE,
        """
        import queue
        lowtide.torch.install(limit="3GiB")
        SECONDS, THREADS = 20, 4
        handed, wrong, errors, rounds, refused = queue.Queue(), [], [], [0], [0]
        until = time.monotonic() + SECONDS

        def work(seed):
            chance, held = random.Random(seed), []
            streams = [torch.cuda.Stream() for _ in range(2)] + [torch.cuda.default_stream()]
            bad = torch.zeros(1, dtype=torch.int64, device="cuda")
            torch.cuda.synchronize()

            def check(tensor, value, event):
                stream = chance.choice(streams)
                stream.wait_event(event)
                with torch.cuda.stream(stream):
                    if chance.random() < 0.1:
                        torch.cuda._sleep(chance.randrange(1_000_000))
                    different = (tensor != value).sum()
                    tensor.record_stream(stream)
                    counts.wait_stream(stream)
                    with torch.cuda.stream(counts):
                        bad.add_(different)
                    different.record_stream(counts)

            counts = torch.cuda.Stream()
            turn = 0
            while time.monotonic() < until:
                turn += 1
                try:
                    if held and (chance.random() < 0.45 or len(held) > 60):
                        check(*held.pop(chance.randrange(len(held))))
                    elif chance.random() < 0.1:
                        try:
                            check(*handed.get_nowait())
                        except queue.Empty:
                            pass
                    else:
                        size = chance.choice([chance.randrange(1, 2000), chance.randrange(1, MIB), 6 * MIB])
                        stream, value = chance.choice(streams), chance.randrange(1 << 30)
                        with torch.cuda.stream(stream):
                            if chance.random() < 0.05:
                                torch.cuda._sleep(chance.randrange(2_000_000))
                            tensor = torch.full((size,), value, dtype=torch.int32, device="cuda")
                            event = torch.cuda.Event()
                            event.record(stream)
                        place = handed.put if chance.random() < 0.1 else held.append
                        place((tensor, value, event))
                        del tensor
                except torch.OutOfMemoryError:
                    refused[0] += 1
                    del held[len(held) // 2:]
                if seed == 0 and turn % 200 == 0:
                    lowtide.step()
                if seed == 1 and turn % 3000 == 0:
                    torch.cuda.empty_cache()
                rounds[0] += 1
            while held:
                check(*held.pop())
            torch.cuda.synchronize()
            if bad.item():
                wrong.append((seed, bad.item()))

        def guarded(seed):
            try:
                work(seed)
            except BaseException as error:
                errors.append(f"{seed}: {type(error).__name__}: {error}")

        threads = [threading.Thread(target=guarded, args=(seed,)) for seed in range(THREADS)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        while not handed.empty():
            tensor, value, event = handed.get()
            event.synchronize()
            assert bool((tensor == value).all())
            del tensor
        assert not errors, errors
        assert not wrong, f"elements with another's pattern, by thread: {wrong}"
        told = lowtide.torch.stats()
        assert told["peak_reserved_bytes"] <= 3 << 30
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        print(f"{rounds[0]} rounds, {refused[0]} refused, {told['allocations']} blocks, {told['waits']} waits")
        """,
        timeout=180,
    )
    assert int(told.split()[0]) > 2000, told


def test_a_shortage_waits_for_work_of_other_streams() -> None:
    run(
        LOWTIDE,
        """
        lowtide.torch.install(limit="256MiB")
        side = torch.cuda.Stream()
        for number in range(10):
            tensor = torch.full((30 * MIB,), float(number), device="cuda")
            kept = torch.empty(1000, device="cuda")
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                torch.cuda._sleep(50_000_000)
                kept.copy_(tensor[:1000])
            tensor.record_stream(side)
            kept.record_stream(side)
            del tensor
            other = torch.full((50 * MIB,), -1.0, device="cuda")
            torch.cuda.synchronize()
            assert bool((kept == number).all()), number
            del other
        """,
    )


TWO_STREAMS = """
side = torch.cuda.Stream()
left = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)]).cuda()
right = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)]).cuda()
optimizer = torch.optim.AdamW([*left.parameters(), *right.parameters()])

def forward(data):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        there = right(data)
    here = left(data)
    torch.cuda.current_stream().wait_stream(side)
    return here, there

def train():
    data = torch.randn(2048, 1024, device="cuda")
    here, there = forward(data)
    data.record_stream(side)
    there.record_stream(torch.cuda.current_stream())
    (here + there).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)

@torch.no_grad()
def infer():
    here, there = forward(torch.randn(2048, 1024, device="cuda"))
    assert torch.isfinite((here + there).sum())
    lowtide.step()

seen = []
for number in range(40):
    step()
    # Plans are made beside the program.
    torch.cuda.synchronize()
    time.sleep(0.05 if number < 10 else 0)
    seen.append(lowtide.torch.stats())
for name in ("driver_calls", "waits", "plan_hits", "plan_misses", "reserved_bytes"):
    print(name, [one[name] for one in seen[::5]])
before, after = seen[15], seen[39]
for name in ("driver_calls", "waits"):
    assert after[name] == before[name], f"{name}: {after[name] - before[name]} in 24 steps"
"""


def test_a_planned_step_on_two_streams_asks_the_driver_for_nothing() -> None:
    program = "step = lambda: infer()\n" + TWO_STREAMS
    print(run(INSTALL, program + "assert after['plan_hits'] > before['plan_hits'], 'no plan is served'"))


def test_a_step_whose_blocks_two_streams_use_asks_the_driver_for_nothing() -> None:
    print(run(INSTALL, "step = lambda: train()\n" + TWO_STREAMS))
