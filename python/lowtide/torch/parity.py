"""What PyTorch asks of its own allocator and cannot ask of another: its statistics. The functions of `torch.cuda` that
read them are answered by Lowtide, so that programs that print their memory go on to work."""

from __future__ import annotations

from typing import Any

import torch

from lowtide import _lowtide

# What PyTorch's dictionary has for each number that comes and goes.
_EMPTY = {"current": 0, "peak": 0, "allocated": 0, "freed": 0}


def provide() -> None:
    """Answers PyTorch's questions about memory from now on."""
    answers = {
        "_cuda_memoryStats": statistics,
        "_cuda_resetPeakMemoryStats": _lowtide.reset_peaks,
        "_cuda_resetAccumulatedMemoryStats": lambda device: None,
        "_accelerator_getDeviceStats": statistics,
        "_accelerator_resetPeakStats": _lowtide.reset_peaks,
        "_accelerator_resetAccumulatedStats": lambda device: None,
    }
    for name, answer in answers.items():
        if hasattr(torch._C, name):
            setattr(torch._C, name, answer)


def statistics(device: int) -> dict[str, Any]:
    """A device's numbers in the shape of PyTorch's own, nested. What an arena does not have is zero: it has no pools
    for small and large blocks, and no segments but the driver's handles."""
    own = _lowtide.device_stats(device) or {}

    def number(name: str) -> int:
        return own.get(name, 0)

    def level(now: int = 0, peak: int = 0, in_all: int = 0) -> dict[str, dict[str, int]]:
        gone = max(in_all - now, 0)
        numbers = {"current": now, "peak": peak, "allocated": in_all, "freed": gone}
        return {"all": numbers, "small_pool": dict(_EMPTY), "large_pool": dict(_EMPTY)}

    def blocks() -> dict[str, dict[str, int]]:
        begun = number("allocations")
        return level(begun - number("frees"), number("peak_blocks"), begun)

    def allocated() -> dict[str, dict[str, int]]:
        return level(number("allocated_bytes"), number("peak_allocated_bytes"), number("allocated_in_all"))

    handles = number("handles_created")
    return {
        "allocation": blocks(),
        "segment": level(handles - number("handles_destroyed"), handles, handles),
        "active": blocks(),
        "inactive_split": level(),
        "allocated_bytes": allocated(),
        "reserved_bytes": level(number("reserved_bytes"), number("peak_reserved_bytes")),
        "active_bytes": allocated(),
        "inactive_split_bytes": level(),
        "requested_bytes": level(number("requested_bytes"), number("peak_requested_bytes")),
        "oversize_allocations": dict(_EMPTY),
        "oversize_segments": dict(_EMPTY),
        "num_alloc_retries": number("retries"),
        "num_ooms": number("out_of_memory"),
        "num_oom_rejections": 0,
        "num_sync_all_streams": number("waits"),
        "num_device_alloc": handles,
        "num_device_free": number("handles_destroyed"),
        "max_split_size": -1,
    }
