"""Lowtide under PyTorch.

    import lowtide.torch
    lowtide.torch.install()      # before CUDA starts

From then on tensors on CUDA devices come from Lowtide's arena: steps are learned and planned, and what is reserved
stays close to what is in use. Nothing else of a program changes.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from lowtide import _lowtide
from lowtide._lowtide import step
from lowtide.torch.reporting import Report, report
from lowtide.torch.sizes import size

if TYPE_CHECKING:
    from lowtide.torch.estimation import Estimate, estimate
    from lowtide.torch.recording import record

__all__ = [
    "Estimate",
    "Report",
    "estimate",
    "install",
    "record",
    "report",
    "reset_peak",
    "stats",
    "step",
    "trim",
]

# What imports PyTorch is imported when it is asked for.
_LATER = {"Estimate": "estimation", "estimate": "estimation", "record": "recording"}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"lowtide.torch.{_LATER[name]}"), name)


def install(
    *,
    device: bool = True,
    cpu: bool = False,
    pinned: bool = False,
    limit: int | str | None = None,
    learn: bool = True,
    plans: str | os.PathLike[str] | None = None,
    peers: bool = True,
    history: bool = True,
) -> None:
    """Serves PyTorch's memory from now on.

    `device`: tensors on CUDA devices; CUDA must not have started. `cpu`: large tensors of the CPU. `pinned`: pinned
    memory, at its exact size. `limit`: the most that is taken of each device, in bytes or such as "40GiB". `learn`:
    learn the steps of the program and plan them; with `plans`, a folder, plans are remembered from run to run. `peers`:
    let devices reach each other's memory. `history`: keep the last steps for `report()`.
    """
    if not (device or cpu or pinned):
        raise ValueError("nothing is to be served\nhint: leave `device` on, or ask for `cpu` or `pinned`")
    if limit is not None and not device:
        raise ValueError("a limit is for devices, which are not to be served\nhint: leave `limit` out")
    if device:
        from lowtide.torch import device as devices

        devices.serve(
            limit=None if limit is None else size(limit), learn=learn, plans=plans, peers=peers, history=history
        )
    if cpu:
        from lowtide.torch import host

        host.serve_cpu(learn=learn)
    if pinned:
        from lowtide.torch import host

        host.serve_pinned()


def stats(device: Any = None) -> dict[str, Any]:
    """What a device holds and did, by number: what is requested, allocated and reserved and the peaks of each, in
    bytes; how the plans did; what was asked of the driver. Empty where the device was not used yet. `"cpu"`: what the
    host's arena holds, where large CPU tensors are served."""
    if str(device) == "cpu":
        return _lowtide.cpu_stats() or {}
    return _lowtide.device_stats(_index(device)) or {}


def reset_peak(device: Any = None) -> None:
    """Lets the peaks of a device begin at what is there now."""
    _lowtide.reset_peaks(_index(device))


def trim() -> int:
    """Gives back whatever can be given back, on devices and on the host, and says how many bytes."""
    return _lowtide.trim_devices() + _lowtide.trim_cpu()


def _index(device: Any) -> int:
    if isinstance(device, int):
        return device
    import torch

    index = None if device is None else torch.device(device).index
    if index is not None:
        return index
    return torch.cuda.current_device() if torch.cuda.is_initialized() else 0
