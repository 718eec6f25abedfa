"""Values beside fake tensors. A shadow tells how a small tensor's value comes about, and works it out only where the
program
needs it: to branch, to index by a mask, to count. What rests on no input is made up, and that is noted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_map

LARGEST = 1 << 22
"""Tensors of more elements have no shadow."""

DEEPEST = 256
"""Values that rest on more operations than this in a row are made up."""


class Shadow:
    """A tensor's value, known or yet to be worked out."""

    __slots__ = ("value", "recipe", "depth", "is_assumed", "shape", "dtype", "bound", "__weakref__")

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        self.value: torch.Tensor | None = None
        self.recipe: Recipe | None = None
        self.depth = 0
        self.is_assumed = False
        self.shape = shape
        self.dtype = dtype
        self.bound: int | None = None

    @classmethod
    def known(cls, value: torch.Tensor) -> Shadow:
        """The shadow of a value that is there."""
        with _disable_current_modes():
            value = value.detach()
        shadow = cls(tuple(value.shape), value.dtype)
        shadow.value = value
        return shadow

    @classmethod
    def made_up(cls, shape: tuple[int, ...], dtype: torch.dtype, bound: int | None = None) -> Shadow:
        """A value to be drawn when it is needed: below `bound` where it is a number of something."""
        shadow = cls(shape, dtype)
        shadow.is_assumed = True
        shadow.bound = bound
        return shadow

    def resolve(self, dice: torch.Generator) -> torch.Tensor:
        """The value, worked out or made up."""
        waiting = [self]
        while waiting:
            shadow = waiting[-1]
            if shadow.value is not None:
                waiting.pop()
            elif shadow.recipe is None:
                shadow.value = draw(shadow.shape, shadow.dtype, shadow.bound, dice)
            else:
                missing = [needed for needed in shadow.recipe.needs if needed.value is None]
                if missing:
                    waiting.extend(missing)
                else:
                    shadow.recipe.carry_out(dice)
        assert self.value is not None
        return self.value


class Recipe:
    """An operation on shadows, and the shadows that it makes."""

    __slots__ = ("function", "arguments", "keywords", "needs", "makes", "in_place")

    def __init__(self, function: Callable[..., Any], arguments: Any, keywords: Any, needs: list[Shadow]) -> None:
        self.function = function
        self.arguments = arguments
        self.keywords = keywords
        self.needs = needs
        self.makes: list[Shadow] = []
        self.in_place: Shadow | None = None

    def carry_out(self, dice: torch.Generator) -> None:
        """Works out what it makes; what the CPU cannot do is made up."""
        with _disable_current_modes(), torch.no_grad():
            try:
                copied = self.in_place
                places = {id(copied): copied.value.clone()} if copied is not None else {}
                arguments, keywords = tree_map(
                    lambda leaf: places.get(id(leaf), leaf.value) if isinstance(leaf, Shadow) else leaf,
                    (self.arguments, self.keywords),
                )
                result = self.function(*arguments, **keywords)
                leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
            except (RuntimeError, NotImplementedError, TypeError, IndexError, ValueError):
                leaves = []
        for index, made in enumerate(self.makes):
            found = leaves[index] if index < len(leaves) else None
            if found is not None and tuple(found.shape) == made.shape:
                made.value = found
                made.is_assumed = any(needed.is_assumed for needed in self.needs)
            else:
                made.value = draw(made.shape, made.dtype, made.bound, dice)
                made.is_assumed = True
            made.recipe = None


def draw(shape: tuple[int, ...], dtype: torch.dtype, bound: int | None, dice: torch.Generator) -> torch.Tensor:
    """A made-up value: normal where it is a number with a fraction, a coin or an index otherwise."""
    with _disable_current_modes(), torch.no_grad():
        if dtype.is_floating_point or dtype.is_complex:
            kind = dtype if dtype in (torch.float64, torch.complex64, torch.complex128) else torch.float32
            return torch.randn(shape, generator=dice, dtype=kind).to(dtype)
        return torch.randint(0, bound or 2, shape, generator=dice).to(dtype)
