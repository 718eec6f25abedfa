"""The model and the example as the traced step sees them: fake, on the device, and apart from the user's own."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_map

from lowtide.torch.estimation.pretence import replace
from lowtide.torch.estimation.shadow import LARGEST, Shadow
from lowtide.torch.estimation.watcher import Watcher


def fake_model(model: Any, watcher: Watcher, device: torch.device) -> nn.Module:
    """A model on the device whose parameters are fake: built by `model`, or a likeness of it."""
    if isinstance(model, nn.Module):
        model = likeness(model)
    elif callable(model):
        with converting():
            model = model()
    if not isinstance(model, nn.Module):
        raise TypeError(f"the model is a {type(model).__name__}, not a torch.nn.Module\n"
                        "hint: give a module, or a function without arguments that builds one")
    with converting():
        model.to(device)
    parameters = list(model.parameters())
    for parameter in parameters:
        parameter.__dict__.pop("lowtide_shadow", None)
    watcher.label(parameters, "parameter")
    watcher.label(model.buffers(), "buffer")
    return model


def likeness(model: nn.Module) -> nn.Module:
    """A copy of a module in which every tensor is fake and on the CPU."""
    memo: dict[int, Any] = {}
    for tensor in [*model.parameters(), *model.buffers()]:
        fake = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
        if isinstance(tensor, nn.Parameter):
            fake = nn.Parameter(fake, tensor.requires_grad)
        elif tensor.numel() <= LARGEST and tensor.device.type == "cpu" and not isinstance(tensor, FakeTensor):
            fake.lowtide_shadow = Shadow.known(tensor)  # type: ignore[attr-defined]
        memo[id(tensor)] = fake
    return copy.deepcopy(model, memo)


def fake_example(example: Any, device: torch.device) -> Any:
    """The example on the device: fake tensors, with the values of the small ones in their shadows."""

    made: dict[int, Any] = {}

    def faked(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if id(leaf) not in made:
            made[id(leaf)] = leaf.to(device) if isinstance(leaf, FakeTensor) else likewise(leaf)
        return made[id(leaf)]

    def likewise(leaf: torch.Tensor) -> Any:
        fake = torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device=device)
        if leaf.numel() <= LARGEST and leaf.device.type == "cpu":
            fake.lowtide_shadow = Shadow.known(leaf)  # type: ignore[attr-defined]
        if leaf.requires_grad:
            fake.requires_grad_()
        return fake

    return tree_map(faked, example)


@contextlib.contextmanager
def converting() -> Iterator[None]:
    """Lets `Module.to` and its like replace fake parameters, which PyTorch itself cannot."""
    made: dict[tuple[int, int], Any] = {}
    depth = 0

    def apply(self: nn.Module, function: Callable[[Any], Any], recurse: bool = True) -> nn.Module:
        nonlocal depth
        depth += 1
        try:
            if recurse:
                for module in self.children():
                    module._apply(function)
            for name, parameter in self._parameters.items():
                if parameter is not None:
                    self._parameters[name] = converted(parameter, function)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = converted(buffer, function)
        finally:
            depth -= 1
            if depth == 0:
                made.clear()
        return self

    def converted(tensor: Any, function: Callable[[Any], Any]) -> Any:
        known = made.get((id(tensor), id(function)))
        if known is not None:
            return known[1]
        with torch.no_grad():
            result = function(tensor)
        if isinstance(tensor, nn.Parameter) and result is not tensor:
            shadow = result.__dict__.get("lowtide_shadow")
            result = nn.Parameter(result, tensor.requires_grad)
            if shadow is not None:
                result.lowtide_shadow = shadow
        made[id(tensor), id(function)] = (tensor, result)
        return result

    with contextlib.ExitStack() as stack:
        replace(stack, nn.Module, "_apply", apply)
        yield


def call(model: Callable[..., Any], example: Any) -> Any:
    """The model's output for an example: a dict is keywords, a tuple or list is arguments, anything else is the only
    argument."""
    if isinstance(example, dict):
        return model(**example)
    if isinstance(example, (tuple, list)):
        return model(*example)
    return model(example)


def loss_of(output: Any) -> Any:
    """The loss in a model's output: its `loss`, the sum of the scalars in it, or the mean of its numbers."""
    loss = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    if isinstance(loss, torch.Tensor):
        return loss
    if isinstance(output, dict):
        output = list(output.values())
    leaves = output if isinstance(output, (tuple, list)) else [output]
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]
    scalars = [leaf for leaf in tensors if leaf.dim() == 0]
    if scalars:
        return sum(scalars)
    if tensors:
        return tensors[0].mean()
    kind = type(output).__name__
    raise TypeError(f"no loss in the model's output, a {kind}\nhint: give `loss`, a function of the output")
