"""What was allocated and let go of, in order: the blocks of a traced run, what is alive at their peak, and the trace
of it."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from dataclasses import dataclass

GRAIN = 512
"""PyTorch's allocator rounds blocks up to a multiple of this."""


@dataclass(slots=True)
class Block:
    """A block of device memory: its bytes, who asked for it, and what it is for."""

    number: int
    bytes: int
    site: str
    operator: str
    category: str

    @property
    def rounded(self) -> int:
        """What PyTorch's allocator counts for it."""
        return -(-self.bytes // GRAIN) * GRAIN


class Ledger:
    """The events of a run."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.events: list[tuple[str, int]] = []
        self.opening = 0, 0
        """How many events and blocks the first step has up to its optimizer."""
        self.steps = 0
        self.alive = 0
        self.peak = 0

    def allocate(self, size: int, site: str, operator: str, category: str) -> Block:
        """Notes a new block of `size` bytes."""
        block = Block(len(self.blocks), size, site, operator, category)
        self.blocks.append(block)
        if size:
            self.events.append(("alloc", block.number))
            self.alive += block.rounded
            self.peak = max(self.peak, self.alive)
        return block

    def free(self, block: Block) -> None:
        """Notes that the program let go of `block`."""
        if block.bytes:
            self.events.append(("free", block.number))
            self.alive -= block.rounded

    def close_opening(self) -> None:
        """Notes that the part of the first step that depends on the example is over."""
        if self.opening == (0, 0):
            self.opening = len(self.events), len(self.blocks)

    def close_step(self) -> None:
        """Notes that a training step is over."""
        self.steps += 1
        self.events.append(("step", self.steps))

    def at_peak(self) -> tuple[int, int, list[Block]]:
        """The most that is alive at once, the step in which that is (from one on), and the blocks that are alive
        then."""
        alive: dict[int, Block] = {}
        total = peak = 0
        step = peak_step = 1
        where = -1
        for index, (event, number) in enumerate(self.events):
            if event == "step":
                step = number + 1
                continue
            block = self.blocks[number]
            total += block.rounded if event == "alloc" else -block.rounded
            if total > peak:
                peak, where, peak_step = total, index, step
        for event, number in self.events[: where + 1]:
            if event == "alloc":
                alive[number] = self.blocks[number]
            elif event == "free":
                del alive[number]
        return peak, peak_step, list(alive.values())

    def peak_requested(self) -> int:
        """The most that is alive at once, as it was asked for."""
        total = peak = 0
        for event, number in self.events:
            if event != "step":
                total += self.blocks[number].bytes if event == "alloc" else -self.blocks[number].bytes
                peak = max(peak, total)
        return peak

    def trace(self) -> bytes:
        """The events as a trace in CSV."""
        return self.trace_of([block.bytes for block in self.blocks])

    def peak_of(self, sizes: list[int]) -> int:
        """The most that would be alive at once if the blocks were of these sizes."""
        rounded = [-(-size // GRAIN) * GRAIN for size in sizes]
        alive = peak = 0
        for event, number in self.events:
            if event == "alloc":
                alive += rounded[number]
                peak = max(peak, alive)
            elif event == "free":
                alive -= rounded[number]
        return peak

    def trace_of(self, sizes: list[int]) -> bytes:
        """The events as a trace in CSV, with blocks of these sizes."""
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(["event", "id", "bytes", "stream", "site", "category"])
        for event, number in self.events:
            if event == "alloc":
                block = self.blocks[number]
                site = f"{block.site} {block.operator}".strip()
                rows.writerow(["alloc", number, sizes[number], 0, site, block.category])
            else:
                rows.writerow([event, number, "", "" if event == "step" else 0, "", ""])
        return text.getvalue().encode()


def grouped(blocks: list[Block], key: str) -> list[tuple[str, int, int]]:
    """Blocks that have the same `key`: its value, their bytes as PyTorch counts them and their number, largest
    first."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for block in blocks:
        entry = sums[getattr(block, key)]
        entry[0] += block.rounded
        entry[1] += 1
    return sorted(((name, size, count) for name, (size, count) in sums.items()), key=lambda row: (-row[1], row[0]))
