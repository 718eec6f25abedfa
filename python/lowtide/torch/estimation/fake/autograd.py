"""Keeps autograd from taking fake tensors for tensors on a real device: its nodes would look for streams of a device
that is not
there. Nodes are made while C++ hears that tensors are on the CPU; everything else hears of the GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd.function import BackwardCFunction
from torch.utils._pytree import tree_leaves

from lowtide.torch.estimation.fake.device import replace
from lowtide.torch.estimation.tracing.watcher import Watcher


def accumulator(watcher: Watcher, leaf: torch.Tensor) -> Any:
    """The node that gathers the gradient of `leaf`; it must be kept as long as it is to be used."""
    watcher.is_hosted = True
    try:
        with torch.enable_grad():
            return leaf.view_as(leaf).grad_fn.next_functions[0][0]  # type: ignore[union-attr]
    finally:
        watcher.is_hosted = False


@contextlib.contextmanager
def autograd(watcher: Watcher) -> Iterator[None]:
    """Has autograd make its nodes as they must be, until the block ends."""
    native_requires = torch.Tensor.requires_grad_
    native_flag: Any = torch._C.TensorBase.requires_grad
    native_apply = vars(torch.autograd.Function)["apply"]
    native_backward = BackwardCFunction.apply

    def requires_grad_(self: Any, requires_grad: bool = True) -> Any:
        native_requires(self, requires_grad)
        hold(self)
        return self

    def set_flag(self: Any, requires_grad: bool) -> None:
        native_flag.__set__(self, requires_grad)
        hold(self)

    def hold(leaf: Any) -> None:
        if leaf.requires_grad and isinstance(leaf, FakeTensor) and leaf.is_leaf:
            watcher.leaves.append(accumulator(watcher, leaf))

    def go_back(self: Any, *gradients: Any) -> Any:
        # What a function's backward pass made leaves of, as a reentrant checkpoint does, dies with it.
        before = len(watcher.leaves)
        try:
            return native_backward(self, *gradients)
        finally:
            del watcher.leaves[before:]

    def apply(cls: Any, *arguments: Any, **keywords: Any) -> Any:
        forward = cls.forward

        def announced(*inner: Any, **named: Any) -> Any:
            result = forward(*inner, **named)
            watcher.announce([leaf for leaf in tree_leaves(result) if isinstance(leaf, FakeTensor)])
            return result

        with contextlib.ExitStack() as stack:
            replace(stack, cls, "forward", staticmethod(announced))
            return native_apply.__get__(None, cls)(*arguments, **keywords)

    with contextlib.ExitStack() as stack:
        replace(stack, torch.Tensor, "requires_grad_", requires_grad_)
        replace(stack, torch.Tensor, "requires_grad", property(native_flag.__get__, set_flag))
        replace(stack, BackwardCFunction, "apply", go_back)
        replace(stack, torch.autograd.Function, "apply", classmethod(apply))
        yield
