"""PyTorch's CUDA allocator, replaced: tensors come from Lowtide's arena over the driver's virtual memory."""

from __future__ import annotations

import ctypes
import os
import warnings
from pathlib import Path
from typing import Any

import torch

from lowtide import _lowtide
from lowtide.torch import failures, parity, steps

# PyTorch's setter of each optional function, and the function that it gets.
_SETTERS = {
    "set_init_fn": "lowtide_init",
    "set_reset_fn": "lowtide_reset",
    "set_memory_fraction_fn": "lowtide_memory_fraction",
    "set_base_alloc_fn": "lowtide_base_alloc",
    "set_record_stream_fn": "lowtide_record_stream",
    "set_begin_allocate_to_pool": "lowtide_begin_allocate_to_pool",
    "set_end_allocate_to_pool_fn": "lowtide_end_allocate_to_pool",
    "set_release_pool": "lowtide_release_pool",
}

# What is here must outlive every block that was ever handed out.
_kept: list[Any] = []


def is_served() -> bool:
    """Whether the devices are served by Lowtide."""
    return bool(_kept)


def serve(
    *, limit: int | None, learn: bool, plans: str | os.PathLike[str] | None, peers: bool, history: bool
) -> None:
    """Makes Lowtide the allocator of all CUDA devices. CUDA must not have started."""
    if is_served():
        return
    if not hasattr(torch._C, "_cuda_customAllocator"):
        raise RuntimeError(
            f"this PyTorch ({torch.__version__}) was built without CUDA\n"
            "hint: `install(device=False, cpu=True)` serves tensors of the CPU"
        )
    # Asked in this way, a process that is forked later may still use the devices.
    if not torch.cuda.device_count():
        raise RuntimeError(
            "PyTorch finds no CUDA device\nhint: `install(device=False, cpu=True)` serves tensors of the CPU"
        )
    # A setting that is wrong is told before anything is changed.
    _lowtide.serve_devices(
        limit=limit,
        learn=learn,
        plans=None if plans is None else Path(plans),
        peers=peers,
        history=1 << 17 if history else 0,
    )
    library = _lowtide.__file__
    allocator = torch.cuda.memory.CUDAPluggableAllocator(library, "lowtide_alloc", "lowtide_free")
    try:
        torch.cuda.memory.change_current_allocator(allocator)
    except RuntimeError as error:
        raise RuntimeError(
            "CUDA has started already, so its allocator cannot be changed\n"
            "hint: call `lowtide.torch.install()` before anything touches the device, or start the program with "
            "`lowtide run --device -- python …`"
        ) from error
    functions = ctypes.CDLL(library)
    inner = allocator.allocator()
    for setter, name in _SETTERS.items():
        pointer = ctypes.cast(getattr(functions, name), ctypes.c_void_p).value
        getattr(inner, setter)(pointer)
    _kept.extend((allocator, inner, functions))
    try:
        _lowtide.answer_workspaces()
    except RuntimeError as error:
        warnings.warn(f"torch.backends.cudnn.benchmark will not work: {error}", stacklevel=3)
    parity.provide()
    steps.follow()
    failures.say_at_exit()
