"""Recurrent layers as cuDNN serves them: one call for all layers and steps, and a reserve that the backward pass
needs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from lowtide.torch.estimation.pretence import replace
from lowtide.torch.estimation.watcher import Watcher

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


class Recurrent(torch.autograd.Function):
    """All layers of a recurrent network."""

    @staticmethod
    def forward(ctx: Any, shape: tuple[str, int, int, bool], data: Any, count: int, *tensors: Any) -> Any:
        kind, layers, directions, is_training = shape
        states, weights = tensors[:count], tensors[count:]
        hidden = states[0].shape[-1]
        rows = data.numel() // max(data.shape[-1], 1)
        dense = data.contiguous()
        output = data.new_empty(*data.shape[:-1], hidden * directions)
        last = [torch.empty_like(state) for state in states]
        per_row = (GATES[kind] + (1 if kind != "rnn_tanh" and kind != "rnn_relu" else 0)) * layers + (layers - 1)
        kept = rows * hidden * directions * per_row * data.element_size() if is_training else 0
        reserve = data.new_empty(kept, dtype=torch.uint8)
        workspace = data.new_empty(rows * hidden * directions * GATES[kind])
        del dense, workspace
        ctx.save_for_backward(data, output, reserve, *states, *weights)
        ctx.count, ctx.gates = count, GATES[kind]
        return (output, *last)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        data, output, reserve, *rest = ctx.saved_tensors
        states, weights = rest[: ctx.count], rest[ctx.count :]
        by_data = torch.empty_like(data, memory_format=torch.contiguous_format)
        by_states = [torch.empty_like(state) for state in states]
        workspace = data.new_empty(output.numel() * ctx.gates)
        flat = data.new_zeros(sum(weight.numel() for weight in weights))
        by_weights, offset = [], 0
        for weight in weights:
            by_weights.append(flat[offset : offset + weight.numel()].view(weight.shape))
            offset += weight.numel()
        del workspace
        return (None, by_data, None, *by_states, *by_weights)


@contextlib.contextmanager
def recurrence(watcher: Watcher) -> Iterator[None]:
    """Has recurrent layers on the device run as here until the block ends."""

    def served(kind: str, native: Callable[..., Any]) -> Callable[..., Any]:
        def run(data: Any, second: Any, *rest: Any) -> Any:
            if data.device.type != "cuda":
                return native(data, second, *rest)
            is_packed = isinstance(second, torch.Tensor) and isinstance(rest[1], (list, tuple)) and len(rest) == 7
            hidden, weights = (rest[0], rest[1]) if is_packed else (second, rest[0])
            layers, train, bidirectional = (rest[3], rest[5], rest[6]) if is_packed else (rest[2], rest[4], rest[5])
            is_batch_first = False if is_packed else rest[6]
            states = list(hidden) if isinstance(hidden, (list, tuple)) else [hidden]
            if torch.is_autocast_enabled("cuda"):
                kind_of_number = torch.get_autocast_dtype("cuda")
                data, states = data.to(kind_of_number), [state.to(kind_of_number) for state in states]
                weights = [weight.to(kind_of_number) for weight in weights]
            if is_batch_first:
                data = data.transpose(0, 1)
            text = f"what cuDNN keeps of nn.{kind.split('_')[0].upper()} for the backward pass is a guess"
            watcher.assumptions[text] = watcher.assumptions.get(text, 0) + 1
            shape = (kind, layers, 2 if bidirectional else 1, bool(train))
            output, *last = Recurrent.apply(shape, data, len(states), *states, *weights)
            return (output.transpose(0, 1) if is_batch_first else output, *last)

        return run

    with contextlib.ExitStack() as stack:
        for kind in GATES:
            run = served(kind, getattr(torch._VF, kind))
            replace(stack, torch._VF, kind, run)
            impls = getattr(nn.modules.rnn, "_rnn_impls", {})
            if kind.upper() in impls:
                stack.callback(impls.__setitem__, kind.upper(), impls[kind.upper()])
                impls[kind.upper()] = run
        replace(stack, nn.RNNBase, "flatten_parameters", lambda self: None)
        yield
