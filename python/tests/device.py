"""The beginnings of programs for a real device, each run in a process of its own."""

from __future__ import annotations

import textwrap

import child

NATIVE = """
import gc, os, random, sys, threading, time
import torch
MIB = 1 << 20
"""

LOWTIDE = (
    NATIVE
    + """
import lowtide.torch
from lowtide import _lowtide
"""
)

INSTALL = LOWTIDE + "lowtide.torch.install()\n"

# Sums in one order, so that two runs can be compared to the last bit.
EXACT = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}


def run(prelude: str, program: str, timeout: float = 300, **variables: str) -> str:
    return child.run(prelude + textwrap.dedent(program), timeout=timeout, **variables)
