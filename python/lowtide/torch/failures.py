"""What went wrong where nobody could be told: failed frees, and defects of Lowtide itself. It is said when the program
ends, whichever part of Lowtide the program uses."""

from __future__ import annotations

import atexit
import warnings

from lowtide import _lowtide

_is_said = False


def say_at_exit() -> None:
    """Warns at the end of the program. Called again, it changes nothing."""
    global _is_said
    if not _is_said:
        atexit.register(_warn)
        _is_said = True


def _warn() -> None:
    for sentence in _lowtide.device_warnings():
        warnings.warn(f"Lowtide: {sentence}", RuntimeWarning, stacklevel=1)
