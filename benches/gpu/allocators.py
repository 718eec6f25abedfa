"""The allocators that are measured side by side. One is started per process, before PyTorch uses a device; it then says
what it requested and reserved, and Lowtide's also how long its hooks took and what it asked of the driver."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

CONFIGURATIONS = {
    "native": "",
    "expandable": "expandable_segments:True",
    "async": "backend:cudaMallocAsync",
    "lowtide": "",
    "lowtide-online": "",
    "aimdo": "backend:cudaMallocAsync",
}
OURS = ["lowtide", "lowtide-online"]
USUAL = ["native", "expandable", "async", *OURS]

# Chosen when PyTorch is loaded, and not when the first device is used.
LOADED = {"async", "aimdo"}

# What an allocator needs besides PyTorch.
_PACKAGES = {"lowtide": "lowtide", "lowtide-online": "lowtide", "aimdo": "comfy_aimdo"}


def missing_package(name: str) -> str | None:
    """The package that an allocator needs and that is not installed."""
    package = _PACKAGES.get(name)
    return package if package and importlib.util.find_spec(package) is None else None


def start(name: str) -> Allocator:
    """Makes an allocator that of this process. PyTorch must not have used a device, nor for some have been imported."""
    os.environ["PYTORCH_ALLOC_CONF"] = os.environ["PYTORCH_CUDA_ALLOC_CONF"] = CONFIGURATIONS[name]
    if name in OURS:
        return Lowtide(learn=name == "lowtide")
    allocator = Aimdo() if name == "aimdo" else Allocator()
    if name not in LOADED and allocator.is_expandable() != (name == "expandable"):
        raise RuntimeError(f"PyTorch did not take the settings of `{name}`")
    return allocator


class Allocator:
    """One of PyTorch's own, by the statistics that PyTorch keeps."""

    def __init__(self) -> None:
        import torch

        self.cuda = torch.cuda
        self.cuda.init()

    def begin_step(self, step: int) -> None:
        """Called before step `step`, which counts from 1."""

    def end_step(self, step: int) -> None:
        """Called when a step was made; the device may still be at work."""

    def synchronize(self) -> None:
        self.cuda.synchronize()

    def is_expandable(self) -> bool:
        """Whether PyTorch's own allocator has expandable segments."""
        return bool(self.cuda.memory._snapshot()["allocator_settings"]["expandable_segments"])

    def reset_peaks(self) -> None:
        self.cuda.reset_peak_memory_stats()

    def peaks(self) -> dict[str, int]:
        """The most that was requested, not yet done (requested, or freed while other streams still use it) and
        reserved, in bytes."""
        statistics = self.cuda.memory_stats()
        found = {name: statistics.get(f"{name}_bytes.all.peak", 0) for name in ("requested", "active", "reserved")}
        # The asynchronous allocator does not count what was requested.
        return found | {"requested": found["requested"] or statistics.get("allocated_bytes.all.peak", 0)}

    def beyond_reserved(self) -> int:
        """What the driver says is taken of the device, less what is reserved."""
        free, total = self.cuda.mem_get_info()
        return total - free - self.cuda.memory_reserved()

    def counters(self) -> dict[str, int]:
        """Numbers that grow; nothing where the allocator does not count."""
        return {}

    def remarks(self) -> dict[str, Any]:
        """Whatever else is worth keeping."""
        return {}


class Lowtide(Allocator):
    """Lowtide with its default settings, apart from the history for `report()`; with or without learning."""

    def __init__(self, learn: bool) -> None:
        import lowtide.torch

        self.lowtide = lowtide
        lowtide.torch.install(history=False, learn=learn)
        lowtide._lowtide.measure_hooks(True)
        super().__init__()

    def counters(self) -> dict[str, int]:
        stats = self.lowtide.torch.stats()
        if not stats:
            return {"hook_ns": 0, "driver_calls": 0}
        hooks = stats["alloc_ns"] + stats["free_ns"] + stats["record_stream_ns"]
        return {"hook_ns": hooks, "driver_calls": stats["driver_calls"]}

    def remarks(self) -> dict[str, Any]:
        return {"stats": self.lowtide.torch.stats(), "warnings": self.lowtide._lowtide.device_warnings()}


class Aimdo(Allocator):
    """comfy-aimdo's memory compiler over PyTorch's asynchronous allocator: step 1 runs as it is, step 2 is recorded,
    and those after it are replayed."""

    def __init__(self) -> None:
        from comfy_aimdo import control

        self.control, self.graph, self.breaks = control, None, 0
        loaded = control.init()
        super().__init__()
        if not (loaded and control.init_device(0)):
            raise RuntimeError("comfy-aimdo did not start on device 0")

    def begin_step(self, step: int) -> None:
        if step == 2:
            self.graph = self.control.record(self.cuda.current_stream())
        elif self.graph:
            self.graph.push()

    def end_step(self, step: int) -> None:
        if self.graph:
            self.breaks += self.graph.pop()

    def peaks(self) -> dict[str, int]:
        used, held = (self.graph.peak_used, self.graph.physical_bytes) if self.graph else (0, 0)
        outside = super().peaks()
        return {name: outside[name] + (held if name == "reserved" else used) for name in outside}

    def beyond_reserved(self) -> int:
        return super().beyond_reserved() - (self.graph.physical_bytes if self.graph else 0)

    def remarks(self) -> dict[str, Any]:
        return {"graph_breaks": self.breaks}
