"""Traces training steps, as the usual loop makes them, on fake tensors."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.optim.optimizer as optimizers
from torch._subclasses.fake_tensor import UnsupportedOperatorException
from torch.utils._pytree import tree_leaves

from lowtide.torch.estimation.fake.autograd import accumulator, autograd
from lowtide.torch.estimation.fake.device import Refused, fake_mode, pretend, repeatable, replace, untraced
from lowtide.torch.estimation.fake.subject import call, fake_example, fake_model, loss_of
from lowtide.torch.estimation.fake.values import values
from lowtide.torch.estimation.kernels.attention import attention
from lowtide.torch.estimation.kernels.recurrent import recurrence
from lowtide.torch.estimation.tracing.ledger import Ledger
from lowtide.torch.estimation.tracing.watcher import Watcher


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
        with watcher, attention(), recurrence(watcher), values(watcher), autograd(watcher), tracing():
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
            f"the model failed on the example: {type(error).__name__}: {error}\n"
            "hint: a tuple is passed as arguments, a dict as keywords, anything else as the only argument"
        ) from error


@contextlib.contextmanager
def tracing() -> Iterator[None]:
    """Names the operation where one cannot be traced, and says what to do."""
    try:
        yield
    except Exception as error:
        name = untraceable(error)
        if not name:
            raise
        raise RuntimeError(
            f"the operation {name} cannot be traced: it has no kernel for fake tensors, and none for the CPU\n"
            f"hint: tell the shape of its result with torch.library.register_fake(\"{name.rsplit('.', 1)[0]}\")"
        ) from error


def untraceable(error: Exception) -> str:
    """The operation that an error says has no kernel, or nothing."""
    if isinstance(error, UnsupportedOperatorException):
        return str(error.func)
    found = re.match(r"Could not run '([^']+)'", str(error)) if isinstance(error, NotImplementedError) else None
    return found[1] if found else ""


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
