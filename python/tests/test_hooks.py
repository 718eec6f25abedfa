"""The C functions that PyTorch calls, over simulated devices with contents."""

from __future__ import annotations

import textwrap

import pytest
from simulated import run


def test_a_block_is_aligned_counted_and_usable() -> None:
    run(
        """
        serve()
        assert stats() == {}
        block = alloc(1000)
        assert block % 512 == 0
        fill(block, 1000, 7)
        assert holds(block, 1000, 7)
        told = stats()
        assert (told["requested_bytes"], told["allocated_bytes"], told["allocations"]) == (1000, 1024, 1), told
        assert told["reserved_bytes"] >= 1024
        free(block, 1000)
        told = stats()
        assert (told["requested_bytes"], told["peak_requested_bytes"], told["frees"]) == (0, 1000, 1), told
        """
    )


def test_a_free_that_fails_is_counted_and_said_once() -> None:
    run(
        """
        serve()
        kept, block = alloc(1000), alloc(1000)
        free(block, 1000)
        free(block, 1000)
        free(kept + 512 * MIB, 1000)
        free(block, 1000, device=5)
        told = stats()
        assert (told["frees"], told["failed_frees"], told["requested_bytes"]) == (1, 2, 1000), told
        warnings = _lowtide.device_warnings()
        assert len(warnings) == 2 and warnings[0].startswith("device 0: 2 frees failed, the first "), warnings
        assert warnings[1].startswith("1 free failed, "), warnings
        assert _lowtide.device_warnings() == []
        """
    )


def test_a_panic_is_an_error_of_the_program_and_ends_service() -> None:
    run(
        """
        import os
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # Rust says where it panicked.
        serve(panic_at=1)
        assert alloc(1000) is None
        assert alloc(1000) is None, "what has panicked is not asked again"
        free(4096, 1000)
        record_stream(4096, 1)
        reset()
        lowtide.step()
        questions = {
            "device_stats": (0,), "reset_peaks": (0,), "trim_devices": (), "limit_device": (0, 1), "device_history": ()
        }
        for name, arguments in questions.items():
            try:
                getattr(_lowtide, name)(*arguments)
            except RuntimeError as error:
                assert "a defect of Lowtide" in str(error), error
            else:
                raise SystemExit(f"{name} asks what has panicked")
        warnings = _lowtide.device_warnings()
        assert len(warnings) == 1 and "a defect of Lowtide" in warnings[0], warnings
        assert "call 1 panics on purpose" in warnings[0], warnings
        assert _lowtide.device_warnings() == []
        """
    )


def test_no_bytes_are_no_block() -> None:
    run(
        """
        serve()
        assert alloc(0) is None
        free(0, 0)
        record_stream(0, 1)
        assert stats() == {}
        """
    )


def test_without_devices_nothing_is_served_and_nothing_breaks() -> None:
    run(
        """
        assert alloc(512) is None
        free(4096, 512)
        record_stream(4096, 1)
        reset()
        memory_fraction(0.5, 0)
        assert base(4096) == (4096, 0)
        assert stats() == {} and _lowtide.trim_devices() == 0 and _lowtide.device_warnings() == []
        lowtide.step()
        """
    )


def test_devices_are_served_once() -> None:
    run(
        """
        serve(32 * MIB)
        assert not _lowtide.serve_devices(simulated=64 * MIB)
        assert alloc(48 * MIB) is None
        """
    )


def test_devices_are_apart() -> None:
    run(
        """
        serve(32 * MIB)
        first, second = alloc(20 * MIB, device=0), alloc(20 * MIB, device=1)
        fill(first, 20 * MIB, 1)
        fill(second, 20 * MIB, 2)
        assert holds(first, 20 * MIB, 1) and holds(second, 20 * MIB, 2)
        assert alloc(20 * MIB, device=1) is None
        assert stats(0)["out_of_memory"] == 0 and stats(1)["out_of_memory"] == 1
        free(second, 20 * MIB, device=1)
        assert stats(0)["requested_bytes"] == 20 * MIB and stats(1)["requested_bytes"] == 0
        assert holds(first, 20 * MIB, 1)
        assert stats(2) == {}
        """
    )


def test_a_shortage_gives_back_first_and_waits_for_other_streams() -> None:
    run(
        """
        serve()
        shared = alloc(40 * MIB, stream=1)
        record_stream(shared, 2)
        free(shared, 40 * MIB, stream=1)
        small = alloc(1 * MIB, stream=1)
        assert not shared <= small < shared + 40 * MIB, "another stream may still use it"
        assert alloc(60 * MIB, stream=1) is not None, "waiting makes room"
        """
    )


def test_what_is_recorded_twice_or_by_its_own_stream_is_reused() -> None:
    run(
        """
        serve(learn=False)
        block = alloc(8 * MIB, stream=1)
        record_stream(block, 1)
        free(block, 8 * MIB, stream=1)
        again = alloc(8 * MIB, stream=1)
        assert again == block
        record_stream(again, 2)
        record_stream(again, 2)
        free(again, 8 * MIB, stream=1)
        assert alloc(8 * MIB, stream=1) != block
        """
    )


def test_a_limit_holds_and_can_be_changed() -> None:
    run(
        """
        serve(64 * MIB, limit=16 * MIB)
        kept = alloc(12 * MIB)
        assert alloc(12 * MIB) is None
        _lowtide.limit_device(0, 32 * MIB)
        more = alloc(12 * MIB)
        assert more is not None and stats()["peak_reserved_bytes"] <= 32 * MIB
        memory_fraction(0.25, 0)
        assert alloc(12 * MIB) is None
        memory_fraction(1.0, 0)
        assert alloc(12 * MIB) is None, "the limit of the user stays"
        _lowtide.limit_device(0, None)
        assert alloc(36 * MIB) is not None
        """
    )


@pytest.mark.parametrize("variable", ["ENABLE_MEMORY_OPTIMIZATION", "LOWTIDE_LEARN"])
def test_without_optimization_blocks_are_placed_as_they_come_and_a_limit_still_holds(variable: str) -> None:
    run(
        f"""
        import os
        os.environ[{variable!r}] = "0"
        serve(64 * MIB, limit=24 * MIB)
        for _ in range(60):
            blocks = [alloc(size * MIB) for size in (4, 8, 2)]
            for block, size in zip(blocks, (4, 8, 2)):
                free(block, size * MIB)
            lowtide.step()
        told = stats()
        assert told["plan_hits"] == told["plan_misses"] == 0, told
        assert alloc(32 * MIB) is None
        assert stats()["reserved_bytes"] <= 24 * MIB
        """
    )


def test_memory_goes_back_when_asked_for() -> None:
    run(
        """
        serve()
        kept, gone = alloc(2 * MIB), alloc(30 * MIB)
        free(gone, 30 * MIB)
        assert stats()["reserved_bytes"] >= 32 * MIB
        assert _lowtide.trim_devices() >= 28 * MIB
        assert stats()["reserved_bytes"] <= 4 * MIB
        free(kept, 2 * MIB)
        reset()
        told = stats()
        assert told["reserved_bytes"] == 0 and told["peak_reserved_bytes"] >= 32 * MIB
        _lowtide.reset_peaks(0)
        told = stats()
        assert (told["peak_reserved_bytes"], told["peak_requested_bytes"], told["peak_allocated_bytes"]) == (0, 0, 0)
        """
    )


def test_a_pointer_into_a_block_leads_to_its_start() -> None:
    run(
        """
        serve()
        other, block = alloc(4 * MIB), alloc(3 * MIB, device=1)
        assert base(block + 12345) == (block, 3 * MIB)
        assert base(block) == (block, 3 * MIB)
        assert base(12345) == (12345, 0)
        """
    )


def test_the_last_steps_are_kept_as_a_trace() -> None:
    run(
        """
        import csv, gzip, io
        serve()
        kept = alloc(3 * MIB)
        for number in range(6):
            block = alloc((number + 1) * MIB, stream=5)
            lowtide.step()
            free(block, (number + 1) * MIB)
        rows = list(csv.DictReader(io.StringIO(gzip.decompress(_lowtide.device_history()).decode())))
        assert [row["event"] for row in rows].count("step") >= 3, rows
        assert rows[0]["event"] == "alloc" and rows[0]["bytes"] == str(3 * MIB), rows[0]
        allocs = {row["id"]: row for row in rows if row["event"] == "alloc"}
        freed = [row["id"] for row in rows if row["event"] == "free"]
        assert set(freed) <= set(allocs) and rows[0]["id"] not in freed
        assert {row["stream"] for row in allocs.values() if row["bytes"] != str(3 * MIB)} == {"5"}
        """
    )


def test_a_history_that_nobody_wants_is_empty() -> None:
    run(
        """
        import gzip
        serve(history=0)
        alloc(MIB)
        assert len(gzip.decompress(_lowtide.device_history()).splitlines()) <= 1
        """
    )


def test_the_hooks_are_measured_when_asked() -> None:
    run(
        """
        serve()
        free(alloc(MIB), MIB)
        told = stats()
        assert told["alloc_ns_p50"] is None and told["alloc_ns"] == told["free_ns"] == told["record_stream_ns"] == 0
        _lowtide.measure_hooks(True)
        for _ in range(1000):
            block = alloc(MIB)
            record_stream(block, 1)
            free(block, MIB)
        told = stats()
        assert 0 < told["alloc_ns_p50"] <= told["alloc_ns_p99"] and 0 < told["free_ns_p50"] < 10**6, told
        # Half of the calls take at least about the median.
        assert told["alloc_ns"] >= 400 * told["alloc_ns_p50"] and told["free_ns"] >= 400 * told["free_ns_p50"], told
        assert told["record_stream_ns"] > 0, told
        """
    )


def test_a_capture_has_a_pool_of_its_own_until_its_graph_is_gone() -> None:
    run(
        """
        serve()
        pool = Pool(0, 9)
        asked = begin_allocate_to_pool(0, pool, lambda stream: stream == 5)
        assert asked == [2], asked
        inside = alloc(4 * MIB, stream=5)
        outside = alloc(4 * MIB, stream=6)
        fill(inside, 4 * MIB, 3)
        free(inside, 4 * MIB, stream=5)
        assert alloc(4 * MIB, stream=5) == inside, "the capture itself uses it again"
        free(inside, 4 * MIB, stream=5)
        end_allocate_to_pool(0, pool)
        assert asked == [2, 3], asked
        later = [alloc(4 * MIB, stream=5) for _ in range(4)]
        reset()
        assert inside not in later and holds(inside, 4 * MIB, 3), "the graph may be launched again"
        before = stats()["reserved_bytes"]
        release_pool(0, pool)
        reset()
        assert stats()["reserved_bytes"] < before
        """
    )


# PyTorch's allocator of the CPU is replaced by an object whose function `allocate` is `lowtide_alloc`. That one is
# called with the address of the result for a size, which no device has, with the low half of the object's own address
# for a device, which is 0 where the object lies, and with the size of the tensor for a stream.
THROUGH_PYTORCH = """
import mmap, os, torch
from pathlib import Path
system = ctypes.CDLL(None)
system.mmap.restype = ctypes.c_void_p
system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
exactly_there = 0x100000
kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | exactly_there
place = system.mmap(1 << 40, 4096, mmap.PROT_READ | mmap.PROT_WRITE, kind, -1, 0)
assert place == 1 << 40
functions = (ctypes.c_void_p * 8)(*[ctypes.cast(library.lowtide_alloc, ctypes.c_void_p)] * 8)
ctypes.c_void_p.from_address(place).value = ctypes.addressof(functions)
c10 = ctypes.CDLL(str(Path(torch.__file__).parent / "lib/libc10.so"))
set_allocator = getattr(c10, "_ZN3c1015SetCPUAllocatorEPNS_9AllocatorEh")
set_allocator.argtypes = [ctypes.c_void_p, ctypes.c_uint8]
set_allocator(place, 255)
"""


def test_a_shortage_is_thrown_as_the_error_of_pytorch() -> None:
    pytest.importorskip("torch")
    told = run(
        THROUGH_PYTORCH
        + textwrap.dedent(
            """
            serve(learn=False)
            kept = [alloc(9 * MIB) for _ in range(6)]
            assert _lowtide.raises_out_of_memory()
            for _ in range(3):
                try:
                    torch.empty(1000)
                except torch.OutOfMemoryError as error:
                    text = str(error)
                else:
                    text = "no error"
            assert stats()["out_of_memory"] == 3
            print(text, flush=True)
            os._exit(0)
            """
        )
    )
    assert told.startswith("CUDA out of memory. Lowtide: out of memory on device 0: no room for "), told
    for part in ("in use 54.0 MiB", "fragmentation: ", "map of what is alive", "54.0 MiB in 6 of 9.0 MiB", "\nhint: "):
        assert part in told, told


def test_an_exception_of_a_filter_passes_and_breaks_nothing() -> None:
    """The filter is a function of the C++ runtime that takes nothing and throws."""
    pytest.importorskip("torch")
    told = run(
        THROUGH_PYTORCH
        + textwrap.dedent(
            """
            serve(learn=False)
            throws = ctypes.cast(ctypes.CDLL("libstdc++.so.6")["_ZSt25__throw_bad_function_callv"], ctypes.c_void_p)
            begin_allocate_to_pool(0, Pool(0, 9), throws)
            for _ in range(3):
                try:
                    torch.empty(1000)
                except RuntimeError as error:
                    text = str(error)
                else:
                    text = "no error"
            assert _lowtide.device_warnings() == [] and stats()["allocations"] == 0
            end_allocate_to_pool(0, Pool(0, 9))
            assert alloc(MIB, stream=5) is not None
            print(text, flush=True)
            os._exit(0)
            """
        )
    )
    assert "bad_function_call" in told, told
