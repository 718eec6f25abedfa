"""`estimate`: from a model and an example to the answer."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from lowtide.torch.estimation.answer.answers import Answers, Played
from lowtide.torch.estimation.answer.example import Examples
from lowtide.torch.estimation.answer.forecast import Forecast
from lowtide.torch.estimation.answer.memory import capacity
from lowtide.torch.estimation.answer.outcome import ALLOCATORS, Estimate, Group
from lowtide.torch.estimation.answer.search import largest
from lowtide.torch.estimation.tracing.ledger import Ledger, grouped
from lowtide.torch.estimation.tracing.step import Task, Traced, trace

USUAL_MEMORY = 139 << 30
"""What a program that asks is told that the GPU has, where no memory is given."""

PATIENCE = 5.0
"""Seconds after which a search says how far it is."""


def estimate(
    model: Any,
    example: Any,
    optimizer: Callable[..., Any] | None = None,
    *,
    loss: Callable[[Any], Any] | None = None,
    memory: int | float | str | None = None,
    vary: str | None = None,
    steps: int = 3,
    device: str = "cuda",
    train: bool = True,
    autocast: torch.dtype | str | None = None,
    step: Callable[..., Any] | None = None,
) -> Estimate:
    """The memory that training `model` on `example` will take on a GPU, found out without one.

    `model`: a module, which is left as it is, or a function that builds one; that needs no memory for its parameters.
    `example`: what the model is called with: a tensor, a tuple of arguments, a mapping of keywords; a list of these,
    one for each step; or a function that makes one, whose parameter `batch`, or `length` where that is varied, is its
    size. `optimizer`: a class, or a function of the parameters. `loss`: a function of the model's output; else its
    `loss`, the sum of its scalars, or the mean of it. `memory`: what there is, in bytes, as a text such as "24GiB", or
    as a GPU's name; with `vary`, "batch" or "sequence", the largest that fits is searched. `autocast`: the type for
    mixed precision. `step`: a function of model, batch and optimizer that takes the place of the whole step.
    `train=False`: only the forward pass, without gradients.
    """
    begin = time.monotonic()
    if vary not in (None, "batch", "sequence"):
        raise ValueError(f"vary is {vary!r}\nhint: give 'batch', 'sequence' or None")
    if isinstance(optimizer, torch.optim.Optimizer):
        name = type(optimizer).__name__
        raise TypeError(
            f"the optimizer is made for other parameters already\n"
            f"hint: give torch.optim.{name}, or functools.partial(torch.optim.{name}, …) with its settings"
        )
    if steps < 1:
        raise ValueError(f"{steps} steps are none\nhint: give 3, so that the optimizer's state is there in the second")
    room = None if memory is None else capacity(memory)
    if vary is not None and room is None:
        raise ValueError(f"vary={vary!r} needs a memory to fit into\nhint: give memory, such as '24GiB'")
    if torch.device(device).type != "cuda":
        raise ValueError(f"{device!r} is no CUDA device\nhint: leave out `device`")
    examples = Examples(example, vary)
    task = Task(model, [], optimizer, loss, kind_of(autocast), train, torch.device(device), room or USUAL_MEMORY, step)
    runs = Runs(task, examples, steps, room)
    traced = runs.traced(examples.size)
    found = None if vary is None else searched(runs)
    return outcome(runs, traced, found, begin)


def kind_of(autocast: torch.dtype | str | None) -> torch.dtype | None:
    """The type for mixed precision."""
    if autocast is None or isinstance(autocast, torch.dtype):
        return autocast
    kind = getattr(torch, str(autocast), None)
    if not isinstance(kind, torch.dtype):
        raise ValueError(f"autocast is {autocast!r}\nhint: give torch.bfloat16 or torch.float16")
    return kind


def searched(runs: Runs) -> dict[str, int]:
    """The largest size that fits, for each allocator: by what a few traces foretell of the others, or by a trace of
    each size that is asked about."""
    try:
        found = Forecast(runs, runs.examples.size).largest(ALLOCATORS)
    except Exception:  # A size beyond what the model takes: whether it matters is for the search below to find out.
        found = None
    return found or by_traces(runs)


def by_traces(runs: Runs) -> dict[str, int]:
    """The same by traces alone."""
    assert runs.room is not None
    answers = runs.answers
    return {
        name: largest([answers.reserved(name), answers.allocated], answers.fits(name), list(runs.traces), runs.room)
        for name in ALLOCATORS
    }


class Runs:
    """Traces of examples of several sizes, each made once."""

    def __init__(self, task: Task, examples: Examples, steps: int, room: int | None) -> None:
        self.task = task
        self.examples = examples
        self.steps = steps
        self.room = room
        self.begin = time.monotonic()
        self.traces: dict[int, tuple[Traced, bytes]] = {}
        self.answers = Answers(self.played, room)

    @property
    def is_uniform(self) -> bool:
        """Whether all steps have the same example."""
        return len(self.examples.each()) == 1

    def traced(self, size: int) -> Traced:
        """The trace of the steps with examples of this size."""
        if size not in self.traces:
            self.say(size)
            traced = trace(replace(self.task, examples=self.examples.for_steps(size, self.steps)))
            self.traces[size] = traced, traced.ledger.trace()
        return self.traces[size][0]

    def opening(self, size: int) -> Ledger:
        """The trace of the first step up to its optimizer."""
        self.say(size)
        return trace(replace(self.task, examples=self.examples.for_steps(size, 1), is_brief=True)).ledger

    def say(self, size: int) -> None:
        """Says which size is tried, where a search takes long."""
        if self.traces and time.monotonic() - self.begin > PATIENCE and sys.stderr.isatty():
            print(f"lowtide: trying {self.examples.vary} {size}", file=sys.stderr)

    def played(self, size: int) -> Played:
        """What a size comes to: its peak, and the trace that allocators are asked about."""
        return Played(self.traced(size).ledger.peak, self.traces[size][1], size)


def outcome(runs: Runs, traced: Traced, found: dict[str, int] | None, begin: float) -> Estimate:
    """The answer."""
    size = runs.examples.size
    answers = runs.answers
    reserved = {name: int(answers.played_on(name, size, None)["peak_reserved"]) for name in ALLOCATORS}
    fits = None if runs.room is None else {name: answers.fits(name)(size) for name in ALLOCATORS}
    peak, step, alive = traced.ledger.at_peak()
    sizes = traced.sizes
    by_category = [Group(*row) for row in grouped(alive, "category")]
    assumptions = [f"{text} ({count}×)" if count > 1 else text for text, count in traced.assumptions.items()]
    return Estimate(
        peak_allocated=peak,
        peak_requested=traced.ledger.peak_requested(),
        peak_reserved=reserved,
        peak_step=step,
        parameters=sizes.get("parameter", 0),
        gradients=sizes.get("gradient", 0),
        optimizer_state=sizes.get("optimizer state", 0),
        activations=sum(group.bytes for group in by_category if group.name == "activation"),
        by_category=by_category,
        by_site=[Group(*row) for row in grouped(alive, "site")],
        memory=runs.room,
        fits=fits,
        vary=runs.examples.vary,
        size=size,
        largest=found,
        assumptions=assumptions,
        steps=traced.ledger.steps,
        seconds=time.monotonic() - begin,
        trace=runs.traces[size][1],
    )
