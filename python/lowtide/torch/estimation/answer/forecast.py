"""Predicts the traces of sizes from those of a few others, so that a search for the largest needs few of them. Where
the events of two sizes are the same, their blocks differ only in their bytes, and these follow a line for most blocks
and a parabola for some. What a search finds in this way is traced before it is reported."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import groupby
from operator import itemgetter
from typing import Protocol

from lowtide.torch.estimation.answer.answers import Answers, Played
from lowtide.torch.estimation.answer.search import largest
from lowtide.torch.estimation.tracing.ledger import GRAIN, Block, Ledger
from lowtide.torch.estimation.tracing.step import Traced

ROUNDS = 16
"""After so many corrections sizes are searched by traces alone."""

NEAR = 0.002
"""A forecast that was this near to the trace is gone by."""

CURVED = 0.005
"""What lies this far from a line is on a parabola; what lies nearer was rounded."""

FIXED = {"parameter", "buffer", "gradient", "optimizer state"}
OPTIMIZER = {"optimizer temporary", "optimizer state"}

SLOW = "lowtide"
"""The allocator that takes long to play, because it plans, and reserves hardly more than there is."""

PATIENT = 6
"""So many sizes are gone by what was wasted; then the rest is halved."""


class Tracer(Protocol):
    """Makes traces."""

    room: int | None

    @property
    def is_uniform(self) -> bool: ...
    def traced(self, size: int) -> Traced: ...
    def opening(self, size: int) -> Ledger: ...


class Pattern:
    """Sizes whose openings have the same events. `ledger` is the whole trace of one of them."""

    def __init__(self, size: int, ledger: Ledger, is_whole: bool) -> None:
        self.ledger = ledger
        self.size = size
        self.count = len(ledger.blocks) if is_whole else ledger.opening[1]
        self.samples: dict[int, list[int]] = {}
        self.wholes: dict[int, list[int]] = {}
        freed = {number for event, number in ledger.events if event == "free"}
        self.fixed = {block.number for block in ledger.blocks if block.category in FIXED or block.number not in freed}
        self.ties: list[int | None] = []
        self.is_clear = True
        self.is_recurring = True

    def add(self, size: int, ledger: Ledger) -> None:
        """Learns the blocks of a size, of which `ledger` has the opening at least."""
        sizes = [block.bytes for block in ledger.blocks]
        self.samples[size] = sizes[: self.count]
        if len(sizes) == len(self.ledger.blocks):
            self.wholes[size] = sizes
        self.tie()

    def tie(self) -> None:
        """Finds for every block behind the opening one within it that was made by the same code and has the same
        bytes."""
        of_key: dict[Hashable, list[int]] = {}
        for number, block in enumerate(self.ledger.blocks[: self.count]):
            of_key.setdefault(self.key(number, block), []).append(number)
        is_clear = {
            key: all(len({sample[number] for number in numbers}) == 1 for sample in self.samples.values())
            for key, numbers in of_key.items()
        }
        self.ties, self.is_clear, self.is_recurring = [], True, True
        for number, block in enumerate(self.ledger.blocks[self.count :], self.count):
            if block.category in OPTIMIZER | FIXED:
                # It has the parameters' sizes, whatever else has these bytes by chance.
                self.ties.append(None)
                continue
            key = self.key(number, block)
            self.ties.append(of_key[key][-1] if key in of_key else None)
            self.is_clear = self.is_clear and is_clear.get(key, True)
            self.is_recurring = self.is_recurring and key in of_key

    def key(self, number: int, block: Block) -> Hashable:
        """What tied blocks have in common."""
        return block.site, block.operator, *[sizes[number] for sizes in self.wholes.values()]

    def bytes_of(self, size: int) -> list[int]:
        """The bytes of all blocks for a size."""
        if size in self.wholes:
            return self.wholes[size]
        opening = self.samples[size] if size in self.samples else self.predicted(size)
        rest = self.ledger.blocks[self.count :]
        return opening + [block.bytes if tie is None else opening[tie]
                          for block, tie in zip(rest, self.ties, strict=True)]

    def predicted(self, size: int) -> list[int]:
        """The bytes of the opening's blocks for a size that was not traced: on the line through two others, or on the
        parabola through three; where there is one only, in proportion to it."""
        below, above = neighbours(self.samples, size)
        first = self.samples[below]
        if above is None:
            ratio = size / below
            return [value if number in self.fixed or not value else max(round(value * ratio), 1)
                    for number, value in enumerate(first)]
        second = self.samples[above]
        share = (size - below) / (above - below)
        others = [other for other in self.samples if other not in (below, above)]
        if not others:
            return [on_line(left, right, share) for left, right in zip(first, second, strict=True)]
        other = max(others, key=lambda other: abs((other - below) * (other - above)))
        third = self.samples[other]
        far = (other - below) / (above - below)
        bend = (size - below) * (size - above) / ((other - below) * (other - above))
        made = []
        for left, right, beyond in zip(first, second, third, strict=True):
            miss = beyond - (left + (right - left) * far)
            value = left + (right - left) * share
            made.append(max(round(value + miss * bend if abs(miss) > CURVED * beyond else value), 1 if left else 0))
        return made


def on_line(left: int, right: int, share: float) -> int:
    """A value between two, or beyond them; nothing only where both are."""
    return max(round(left + (right - left) * share), 1 if left else 0)


def neighbours(sizes: Iterable[int], size: int) -> tuple[int, int | None]:
    """Two sizes to draw a line through: the nearest on both sides, or the nearest and one that is far enough from it;
    the second is none where there is one only."""
    below = [other for other in sizes if other < size]
    above = [other for other in sizes if other > size]
    if below and above:
        return max(below), min(above)
    near, *rest = sorted([*below, *above], key=lambda other: abs(other - size))
    wide = [other for other in rest if abs(other - near) >= abs(size - near)]
    return near, wide[0] if wide else rest[-1] if rest else None


def ordered(events: list[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """The same events with frees that follow each other in the order of their blocks: what is let go of at once, such
    as the weights that autocast kept, is so in any order."""
    made: list[tuple[str, int]] = []
    for kind, group in groupby(events, key=itemgetter(0)):
        made.extend(sorted(group) if kind == "free" else group)
    return tuple(made)


class Forecast:
    """What sizes come to, from the traces of those that were learnt."""

    def __init__(self, tracer: Tracer, size: int) -> None:
        assert tracer.room is not None
        self.tracer = tracer
        self.size = size
        self.room = tracer.room
        self.is_whole = not tracer.is_uniform
        self.patterns: dict[Hashable, Pattern] = {}
        self.of_size: dict[int, Pattern] = {}
        self.made: dict[int, Played] = {}
        self.answers = Answers(self.played, self.room)
        self.learn(size)

    def largest(self, allocators: Iterable[str]) -> dict[str, int] | None:
        """The largest size that fits, for each allocator, or nothing where forecasts are never right. It was traced,
        and so was the next, which does not fit."""
        allocators = list(allocators)
        found: dict[str, int] = {}
        is_near = False
        stride = 1
        for _ in range(ROUNDS):
            bound = self.bound()
            missing = {bound or 1} - set(self.of_size)
            if is_near or not missing:
                guesses = self.guesses([name for name in allocators if name not in found], bound)
                asked = {guess + more for guess in guesses.values() for more in (0, 1, stride)}
                missing = asked - {0} - set(self.of_size)
                stride *= 2
            else:
                guesses = {}
            for size in sorted(missing):
                before = self.peak(size)
                self.learn(size)
                is_near = abs(self.peak(size) - before) <= NEAR * before
            found.update({name: guess for name, guess in guesses.items() if self.is_right(name, guess)})
            if len(found) == len(allocators):
                return {name: found[name] for name in allocators}
        return None

    def is_right(self, name: str, answer: int) -> bool:
        """Whether a size fits and the next does not, now that both were traced."""
        fits = self.answers.fits(name)
        return (answer == 0 or fits(answer)) and not fits(answer + 1)

    def bound(self) -> int:
        """The largest size whose blocks alone fit."""
        return self.within(self.room)

    def within(self, room: float) -> int:
        """The largest size whose blocks alone take no more than this."""
        return largest([self.peak], lambda size: self.peak(size) <= room, list(self.of_size), int(room))

    def guesses(self, allocators: list[str], bound: int) -> dict[str, int]:
        """The largest size that fits, for each allocator, by forecasts."""
        found = {}
        self.answers.asked = {self.size}
        for name in allocators:
            if name == SLOW:
                found[name] = self.from_bound(name, bound)
            else:
                amounts = [self.answers.reserved(name), self.answers.allocated]
                found[name] = largest(amounts, self.answers.fits(name), list(self.answers.asked), self.room)
        return found

    def from_bound(self, name: str, bound: int) -> int:
        """The same for an allocator that wastes little: few sizes below the bound have to be played."""
        fitting, failing = 0, bound + 1
        size, tries = bound, 0
        while failing - fitting > 1:
            if self.answers.fits(name)(size):
                fitting = size
            else:
                failing = size
            waste = self.answers.reserved(name)(size) / max(self.answers.allocated(size), 1)
            tries += 1
            aim = self.within(self.room / waste) if tries < PATIENT else (fitting + failing) // 2
            size = min(max(aim, fitting + 1), failing - 1)
        return fitting

    def learn(self, size: int) -> None:
        """Traces a size: its opening where the rest follows from it."""
        if self.is_whole or not self.patterns:
            self.add(size, self.tracer.traced(size).ledger)
        else:
            self.add(size, self.tracer.opening(size))
        self.made.clear()
        if self.is_whole:
            return
        if not self.of_size[size].is_clear and size not in self.of_size[size].wholes:
            self.add(size, self.tracer.traced(size).ledger)
        if not self.of_size[size].is_recurring:
            self.is_whole = True
            sizes = list(self.of_size)
            self.patterns.clear()
            self.of_size.clear()
            for known in sizes:
                self.learn(known)

    def add(self, size: int, ledger: Ledger) -> None:
        """Sorts what was traced in with what has the same events."""
        events, blocks = (len(ledger.events), len(ledger.blocks)) if self.is_whole else ledger.opening
        key = ordered(ledger.events[:events]), tuple(block.operator for block in ledger.blocks[:blocks])
        if key not in self.patterns:
            whole = self.tracer.traced(size).ledger
            self.patterns[key] = Pattern(size, whole, self.is_whole)
            ledger = whole
        self.of_size[size] = self.patterns[key]
        self.of_size[size].add(size, ledger)

    def pattern(self, size: int) -> Pattern:
        """The pattern that a size is likely to have: that of the nearest that was learnt."""
        return self.of_size[min(self.of_size, key=lambda other: (abs(other - size), other))]

    def peak(self, size: int) -> int:
        """What is alive at once."""
        pattern = self.pattern(size)
        return pattern.ledger.peak_of(pattern.bytes_of(size))

    def played(self, size: int) -> Played:
        """What a size comes to."""
        if size not in self.made:
            pattern = self.pattern(size)
            sizes = pattern.bytes_of(size)
            key = pattern.size, tuple(-(-value // GRAIN) for value in sizes)
            self.made[size] = Played(pattern.ledger.peak_of(sizes), pattern.ledger.trace_of(sizes), key)
        return self.made[size]
