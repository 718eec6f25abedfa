"""Has what `torch.compile` or TorchScript compiled run operation by operation, as it was written: there is no device to
compile for, and compilers take fake tensors for their own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
import torch._dynamo.eval_frame as eval_frame
from torch import nn

from lowtide.torch.estimation.fake.device import replace
from lowtide.torch.estimation.tracing.watcher import Watcher

COMPILED = "torch.compile: code is traced as it was written; compiled it may take less, and with CUDA graphs more"
SCRIPTED = "TorchScript: code is traced as it was written; where it is fused it may take less"


@contextlib.contextmanager
def uncompiled(watcher: Watcher) -> Iterator[None]:
    """Runs compiled code as it was written until the block ends, and notes where it did."""
    scripted = torch.jit.ScriptFunction
    native_call, native_module = scripted.__call__, torch.jit.ScriptModule.__call__

    def eager(callback: Any) -> None:
        if callback not in (None, False):
            watcher.assumptions.setdefault(COMPILED, 1)

    def call_function(self: Any, *arguments: Any, **keywords: Any) -> Any:
        watcher.assumptions.setdefault(SCRIPTED, 1)
        written = getattr(self, "_torchdynamo_inline", None)
        return native_call(self, *arguments, **keywords) if written is None else written(*arguments, **keywords)

    def call_module(self: Any, *arguments: Any, **keywords: Any) -> Any:
        watcher.assumptions.setdefault(SCRIPTED, 1)
        return native_module(self, *arguments, **keywords)

    with contextlib.ExitStack() as stack:
        if (stance := getattr(torch.compiler, "set_stance", None)) is not None:
            stack.enter_context(stance("force_eager"))
        replace(stack, eval_frame, "_callback_from_stance", eager)
        stack.enter_context(torch.jit.optimized_execution(False))
        replace(stack, scripted, "__call__", call_function)
        replace(stack, torch.jit.ScriptModule, "__call__", call_module)
        yield


def note_compiled(model: nn.Module, watcher: Watcher) -> None:
    """Notes that parts of a model are compiled in place, which its copies are not."""
    if any(getattr(module, "_compiled_call_impl", None) is not None for module in model.modules()):
        watcher.assumptions.setdefault(COMPILED, 1)


def make_leaves(model: nn.Module) -> None:
    """Gives the scripted parts of a copied model parameters of their own: their copies are results of an operation."""
    made: dict[int, tuple[Any, nn.Parameter]] = {}
    for module in model.modules():
        if isinstance(module, torch.jit.ScriptModule):
            for name, copied in list(module._parameters.items()):
                if id(copied) not in made:
                    empty = torch.empty_strided(copied.shape, copied.stride(), dtype=copied.dtype, device="cpu")
                    made[id(copied)] = copied, nn.Parameter(empty, copied.requires_grad)
                module._parameters[name] = made[id(copied)][1]
