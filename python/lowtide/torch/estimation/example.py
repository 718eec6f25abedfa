"""Examples of another size: more samples, or longer ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from lowtide.torch.estimation.shadow import LARGEST


class Examples:
    """What the model is called with: given, or made by a function, one for each step."""

    def __init__(self, example: Any, vary: str | None) -> None:
        self.axis = 1 if vary == "sequence" else 0
        self.vary = vary or "batch"
        is_maker = callable(example) and not isinstance(example, torch.Tensor)
        self.maker: Callable[..., Any] | None = example if is_maker else None
        self.takes_size, self.usual = takes_size(self.maker) if self.maker is not None else (False, 1)
        self.given = example if self.maker is None else None
        self.given = self.sized(self.usual) if self.maker is not None else self.given
        self.size = self.usual if self.takes_size else self.size_of(self.each()[0])

    def each(self) -> list[Any]:
        """The examples as they were given, at least one."""
        if isinstance(self.given, list):
            if not self.given:
                raise ValueError("the list of examples is empty\nhint: give one example for each step, or a single one")
            return self.given
        return [self.given]

    def sized(self, size: int) -> Any:
        """The example with so many samples, or of this length."""
        if self.takes_size:
            assert self.maker is not None
            with OnHost():
                return self.maker(size)
        if self.given is None and self.maker is not None:
            with OnHost():
                return self.maker()
        return self.given if size == self.size else scaled(self.given, self.axis, self.size, size)

    def for_steps(self, size: int, steps: int) -> list[Any]:
        """An example for each of `steps` steps, those of a list in turn."""
        example = self.given if size == self.size else self.sized(size)
        examples = example if isinstance(example, list) else [example]
        return [examples[step % len(examples)] for step in range(max(steps, len(examples)))]

    def size_of(self, example: Any) -> int:
        """How many samples an example has, or how long it is: of its first list, or of its first tensor that has the
        dimension."""
        parts = example.values() if isinstance(example, dict) else example if isinstance(example, tuple) else [example]
        for value in parts:
            if self.axis == 0 and isinstance(value, list):
                return len(value)
            if isinstance(value, torch.Tensor) and value.dim() > self.axis:
                return int(value.shape[self.axis])
        return 1


class OnHost(TorchFunctionMode):
    """Lets a function that makes an example on the GPU make it on the CPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.cuda:
            return args[0]
        args = tuple(HOST if is_device(value) else value for value in args)
        return func(*args, **{name: HOST if is_device(value) else value for name, value in (kwargs or {}).items()})


HOST = torch.device("cpu")


def is_device(value: Any) -> bool:
    """Whether this names a GPU."""
    if isinstance(value, torch.device):
        return bool(value.type == "cuda")
    return isinstance(value, str) and value.startswith("cuda")


def takes_size(maker: Callable[..., Any]) -> tuple[bool, int]:
    """Whether a function that makes examples wants their size, and what it takes for usual."""
    try:
        parameters = list(inspect.signature(maker).parameters.values())
    except (TypeError, ValueError):
        return False, 1
    for parameter in parameters:
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            return True, parameter.default if isinstance(parameter.default, int) else 1
    return False, 1


def scaled(example: Any, axis: int, before: int, after: int) -> Any:
    """An example of another size, its values repeated where they are small enough to matter; the same tensor stays
    the same."""
    made: dict[int, torch.Tensor] = {}

    def resized(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or leaf.dim() <= axis or leaf.shape[axis] != before:
            return leaf
        if id(leaf) not in made:
            shape = [after if place == axis else length for place, length in enumerate(leaf.shape)]
            is_small = leaf.numel() // before * after <= LARGEST
            places = torch.arange(after, device=leaf.device) % before
            made[id(leaf)] = leaf.index_select(axis, places) if is_small else leaf.new_empty(shape)
        return made[id(leaf)]

    def visited(part: Any) -> Any:
        if isinstance(part, list) and axis == 0 and len(part) == before:
            return [part[index % before] for index in range(after)]
        return tree_map(resized, part)

    if isinstance(example, list):
        return [scaled(one, axis, before, after) for one in example]
    if isinstance(example, tuple):
        return tuple(visited(part) for part in example)
    if isinstance(example, dict):
        return {name: visited(part) for name, part in example.items()}
    return visited(example)
