"""The model and the example as the traced step sees them: fake, on the device, and apart from the user's own."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_map

from lowtide.torch.estimation.answer.example import remade
from lowtide.torch.estimation.fake.compiled import make_leaves, note_compiled
from lowtide.torch.estimation.fake.device import replace
from lowtide.torch.estimation.fake.values import imitation
from lowtide.torch.estimation.tracing.watcher import Watcher


def fake_model(model: Any, watcher: Watcher, device: torch.device) -> nn.Module:
    """A model on the device whose parameters are fake: built by `model`, or a likeness of it."""
    if isinstance(model, nn.Module):
        note_compiled(model, watcher)
        model = likeness(model)
    elif callable(model):
        stand_ins: dict[int, tuple[nn.Module, nn.Module]] = {}
        with converting(stand_ins):
            model = model()
        if isinstance(model, nn.Module) and not is_fake(model):
            model = likeness(model, stand_ins)
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


def is_fake(model: nn.Module) -> bool:
    """Whether all tensors of a module are fake: it was built in the trace, and nobody else has it."""
    return all(isinstance(tensor, FakeTensor) for tensor in [*model.parameters(), *model.buffers()])


def likeness(model: nn.Module, stand_ins: dict[int, tuple[nn.Module, nn.Module]] | None = None) -> nn.Module:
    """A copy of a module in which every tensor is fake, and on the CPU unless it was fake before; modules that have
    stand-ins already are replaced by these."""
    memo: dict[int, Any] = {key: stand_in for key, (_, stand_in) in (stand_ins or {}).items()}
    for tensor in [*model.parameters(), *model.buffers()]:
        if isinstance(tensor, FakeTensor) and stand_ins is not None:
            memo[id(tensor)] = tensor
        elif isinstance(tensor, nn.Parameter):
            fake = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
            memo[id(tensor)] = nn.Parameter(fake, tensor.requires_grad)
        else:
            memo[id(tensor)] = imitation(tensor, torch.device("cpu"))
    with torch.enable_grad():
        copied = copy.deepcopy(model, memo)
    make_leaves(copied)
    return copied


def fake_example(example: Any, device: torch.device) -> Any:
    """The example on the device: fake tensors, with the values of the small ones in their shadows."""

    made: dict[int, Any] = {}  # emptied in the end, because `faked` is part of a cycle and outlives this call

    def faked(leaf: Any) -> Any:
        if isinstance(leaf, Mapping):
            return remade(leaf, lambda part: tree_map(faked, part))
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if id(leaf) not in made:
            made[id(leaf)] = leaf.to(device) if isinstance(leaf, FakeTensor) else imitation(leaf, device)
        return made[id(leaf)]

    try:
        return tree_map(faked, example)
    finally:
        made.clear()


@contextlib.contextmanager
def converting(stand_ins: dict[int, tuple[nn.Module, nn.Module]] | None = None) -> Iterator[None]:
    """Lets `Module.to` and its like replace fake parameters, which PyTorch itself cannot. A module that is not fake is
    left as it is: a stand-in is converted and returned."""
    known_stand_ins = {} if stand_ins is None else stand_ins
    made: dict[tuple[int, int], Any] = {}
    depth = 0

    def apply(self: nn.Module, function: Callable[[Any], Any], recurse: bool = True) -> nn.Module:
        nonlocal depth
        if depth == 0 and not is_fake(self):
            if id(self) not in known_stand_ins:
                known_stand_ins[id(self)] = self, likeness(self, known_stand_ins)
            self = known_stand_ins[id(self)][1]
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
    """The model's output for an example: a mapping is keywords, a tuple or list is arguments, anything else is the only
    argument."""
    if isinstance(example, Mapping):
        return model(**example)
    if isinstance(example, (tuple, list)):
        return model(*example)
    return model(example)


def loss_of(output: Any) -> Any:
    """The loss in a model's output: its `loss`, the sum of the scalars in it, or the mean of its numbers."""
    loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if isinstance(loss, torch.Tensor):
        return loss
    if isinstance(output, Mapping):
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
