"""Amounts of memory, of GPUs by their names too."""

from __future__ import annotations

import re

from lowtide.torch.sizes import size

MIB = {
    "T4": 15360, "V100-16GB": 16384, "V100-32GB": 32768, "A10": 23028, "A10G": 23028, "L4": 23034, "L40S": 46068,
    "RTX3090": 24576, "RTX4090": 24564, "A6000": 49140, "A100-40GB": 40960, "A100": 81920, "A100-80GB": 81920,
    "H100": 81559, "H200": 143771, "B200": 183359,
}
"""The memory of GPUs in MiB, as `nvidia-smi` tells it."""

CONTEXT = 1 << 30
"""What the driver, the context and the libraries take of it, about."""


def capacity(memory: int | float | str) -> int:
    """Bytes that a program can have: a number of them, a text such as "24GiB", or a GPU's name, less what its driver
    takes."""
    if isinstance(memory, str):
        name = re.sub(r"[\s_]", "", memory).upper().removeprefix("NVIDIA")
        if name in MIB:
            return (MIB[name] << 20) - CONTEXT
        if re.match(r"[A-Za-z]", memory.strip()):
            hint = f"hint: give a size such as '24GiB', or one of {', '.join(MIB)}"
            raise ValueError(f"{memory!r} is no GPU that is known here\n{hint}")
    return size(memory)
