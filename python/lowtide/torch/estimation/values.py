"""Answers what Python asks of a tensor's value beyond the dispatcher: lists, arrays and copies of fake tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from lowtide.torch.estimation.pretence import replace
from lowtide.torch.estimation.watcher import Watcher


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

    native_copy = torch.Tensor.__deepcopy__

    def deep_copy(self: Any, memo: dict[int, Any]) -> Any:
        if not isinstance(self, FakeTensor):
            return native_copy(self, memo)
        if id(self) not in memo:
            with torch.no_grad():
                copy = self.clone()
            memo[id(self)] = nn.Parameter(copy, self.requires_grad) if isinstance(self, nn.Parameter) else copy
        return memo[id(self)]

    with contextlib.ExitStack() as stack:
        replace(stack, torch.Tensor, "__deepcopy__", deep_copy)
        for name in ("tolist", "numpy", "__array__"):
            replace(stack, torch.Tensor, name, through(name))
        yield
