"""Recurrent layers as cuDNN serves them: one call for all layers and steps, and a reserve that the backward pass
needs. The reserve is what cuDNN was seen to take; its workspace depends on the kernels that it picks and is near."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from lowtide.torch.estimation.fake.device import MULTIPROCESSORS, replace
from lowtide.torch.estimation.tracing.watcher import Watcher

KEPT = {"lstm": 5, "gru": 6, "rnn_tanh": 1, "rnn_relu": 1}
"""The values of each unit, step and layer that the backward pass needs."""

WORKED_ON = {"lstm": 6, "gru": 5, "rnn_tanh": 4, "rnn_relu": 4}
"""About how many values of each unit and step the workspace holds, besides a copy of the weights."""

BLAS_WORKSPACE = 8 << 20
"""About what cuDNN's own multiplications take for each layer and direction."""

DROPOUT_STATES = MULTIPROCESSORS * 2048 * 24
"""The state of a random generator for each thread of the device."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides how much memory a recurrent network takes, besides its data."""

    kind: str
    layers: int
    directions: int
    is_training: bool
    dropout: float

    def reserve(self, values: int, value_bytes: int) -> int:
        """The bytes kept for the backward pass; `values` are the outputs of one layer. What lies between two layers is
        kept too, and which of it was dropped."""
        if not self.is_training:
            return 0
        between = self.layers - 1
        dropped = values * self.directions * between // 8 if self.dropout else 0
        return values * value_bytes * (KEPT[self.kind] * self.layers + between) + dropped + 256

    def workspace(self, values: int, value_bytes: int, weights: int) -> int:
        """The bytes that a pass works on."""
        copies = WORKED_ON[self.kind] + self.directions - 1
        if self.is_training and self.dropout and self.layers > 1 and self.kind in ("lstm", "gru"):
            copies += 1
        return (values * copies + weights) * value_bytes + BLAS_WORKSPACE * self.layers * self.directions


class Recurrent(torch.autograd.Function):
    """All layers of a recurrent network."""

    @staticmethod
    def forward(ctx: Any, shape: Shape, data: Any, count: int, *tensors: Any) -> Any:
        states, weights = tensors[:count], tensors[count:]
        rows = data.numel() // max(data.shape[-1], 1)
        dense = data.contiguous()
        output = data.new_empty(*data.shape[:-1], states[0].shape[-1] * shape.directions)
        last = [torch.empty_like(state) for state in states]
        values = rows * states[-1].shape[-1] * shape.directions
        ctx.workspace = shape.workspace(values, data.element_size(), sum(weight.numel() for weight in weights))
        workspace = data.new_empty(ctx.workspace, dtype=torch.uint8)
        reserve = data.new_empty(shape.reserve(values, data.element_size()), dtype=torch.uint8)
        del dense, workspace
        ctx.save_for_backward(data, output, reserve, *states, *weights)
        ctx.count = count
        return (output, *last)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        data, _output, _reserve, *rest = ctx.saved_tensors
        states, weights = rest[: ctx.count], rest[ctx.count :]
        by_data = torch.empty_like(data, memory_format=torch.contiguous_format)
        by_states = [torch.empty_like(state) for state in states]
        workspace = data.new_empty(ctx.workspace, dtype=torch.uint8)
        del workspace
        flat = data.new_zeros(sum(weight.numel() for weight in weights))
        by_weights, offset = [], 0
        for weight in weights:
            by_weights.append(flat[offset : offset + weight.numel()].view(weight.shape))
            offset += weight.numel()
        workspace = data.new_empty(ctx.workspace, dtype=torch.uint8)
        del workspace
        return (None, by_data, None, *by_states, *by_weights)


@contextlib.contextmanager
def recurrence(watcher: Watcher) -> Iterator[None]:
    """Has recurrent layers on the device run as here until the block ends."""
    lasting: list[Any] = []

    def served(kind: str, native: Callable[..., Any]) -> Callable[..., Any]:
        def run(data: Any, second: Any, *rest: Any) -> Any:
            if data.device.type != "cuda":
                return native(data, second, *rest)
            is_packed = isinstance(second, torch.Tensor) and isinstance(rest[1], (list, tuple)) and len(rest) == 7
            hidden, weights = (rest[0], rest[1]) if is_packed else (second, rest[0])
            layers, dropout, train, bidirectional = rest[3:7] if is_packed else rest[2:6]
            is_batch_first = False if is_packed else rest[6]
            states = list(hidden) if isinstance(hidden, (list, tuple)) else [hidden]
            if torch.is_autocast_enabled("cuda"):
                kind_of_number = torch.get_autocast_dtype("cuda")
                data, states = data.to(kind_of_number), [state.to(kind_of_number) for state in states]
                weights = [weight.to(kind_of_number) for weight in weights]
            if is_batch_first:
                data = data.transpose(0, 1)
            text = f"what cuDNN works on in nn.{kind.split('_')[0].upper()} is known to about a tenth"
            watcher.assumptions[text] = watcher.assumptions.get(text, 0) + 1
            if dropout and train and not lasting:
                lasting.append(data.new_empty(DROPOUT_STATES, dtype=torch.uint8))
            shape = Shape(kind, layers, 2 if bidirectional else 1, bool(train), dropout)
            output, *last = Recurrent.apply(shape, data, len(states), *states, *weights)
            return (output.transpose(0, 1) if is_batch_first else output, *last)

        return run

    with contextlib.ExitStack() as stack:
        for kind in KEPT:
            run = served(kind, getattr(torch._VF, kind))
            replace(stack, torch._VF, kind, run)
            impls = getattr(nn.modules.rnn, "_rnn_impls", {})
            if kind.upper() in impls:
                stack.callback(impls.__setitem__, kind.upper(), impls[kind.upper()])
                impls[kind.upper()] = run
        replace(stack, nn.RNNBase, "flatten_parameters", lambda self: None)
        yield
