"""Where in the user's program an operation comes from; for the backward pass, where its forward counterpart came
from."""

from __future__ import annotations

import os
import sys

import torch

INNER = (
    os.path.dirname(torch.__file__) + os.sep,
    os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep,
    "<",
)


class Sites:
    """Names of places, remembered by the number of the autograd node that was made there."""

    def __init__(self) -> None:
        self.names: dict[tuple[object, int], str] = {}
        self.is_inner: dict[object, bool] = {}
        self.forward: dict[int, str] = {}

    def here(self) -> str:
        """The innermost place outside PyTorch, such as `models/llama.py:120 forward`."""
        node = torch._C._current_autograd_node()
        if node is not None and (site := self.forward.get(node._sequence_nr())):
            return site
        frame = sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            inner = self.is_inner.get(code)
            if inner is None:
                inner = self.is_inner[code] = code.co_filename.startswith(INNER)
            if not inner:
                site = self.names.get((code, frame.f_lineno))
                if site is None:
                    site = self.names[code, frame.f_lineno] = named(code.co_filename, frame.f_lineno, code.co_name)
                if node is None and torch.is_grad_enabled():
                    self.forward[torch._C._autograd._get_sequence_nr() - 1] = site
                return site
            frame = frame.f_back
        return node.name() if node is not None else ""


def named(path: str, line: int | None, function: str) -> str:
    """A place as it is shown."""
    short = os.sep.join(path.split("site-packages" + os.sep)[-1].split(os.sep)[-3:])
    return f"{short}:{line} {function}"
