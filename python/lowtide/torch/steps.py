"""Tells Lowtide where the steps of a program end: with every step of an optimizer."""

from __future__ import annotations

from typing import Any

from lowtide._lowtide import step

_followed = False


def follow() -> None:
    """Closes a step whenever an optimizer has made one, from now on. Called again, it changes nothing."""
    global _followed
    if not _followed:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        register_optimizer_step_post_hook(_stepped)
        _followed = True


def follows() -> bool:
    """Whether steps are followed."""
    return _followed


def _stepped(*_: Any) -> None:
    step()
