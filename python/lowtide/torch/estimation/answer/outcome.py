"""What an estimate came to, as numbers, as text and as a file."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any

from lowtide._lowtide import show_size as text

SHOWN = 8
"""Rows of a table; the rest is summed up."""

ALLOCATORS = ("native", "expandable", "lowtide")


@dataclass(frozen=True)
class Group:
    """Blocks that have something in common."""

    name: str
    bytes: int
    blocks: int


@dataclass(frozen=True)
class Estimate:
    """The memory that a training step will take. Amounts are bytes."""

    peak_allocated: int
    """What `torch.cuda.max_memory_allocated` would tell."""
    peak_requested: int
    """The same without the allocator's rounding."""
    peak_reserved: dict[str, int]
    """The most that each allocator takes of the device: `native`, `expandable`, `lowtide`."""
    peak_step: int
    """The step of the peak, from one on."""
    parameters: int
    gradients: int
    optimizer_state: int
    activations: int
    """At the peak: what the forward pass left."""
    by_category: list[Group]
    """What is alive at the peak, by what it is for, largest first."""
    by_site: list[Group]
    """The same by where in the program it was made."""
    memory: int | None
    fits: dict[str, bool] | None
    """Whether `memory` suffices, for each allocator; none where no memory was given."""
    vary: str
    size: int
    """The batch, or the length of the sequence, of the example."""
    largest: dict[str, int] | None
    """The largest batch or sequence that fits `memory`, for each allocator; none where it was not asked for."""
    assumptions: list[str]
    steps: int
    seconds: float
    trace: bytes = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the trace, for JSON."""
        named = {name: value for name, value in vars(self).items() if name not in ("trace", "by_category", "by_site")}
        for name in ("by_category", "by_site"):
            named[name] = [vars(group) for group in getattr(self, name)]
        return {"kind": "estimate", "version": 1, **named}

    def json(self) -> str:
        """The same as a text."""
        return json.dumps(self.to_dict(), indent=2)

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the traced events as a trace that `lowtide replay`, `report` and `explain` read."""
        with open(path, "wb") as file:
            file.write(self.trace)

    def __str__(self) -> str:
        return "\n".join([self.headline(), "", *self.tables(), *self.closing()])

    __repr__ = __str__

    def headline(self) -> str:
        """The answer in one line."""
        parts = [f"peak {text(self.peak_allocated)} allocated"]
        parts += [f"{name} {text(self.peak_reserved[name])}" for name in ALLOCATORS]
        if self.memory is not None and self.fits is not None:
            those = [name for name in ALLOCATORS if self.fits[name]]
            some = f"fits with {', '.join(those)}" if those else "does not fit"
            verdict = "fits" if len(those) == len(ALLOCATORS) else some
            parts.append(f"{verdict} {text(self.memory)}")
        return " · ".join([*parts, f"{self.seconds:.1f} s"])

    def tables(self) -> list[str]:
        """What is alive at the peak."""
        lines = [f"alive at the peak, in step {self.peak_step}:"]
        for groups in (self.by_category, self.by_site):
            shown = [(group.name, group.bytes, group.blocks) for group in groups[:SHOWN]]
            if rest := groups[SHOWN:]:
                sums = sum(group.bytes for group in rest), sum(group.blocks for group in rest)
                shown.append((f"+{len(rest)} smaller", *sums))
            for name, size, blocks in shown:
                share = 100 * size / max(self.peak_allocated, 1)
                lines.append(f"  {text(size):>10}  {share:5.1f}%  {blocks:>6} blocks  {name}")
            lines.append("")
        return lines

    def closing(self) -> list[str]:
        """The largest size that fits, and what was assumed."""
        lines = []
        if self.largest is not None and self.memory is not None:
            found = ", ".join(f"{name} {self.largest[name]}" for name in ALLOCATORS)
            lines.append(f"largest {self.vary} in {text(self.memory)}: {found} (the example's is {self.size})")
        lines += [f"assumed: {assumption}" for assumption in self.assumptions[:SHOWN]]
        if len(self.assumptions) > SHOWN:
            lines.append(f"assumed: +{len(self.assumptions) - SHOWN} more, in `.assumptions`")
        return lines
