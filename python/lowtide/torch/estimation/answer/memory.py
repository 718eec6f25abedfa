"""Amounts of memory, of GPUs by their names too."""

from __future__ import annotations

from lowtide import _lowtide
from lowtide.torch.sizes import size


def capacity(memory: int | float | str) -> int:
    """Bytes that a program can have: a number of them, a text such as "24GiB", or a GPU's name, less what its driver
    takes."""
    if not isinstance(memory, str):
        return size(memory)
    try:
        return _lowtide.parse_device_memory(memory)
    except ValueError as error:
        hint = "hint: give a size such as '24GiB', or a GPU such as 'H200'"
        raise ValueError(f"{error}\n{hint}") from None
