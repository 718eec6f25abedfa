"""How PyTorch's reduction kernel splits its work, as far as that decides how much memory it needs for partial
results."""

from __future__ import annotations

from typing import Any

import torch

from lowtide.torch.estimation.fake.device import MULTIPROCESSORS

THREADS = 512
BLOCKS_PER_MULTIPROCESSOR = 2048 // THREADS
LEAST_VALUES, MOST_VALUES = 16, 256
"""How many values a thread adds up before its work is split among blocks, and at most."""

WARP = 32


def partial_results(source: Any, result: Any) -> list[int]:
    """The blocks for partial results and for the counters of who is done; none where each result is made by one
    block."""
    outputs = max(result.numel(), 1)
    if source.numel() == 0 or source.numel() <= outputs:
        return []
    inputs = source.numel() // outputs
    is_along_fastest = fastest_is_reduced(source, result)
    vector = 1
    if not is_along_fastest and outputs % 4 == 0 and source.element_size() <= 4:
        vector = 4
    first, second = (inputs, outputs) if is_along_fastest else (outputs // vector, inputs)
    width = min(last_power_of_two(first), THREADS if is_along_fastest else WARP)
    height = min(last_power_of_two(second), THREADS // vector // width if vector > 1 else THREADS // width)
    width = min(last_power_of_two(first), (THREADS // vector if vector > 1 else THREADS) // height)
    per_output = width if is_along_fastest else 1
    values = -(-inputs // per_output)
    shares_rows = values >= min(height * LEAST_VALUES, MOST_VALUES)
    if shares_rows:
        values = -(-values // height)
    columns = 1 if is_along_fastest else width * vector
    rows = 1 if shares_rows else height
    grid = -(-outputs // (columns * rows))
    target = BLOCKS_PER_MULTIPROCESSOR * MULTIPROCESSORS * (THREADS // max(width * height, 1) or 1)
    if not (shares_rows and values >= MOST_VALUES and grid <= target):
        return []
    splits = max(min(-(-target // grid), -(-values // LEAST_VALUES)), -(-values // MOST_VALUES))
    if splits <= 1:
        return []
    accumulator = 8 if source.dtype in (torch.float64, torch.int64, torch.complex64) else 4
    size = accumulator * outputs * splits
    if not is_along_fastest:
        size *= columns
    return [size, 4 * grid]


def last_power_of_two(number: int) -> int:
    """The largest power of two that is not above `number`."""
    return 1 << max(number.bit_length() - 1, 0)


def fastest_is_reduced(source: Any, result: Any) -> bool:
    """Whether neighbours in memory are added up."""
    if result.dim() == 0 or result.numel() == 1:
        return True
    shape = enumerate(zip(source.stride(), source.shape, strict=True))
    strides = [(stride, axis) for axis, (stride, size) in shape if size > 1 and stride]
    if not strides:
        return True
    axis = min(strides)[1]
    if result.dim() == source.dim():
        return bool(result.shape[axis] == 1)
    return not (result.shape and result.shape[-1] == source.shape[axis] and axis == source.dim() - 1)
