"""Finds the largest size that fits. Memory grows almost in proportion to a size, so that a few traces bracket it."""

from __future__ import annotations

from collections.abc import Callable

Amount = Callable[[int], int]

MOST = 1 << 24
"""No size beyond this is tried."""


def largest(amounts: list[Amount], fits: Callable[[int], bool], tried: list[int], capacity: int) -> int:
    """The largest size that fits, found between one that does and the next, which does not; zero where one does not
    fit.

    `amounts` tell how much a size takes, the one to go by first; the next stands in where that one leads nowhere. Sizes
    that were `tried` for something else cost little and are asked about first.
    """
    fitting, failing = 0, MOST + 1
    known: list[int] = []
    cheap = sorted(tried)
    size = cheap[len(cheap) // 2]
    while failing - fitting > 1:
        width = failing - fitting
        known.append(size)
        if fits(size):
            fitting = size
        else:
            failing = size
        cheap = [other for other in cheap if fitting < other < failing]
        is_slow = len(known) > 3 and failing <= MOST and failing - fitting > width // 2
        aims = [] if is_slow else [guess({size: amount(size) for size in known}, capacity) for amount in amounts]
        aims = [aim for aim in aims if fitting < aim < failing] or [middle(fitting, failing)]
        size = cheap[len(cheap) // 2] if cheap else aims[0]
    return fitting


def middle(fitting: int, failing: int) -> int:
    """Where to look without a guess."""
    return (fitting + failing) // 2 if failing <= MOST else min(fitting * 2, MOST)


def guess(known: dict[int, int], capacity: int) -> int:
    """Where the line through the two sizes nearest to the capacity meets it; through one of them and nothing, if it
    is alone."""
    nearest = sorted(known, key=lambda size: abs(known[size] - capacity))[:2]
    first, second = sorted(nearest) if len(nearest) == 2 else (0, nearest[0])
    slope = (known[second] - known.get(first, 0)) / (second - first)
    return int(first + (capacity - known.get(first, 0)) / slope) if slope > 0 else 0
