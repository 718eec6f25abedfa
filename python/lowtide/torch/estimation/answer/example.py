"""Examples of another size: more samples, or longer ones."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from lowtide.torch.estimation.fake.device import repeatable
from lowtide.torch.estimation.fake.shadow import LARGEST

NAMES = {
    "batch": ("batch", "batch_size", "batchsize"),
    "sequence": ("sequence", "length", "seq_len", "sequence_length", "seq_length", "seqlen"),
}
"""What the parameter of a function that makes examples is called, by what is varied."""


class Examples:
    """What the model is called with: given, or made by a function, one for each step."""

    def __init__(self, example: Any, vary: str | None) -> None:
        self.axis = 1 if vary == "sequence" else 0
        self.vary = vary or "batch"
        is_maker = callable(example) and not isinstance(example, torch.Tensor)
        self.maker: Callable[..., Any] | None = example if is_maker else None
        name, self.usual = size_parameter(self.maker, vary) if self.maker is not None else (None, 1)
        self.takes_size = name is not None
        self.name = name or ""
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
            with OnHost(), repeatable():
                return self.maker(**{self.name: size})
        if self.given is None and self.maker is not None:
            with OnHost(), repeatable():
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
        whole = example if isinstance(example, tuple) else [example]
        parts = example.values() if isinstance(example, Mapping) else whole
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


def size_parameter(maker: Callable[..., Any], vary: str | None) -> tuple[str | None, int]:
    """The parameter by which a function that makes examples wants their size, and its usual value; none where it
    makes them of one size."""
    try:
        parameters = list(inspect.signature(maker).parameters.values())
    except (TypeError, ValueError):
        return None, 1
    named = [one for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    needed = [one for one in named if one.default is one.empty]
    sizes = [one for one in named if one.default is one.empty or type(one.default) is int]
    others = NAMES["batch" if vary == "sequence" else "sequence"]
    found = next((one for one in sizes if one.name in NAMES[vary or "batch"]), None)
    if found is None and len(needed) == 1 and needed[0].name not in others:
        found = needed[0]
    missing = [one.name for one in needed if one is not found]
    if missing:
        raise ValueError(f"the function that makes the example needs a value for `{missing[0]}`\n"
                         f"hint: give `{missing[0]}` a default, and call the size `{NAMES[vary or 'batch'][0]}`")
    if found is None and vary is not None and sizes:
        there = ", ".join(f"`{one.name}`" for one in sizes)
        raise ValueError(f"the function that makes the example has no parameter for the {vary}, only {there}\n"
                         f"hint: call one of its parameters {', '.join(f'`{name}`' for name in NAMES[vary][:3])}")
    if found is None:
        return None, 1
    return found.name, found.default if type(found.default) is int else 1


def remade(mapping: Mapping[Any, Any], function: Callable[[Any], Any]) -> Any:
    """A mapping of the same kind with other values; a dict where its kind cannot be written to."""
    values = {name: function(value) for name, value in mapping.items()}
    if isinstance(mapping, dict) or not isinstance(mapping, MutableMapping):
        return values
    likeness = copy.copy(mapping)
    likeness.update(values)
    return likeness


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
    if isinstance(example, Mapping):
        return remade(example, visited)
    return visited(example)
