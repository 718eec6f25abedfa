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
    }
    for name, answer in answers.items():
        if hasattr(torch._C, name):
            setattr(torch._C, name, answer)


def statistics(device: int) -> dict[str, Any]:
    """A device's numbers in the shape of PyTorch's own, nested. What an arena does not have is zero: it has no pools for
    small and large blocks, and no segments."""
    own = _lowtide.device_stats(device) or {}

    def level(now: str, peak: str) -> dict[str, dict[str, int]]:
        numbers = {**_EMPTY, "current": own.get(now, 0), "peak": own.get(peak, 0)}
        return {"all": numbers, "small_pool": dict(_EMPTY), "large_pool": dict(_EMPTY)}

    def count(made: str, gone: str) -> dict[str, dict[str, int]]:
        begun, ended = own.get(made, 0), own.get(gone, 0)
        numbers = {**_EMPTY, "current": begun - ended, "allocated": begun, "freed": ended}
        return {"all": numbers, "small_pool": dict(_EMPTY), "large_pool": dict(_EMPTY)}

    allocated = level("allocated_bytes", "peak_allocated_bytes")
    blocks = count("allocations", "frees")
    handles = count("handles_created", "handles_destroyed")
    return {
        "allocation": blocks,
        "segment": handles,
        "active": blocks,
        "inactive_split": level("", ""),
        "allocated_bytes": allocated,
        "reserved_bytes": level("reserved_bytes", "peak_reserved_bytes"),
        "active_bytes": allocated,
        "inactive_split_bytes": level("", ""),
        "requested_bytes": level("requested_bytes", "peak_requested_bytes"),
        "oversize_allocations": dict(_EMPTY),
        "oversize_segments": dict(_EMPTY),
        "num_alloc_retries": own.get("retries", 0),
        "num_ooms": own.get("out_of_memory", 0),
        "num_sync_all_streams": own.get("waits", 0),
        "num_device_alloc": own.get("handles_created", 0),
        "num_device_free": own.get("handles_destroyed", 0),
        "max_split_size": -1,
    }
