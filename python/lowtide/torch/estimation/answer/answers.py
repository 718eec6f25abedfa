"""What sizes take with each allocator. A trace is played once on each, whichever sizes it stands for."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from lowtide import _lowtide


@dataclass(frozen=True, slots=True)
class Played:
    """The steps with examples of one size: what is alive at once, the events, and what sizes have in common that
    allocators answer alike."""

    peak: int
    trace: bytes
    key: Hashable


class Answers:
    """Answers about sizes, from what they come to."""

    def __init__(self, of: Callable[[int], Played], room: int | None) -> None:
        self.of = of
        self.room = room
        self.known: dict[tuple[str, int | None, Hashable], dict[str, Any]] = {}
        self.asked: set[int] = set()

    def played_on(self, name: str, size: int, room: int | None) -> dict[str, Any]:
        """What an allocator makes of a size, on a device with `room` or one without limits."""
        played = self.of(size)
        key = name, room, played.key
        if key not in self.known:
            self.known[key] = json.loads(_lowtide.simulate(played.trace, room, name))[name]
        return self.known[key]

    def allocated(self, size: int) -> int:
        """What is alive at once for examples of a size."""
        self.asked.add(size)
        return self.of(size).peak

    def reserved(self, name: str) -> Callable[[int], int]:
        """What an allocator takes for examples of a size; where these alone are more than there is, that stands for
        it."""

        def answer(size: int) -> int:
            least = self.allocated(size)
            if self.room is not None and least > self.room:
                return least
            return int(self.played_on(name, size, None)["peak_reserved"])

        return answer

    def fits(self, name: str) -> Callable[[int], bool]:
        """Whether examples of a size fit with an allocator, which may first give back what it keeps."""

        def answer(size: int) -> bool:
            assert self.room is not None
            if self.allocated(size) > self.room:
                return False
            is_below = self.played_on(name, size, None)["peak_reserved"] <= self.room
            return is_below or bool(self.played_on(name, size, self.room)["fits"])

        return answer
