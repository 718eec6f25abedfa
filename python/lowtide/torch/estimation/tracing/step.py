"""Traces training steps, as the usual loop makes them, on fake tensors."""

from __future__ import annotations

import contextlib
import inspect
import re
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.optim.optimizer as optimizers
from torch._subclasses.fake_tensor import UnsupportedOperatorException
from torch.utils._pytree import tree_leaves

from lowtide.torch.estimation.fake.autograd import accumulator, autograd
from lowtide.torch.estimation.fake.compiled import uncompiled
from lowtide.torch.estimation.fake.device import Refused, fake_mode, pretend, repeatable, replace, untraced
from lowtide.torch.estimation.fake.subject import call, fake_example, fake_model, loss_of
from lowtide.torch.estimation.fake.values import values
from lowtide.torch.estimation.kernels.attention import attention
from lowtide.torch.estimation.kernels.ctc import ctc
from lowtide.torch.estimation.kernels.recurrent import recurrence
from lowtide.torch.estimation.tracing.ledger import Ledger
from lowtide.torch.estimation.tracing.sites import INNER, named
from lowtide.torch.estimation.tracing.watcher import Watcher

DRIVER = r"libcuda|NVIDIA driver|CUDA driver|CUDA error|No CUDA GPUs|PrimaryContext"
"""What errors say that come from a driver that is not there."""


@dataclass
class Task:
    """What is to be traced."""

    model: Any
    examples: list[Any]
    optimizer: Callable[..., Any] | None
    loss: Callable[[Any], Any] | None
    autocast: torch.dtype | None
    train: bool
    device: torch.device
    memory: int
    step: Callable[..., Any] | None = None
    is_brief: bool = False
    """Only the opening: the first step up to its optimizer."""


@dataclass
class Traced:
    """What came of it: the events, and what was made up."""

    ledger: Ledger
    assumptions: dict[str, int]
    sizes: dict[str, int] = field(default_factory=dict)


def trace(task: Task) -> Traced:
    """Traces the steps of `task`."""
    ledger = Ledger()
    with torch.inference_mode(False), repeatable(), pretend(ledger, task.memory), fake_mode() as mode:
        watcher = Watcher(mode, ledger, task.device)
        sizes: dict[str, int] = {}
        with watcher, values(watcher), autograd(watcher), uncompiled(watcher), tracing():
            with attention(), recurrence(watcher), ctc(watcher):
                run(task, watcher, sizes)
    return Traced(ledger, watcher.assumptions, sizes)


def run(task: Task, watcher: Watcher, sizes: dict[str, int]) -> None:
    """The set-up and the usual loop; its variables live as long as they do there."""
    watcher.category = "parameter"
    model = fake_model(task.model, watcher, task.device)
    model.train(task.train)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = task.optimizer(parameters) if task.optimizer is not None and task.train else None
    nodes = [accumulator(watcher, parameter) for parameter in parameters] if task.train else []
    sizes["parameter"] = total(watcher, model.parameters())
    sizes["buffer"] = total(watcher, model.buffers())
    with untraced():
        for example in task.examples:
            watcher.category = "input"
            batch = fake_example(example, task.device)
            watcher.category = "activation"
            if task.step is not None:
                with labelled(watcher, parameters, sizes):
                    task.step(model, batch, optimizer)
            else:
                with torch.set_grad_enabled(task.train), autocasting(task):
                    output = answered(model, batch)
                    if task.train:
                        loss = (task.loss or loss_of)(output)
                if task.train:
                    watcher.category = "backward"
                    loss.backward()
                    label_gradients(watcher, parameters, sizes)
            watcher.ledger.close_opening()
            if task.is_brief:
                return
            if task.step is None and task.train:
                if optimizer is not None:
                    watcher.category = "optimizer temporary"
                    optimizer.step()
                    label_state(watcher, [optimizer], sizes)
                    optimizer.zero_grad(set_to_none=True)
                else:
                    model.zero_grad(set_to_none=True)
            watcher.leaves.clear()
            watcher.ledger.close_step()
    del nodes


def answered(model: Any, batch: Any) -> Any:
    """The model's output, or its own error with a hint."""
    try:
        return call(model, batch)
    except Exception as error:
        if untraceable(error) or isinstance(error, Refused):
            raise
        raise RuntimeError(
            f"the model failed on the example{place_of(error)}: {type(error).__name__}: {error}\n"
            f"hint: {advice(model, batch, error)}"
        ) from error


def advice(model: Any, batch: Any, error: Exception) -> str:
    """What to do about a model's error: how examples are passed only where the model does not take this one."""
    if not takes(model, batch):
        return "a tuple is passed as arguments, a dict as keywords, anything else as the only argument"
    if re.search(DRIVER, str(error)):
        return (
            "this code calls the GPU's driver itself; wrap it with torch.library.custom_op, and give its shapes with "
            "register_fake"
        )
    return "call the model with this example on the CPU to see whether it fails there too"


def takes(model: Any, batch: Any) -> bool:
    """Whether the parameters of a model's `forward` are those that an example has, where they can be told."""
    try:
        signature = inspect.signature(model.forward)
    except (TypeError, ValueError):
        return True
    try:
        call(signature.bind, batch)
    except TypeError:
        return False
    return True


def place_of(error: Exception) -> str:
    """Where in the user's program an error comes from, such as ` at models/llama.py:120 forward`."""
    frames = traceback.extract_tb(error.__traceback__)
    outer = [frame for frame in frames if not frame.filename.startswith(INNER)]
    return f" at {named(outer[-1].filename, outer[-1].lineno, outer[-1].name)}" if outer else ""


@contextlib.contextmanager
def tracing() -> Iterator[None]:
    """Names the operation where one cannot be traced, and says what to do."""
    try:
        yield
    except Exception as error:
        name = untraceable(error)
        if not name:
            raise
        if "::" not in name and "." not in name:
            raise RuntimeError(
                f"the operation {name} cannot be traced: it runs code that is given to it\n"
                "hint: put plain operations in its place, such as scaled_dot_product_attention for flex_attention"
            ) from error
        raise RuntimeError(
            f"the operation {name} cannot be traced: it has no kernel for fake tensors, and none for the CPU\n"
            f"hint: give the shape of its result with torch.library.register_fake(\"{name.rsplit('.', 1)[0]}\")"
        ) from error


def untraceable(error: Exception) -> str:
    """The operation that an error says has no kernel, or nothing."""
    if isinstance(error, UnsupportedOperatorException):
        return str(error.func)
    if not isinstance(error, NotImplementedError):
        return ""
    found = re.match(r"Could not run '([^']+)'|There was no rule registered for \w+ (\w+)", str(error))
    return found[1] or found[2] if found else ""


@contextlib.contextmanager
def labelled(watcher: Watcher, parameters: list[Any], sizes: dict[str, int]) -> Iterator[None]:
    """Tells gradients and optimizer state apart in a step of the user's own, whichever optimizers it uses."""
    seen: list[Any] = []
    native = torch.autograd.backward

    def backward(*arguments: Any, **keywords: Any) -> None:
        before, watcher.category = watcher.category, "backward"
        try:
            native(*arguments, **keywords)
        finally:
            watcher.category = before
        label_gradients(watcher, parameters, sizes)

    def begin(optimizer: Any, *rest: Any) -> None:
        label_gradients(watcher, parameters, sizes)
        watcher.category = "optimizer temporary"

    def end(optimizer: Any, *rest: Any) -> None:
        watcher.category = "activation"
        if not any(optimizer is one for one in seen):
            seen.append(optimizer)
        label_state(watcher, seen, sizes)

    with contextlib.ExitStack() as stack:
        replace(stack, torch.autograd, "backward", backward)
        stack.callback(optimizers.register_optimizer_step_pre_hook(begin).remove)
        stack.callback(optimizers.register_optimizer_step_post_hook(end).remove)
        yield


def label_gradients(watcher: Watcher, parameters: list[Any], sizes: dict[str, int]) -> None:
    """Tells the gradients apart from what the backward pass only used."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    watcher.label(gradients, "gradient")
    sizes["gradient"] = max(sizes.get("gradient", 0), total(watcher, gradients))


def label_state(watcher: Watcher, used: list[Any], sizes: dict[str, int]) -> None:
    """Tells the state of the optimizers apart from what their steps only used."""
    states = [state for optimizer in used for state in (getattr(optimizer, "state", None) or {}).values()]
    tensors = [leaf for state in states for leaf in tree_leaves(state) if isinstance(leaf, torch.Tensor)]
    watcher.label(tensors, "optimizer state")
    sizes["optimizer state"] = total(watcher, tensors)


def total(watcher: Watcher, tensors: Any) -> int:
    """The bytes of the blocks that hold these tensors, each block once."""
    blocks = {block.number: block.bytes for tensor in tensors if (block := watcher.block_of(tensor)) is not None}
    return sum(blocks.values())


@contextlib.contextmanager
def autocasting(task: Task) -> Iterator[None]:
    """Mixed precision, where it is asked for."""
    if task.autocast is None:
        yield
    else:
        with torch.autocast("cuda", dtype=task.autocast):
            yield
