"""What people write to keep activations on the host: copied out on one stream, back on another, a few ahead."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import torch

# Smaller tensors stay.
SMALLEST = 1 << 20
# How many are brought back before they are needed.
AHEAD = 5


class Parked:
    """A tensor on its way to the host and back."""

    def __init__(self, number: int, host: torch.Tensor, shape: torch.Size, left: torch.cuda.Event):
        self.number, self.host, self.shape, self.left = number, host, shape, left
        self.back: torch.Tensor | None = None
        self.arrived: torch.cuda.Event | None = None


class StreamedOffload(torch.autograd.graph.saved_tensors_hooks):
    """Parks what the forward pass saves on a CUDA device; one object serves all steps."""

    def __init__(self, parameters: Iterable[torch.Tensor]):
        self.stay = {parameter.untyped_storage().data_ptr() for parameter in parameters}
        self.idle: dict[Any, list[torch.Tensor]] = {}
        self.parked: list[Parked] = []
        super().__init__(self.park, self.fetch)

    @cached_property
    def leaving(self) -> torch.cuda.Stream:
        return torch.cuda.Stream()

    @cached_property
    def returning(self) -> torch.cuda.Stream:
        return torch.cuda.Stream()

    def __enter__(self) -> None:
        self.parked = []
        super().__enter__()

    def park(self, tensor: torch.Tensor) -> torch.Tensor | Parked:
        small = tensor.numel() * tensor.element_size() < SMALLEST
        stays = tensor.untyped_storage().data_ptr() in self.stay or not tensor.is_contiguous()
        if not tensor.is_cuda or small or stays:
            return tensor
        idle = self.idle.get((tensor.numel(), tensor.dtype))
        host = idle.pop() if idle else torch.empty(tensor.numel(), dtype=tensor.dtype, pin_memory=True)
        self.leaving.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.leaving):
            host.copy_(tensor.view(-1), non_blocking=True)
            left = self.leaving.record_event()
        tensor.record_stream(self.leaving)
        parked = Parked(len(self.parked), host, tensor.shape, left)
        self.parked.append(parked)
        return parked

    def bring(self, parked: Parked) -> None:
        if parked.back is None and parked.host is not None:
            self.returning.wait_event(parked.left)
            with torch.cuda.stream(self.returning):
                parked.back = torch.empty(parked.shape, dtype=parked.host.dtype, device="cuda")
                parked.back.copy_(parked.host.view(parked.shape), non_blocking=True)
                parked.arrived = self.returning.record_event()

    def fetch(self, saved: torch.Tensor | Parked) -> torch.Tensor:
        if isinstance(saved, torch.Tensor):
            return saved
        self.bring(saved)
        for number in range(saved.number - 1, max(-1, saved.number - 1 - AHEAD), -1):
            self.bring(self.parked[number])
        torch.cuda.current_stream().wait_event(saved.arrived)
        saved.back.record_stream(torch.cuda.current_stream())
        back, saved.back = saved.back, None
        self.idle.setdefault((saved.host.numel(), saved.host.dtype), []).append(saved.host)
        saved.host = None
        return back
