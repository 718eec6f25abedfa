"""Lowtide keeps the high-water mark of deep learning low.

`lowtide.torch` serves PyTorch; `python -m lowtide` is the command line.
"""

from lowtide._lowtide import __version__, mark, step

__all__ = ["__version__", "mark", "step"]
