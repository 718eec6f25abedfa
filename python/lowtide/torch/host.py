"""Memory of the machine itself: large CPU tensors and pinned memory come from Lowtide."""

from __future__ import annotations

import torch

from lowtide import _lowtide
from lowtide.torch import failures, steps

# Smaller tensors stay where they are: the C library serves them well.
THRESHOLD = 1 << 20


def serve_cpu(*, threshold: int = THRESHOLD, learn: bool = True) -> None:
    """Serves CPU tensors of at least `threshold` bytes from the host's arena, from now on."""
    _lowtide.serve_cpu(threshold, learn)
    steps.follow()
    failures.say_at_exit()


def serve_pinned() -> None:
    """Serves pinned memory at its exact size, from now on. Starts nothing."""
    if not torch.backends.cuda.is_built():
        raise RuntimeError(
            f"PyTorch {torch.__version__} is built without CUDA, so there is no pinned memory\nhint: leave `pinned` out"
        )
    if not torch.cuda.device_count():
        raise RuntimeError("PyTorch finds no CUDA device, so there is no pinned memory\nhint: leave `pinned` out")
    _lowtide.serve_pinned()
    failures.say_at_exit()
