"""Sizes as people write them."""

from __future__ import annotations

import re

_UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}
_UNITS |= {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


def size(value: int | float | str) -> int:
    """Bytes: a number of them, or a text such as "24GiB"."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError(f"{value!r} is no size\nhint: give bytes, or a text such as '24GiB'")
    if not isinstance(value, str):
        if not 0 <= value < float("inf"):
            raise ValueError(f"{value!r} is no size\nhint: give bytes, or a text such as '24GiB'")
        return int(value)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", value, re.IGNORECASE)
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ValueError(f"{value!r} is no size\nhint: give bytes, or a text such as '24GiB'")
    return int(float(match[1]) * unit)
