"""Sizes as people write them."""

from __future__ import annotations

from lowtide import _lowtide


def size(value: int | float | str) -> int:
    """Bytes: a number of them, or a text such as "24GiB"."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError(f"{value!r} is no size\nhint: give bytes, or a text such as '24GiB'")
    try:
        if isinstance(value, str):
            return _lowtide.parse_size(value)
        if 0 <= value < 1 << 64:
            return int(value)
    except ValueError as error:
        raise ValueError(f"{value!r} is no size: {error}\nhint: give bytes, or a text such as '24GiB'") from None
    raise ValueError(f"{value!r} is no size\nhint: give bytes, or a text such as '24GiB'")
