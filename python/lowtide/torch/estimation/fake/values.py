"""Answers what Python asks of a tensor's value beyond the dispatcher: lists, arrays and copies of fake tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from lowtide.torch.estimation.fake.device import replace
from lowtide.torch.estimation.fake.shadow import LARGEST, Shadow
from lowtide.torch.estimation.tracing.watcher import Watcher


def imitation(tensor: torch.Tensor, device: torch.device) -> Any:
    """A fake tensor like a real one, on a device, with a copy of its values where it is small."""
    fake = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
    if tensor.numel() <= LARGEST and tensor.device.type == "cpu" and not isinstance(tensor, FakeTensor):
        with _disable_current_modes():
            value = tensor.detach().clone()
        fake.lowtide_shadow = Shadow.known(value)  # type: ignore[attr-defined]
    if tensor.requires_grad:
        fake.requires_grad_()
    return fake


FINITE = {"isnan": False, "isinf": False, "isposinf": False, "isneginf": False, "isfinite": True}
"""What these say of numbers that nobody knows: a program that stops at others would not have come this far."""


@contextlib.contextmanager
def values(watcher: Watcher) -> Iterator[None]:
    """Takes such answers from the shadows until the block ends."""

    def through(name: str) -> Any:
        native = getattr(torch.Tensor, name)

        def answer(self: Any, *arguments: Any, **keywords: Any) -> Any:
            if not isinstance(self, FakeTensor):
                return native(self, *arguments, **keywords)
            value = watcher.value_of(self, name)
            with _disable_current_modes():
                return native(value, *arguments, **keywords)

        return answer

    def deep_copy(self: Any, memo: dict[int, Any]) -> Any:
        if not isinstance(self, FakeTensor):
            memo[id(self)] = imitation(self, self.device)
        if id(self) not in memo:
            with torch.no_grad():
                copy = self.clone()
            memo[id(self)] = nn.Parameter(copy, self.requires_grad) if isinstance(self, nn.Parameter) else copy
        return memo[id(self)]

    native_format = torch.Tensor.__format__

    def shown(self: Any, form: str) -> str:
        if not isinstance(self, FakeTensor) or self.dim() > 0:
            return native_format(self, form)
        shadow = watcher.shadow_of(self) or Shadow.made_up((), self.dtype)
        with _disable_current_modes():
            return format(shadow.resolve(watcher.dice).item(), form)

    def judged(owner: Any, name: str) -> Any:
        native = getattr(owner, name)

        def answer(tensor: Any, *arguments: Any, **keywords: Any) -> Any:
            result = native(tensor, *arguments, **keywords)
            if isinstance(result, FakeTensor) and is_made_up(tensor):
                with _disable_current_modes():
                    value = torch.tensor(FINITE[name]).expand(result.shape)
                result.lowtide_shadow = Shadow.known(value)  # type: ignore[attr-defined]
            return result

        return answer

    def is_made_up(tensor: Any) -> bool:
        shadow = watcher.shadow_of(tensor)
        if shadow is not None:
            shadow.resolve(watcher.dice)
        return shadow is None or shadow.is_assumed

    native_unscale = torch._amp_foreach_non_finite_check_and_unscale_

    def unscale(gradients: Any, found: Any, inverse: Any) -> None:
        native_unscale(gradients, found, inverse)
        with _disable_current_modes():
            value = torch.zeros(found.shape, dtype=found.dtype)
        found.lowtide_shadow = Shadow.known(value)

    with contextlib.ExitStack() as stack:
        replace(stack, torch.Tensor, "__deepcopy__", deep_copy)
        replace(stack, torch.Tensor, "__format__", shown)
        replace(stack, torch.Tensor, "pin_memory", lambda self, *arguments, **keywords: self)
        replace(stack, torch, "_amp_foreach_non_finite_check_and_unscale_", unscale)
        for name in FINITE:
            replace(stack, torch.Tensor, name, judged(torch.Tensor, name))
            replace(stack, torch, name, judged(torch, name))
        for name in ("tolist", "numpy", "__array__"):
            replace(stack, torch.Tensor, name, through(name))
        yield
