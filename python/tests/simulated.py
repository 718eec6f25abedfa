"""The C functions that PyTorch calls, over simulated devices: their memory is memory of this process, so that patterns
can be written and looked at, and streams are mere numbers. Imported by programs that run in processes of their own,
because devices are served once per process."""

from __future__ import annotations

import ctypes
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import child
from lowtide import _lowtide

MIB = 1 << 20

# How programs begin that are to use this.
PRELUDE = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import ctypes, lowtide
from lowtide import _lowtide
from simulated import *
"""


def run(program: str, timeout: float = 120) -> str:
    """What a program over simulated devices prints; it must end well."""
    return child.run(PRELUDE + textwrap.dedent(program), timeout=timeout)


class Pool(ctypes.Structure):
    """The name of a capture's pool."""

    _fields_ = [("first", ctypes.c_uint64), ("second", ctypes.c_uint64)]


class Filter(ctypes.Structure):
    """A C++ `std::function<bool(cudaStream_t)>`."""

    _fields_ = [("functor", ctypes.c_size_t * 2), ("manager", ctypes.c_void_p), ("invoker", ctypes.c_void_p)]


_MANAGER = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
_INVOKER = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
_POINTER, _SIZE, _INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int

library = ctypes.CDLL(_lowtide.__file__)
for _name, _result, _arguments in [
    ("alloc", _POINTER, [_SIZE, _INT, _POINTER]),
    ("free", None, [_POINTER, _SIZE, _INT, _POINTER]),
    ("record_stream", None, [_POINTER, _POINTER]),
    ("init", None, [_INT]),
    ("reset", None, []),
    ("memory_fraction", None, [ctypes.c_double, _INT]),
    ("base_alloc", _POINTER, [_POINTER, ctypes.POINTER(_SIZE)]),
    ("begin_allocate_to_pool", None, [_INT, Pool, ctypes.POINTER(Filter)]),
    ("end_allocate_to_pool", None, [_INT, Pool]),
    ("release_pool", None, [_INT, Pool]),
]:
    _function = getattr(library, f"lowtide_{_name}")
    _function.restype, _function.argtypes = _result, _arguments

record_stream = library.lowtide_record_stream
reset = library.lowtide_reset
memory_fraction = library.lowtide_memory_fraction
end_allocate_to_pool = library.lowtide_end_allocate_to_pool
release_pool = library.lowtide_release_pool


def serve(memory: int = 64 * MIB, **options: Any) -> None:
    """Serves simulated devices of so many bytes."""
    assert _lowtide.serve_devices(simulated=memory, **options)


def alloc(size: int, device: int = 0, stream: int = 0) -> int | None:
    """A block; `None` where there is none and nothing that could be thrown."""
    return library.lowtide_alloc(size, device, stream)


def free(address: int, size: int, device: int = 0, stream: int = 0) -> None:
    library.lowtide_free(address, size, device, stream)


def base(address: int) -> tuple[int, int]:
    """The start and the size of the block at an address."""
    size = ctypes.c_size_t()
    return library.lowtide_base_alloc(address, ctypes.byref(size)), size.value


def fill(address: int, size: int, value: int) -> None:
    ctypes.memset(address, value, size)


def holds(address: int, size: int, value: int) -> bool:
    """Whether all bytes of a block have one value."""
    return ctypes.string_at(address, size) == bytes([value]) * size


def stats(device: int = 0) -> dict[str, Any]:
    return _lowtide.device_stats(device) or {}


def begin_allocate_to_pool(
    device: int, pool: Pool, belongs: Callable[[int], bool] | ctypes.c_void_p
) -> list[int]:
    """Begins a capture whose streams are told by `belongs`, or by the function at an address. Returns what its filter
    was asked to do: to be copied (2) and destroyed (3)."""
    asked: list[int] = []

    def manage(target: int, source: int | None, operation: int) -> bool:
        asked.append(operation)
        if operation == 2:
            ctypes.memmove(target, source, 16)
        return False

    manager = _MANAGER(manage)
    is_address = isinstance(belongs, ctypes.c_void_p)
    invoker = belongs if is_address else _INVOKER(lambda functor, stream: belongs(stream[0] or 0))
    _kept.extend((manager, invoker))
    address = ctypes.cast
    original = Filter((ctypes.c_size_t * 2)(1, 2), address(manager, _POINTER), address(invoker, _POINTER))
    library.lowtide_begin_allocate_to_pool(device, pool, ctypes.byref(original))
    return asked


_kept: list[Any] = []
