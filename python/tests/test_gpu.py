"""Lowtide as PyTorch's CUDA allocator on a real device: what PyTorch asks of it. This and the files `test_gpu_*.py` run
with pytest, and without:

    python python/tests/test_gpu.py                    a line for each test of all the files, exit 1 where one fails
    python python/tests/test_gpu.py streams fork       those whose names have one of the words
    python python/tests/test_gpu.py --list             their names
"""

from __future__ import annotations

import importlib
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from device import INSTALL, NATIVE, run

try:
    import pytest
except ImportError:
    pass
else:
    pytestmark = pytest.mark.gpu


def test_pytorchs_questions_about_memory_are_answered() -> None:
    told = run(
        INSTALL,
        """
        before = torch.cuda.memory_allocated()
        tensor = torch.ones(5 * MIB, device="cuda")
        assert tensor.data_ptr() % 512 == 0
        assert torch.empty(0, device="cuda").data_ptr() == 0
        assert torch.cuda.memory_allocated() - before == 20 * MIB
        assert torch.cuda.max_memory_allocated() >= 20 * MIB
        assert torch.cuda.memory_reserved() >= 20 * MIB <= torch.cuda.max_memory_reserved()
        del tensor
        assert torch.cuda.memory_allocated() == before
        torch.cuda.reset_peak_memory_stats()
        assert torch.cuda.max_memory_allocated() == before
        free, total = torch.cuda.mem_get_info()
        assert 0 < free <= total
        assert torch.cuda.get_allocator_backend()
        assert "Allocated memory" in torch.cuda.memory_summary()
        assert lowtide.torch.stats()["allocations"] == lowtide.torch.stats("cuda:0")["allocations"] > 0
        lowtide.torch.install()
        print("\\n".join(sorted(torch.cuda.memory_stats())))
        """,
    )
    native = run(
        NATIVE,
        """
        torch.ones(5, device="cuda")
        print("\\n".join(sorted(torch.cuda.memory_stats())))
        """,
    )
    missing = set(native.split()) - set(told.split())
    assert not missing, f"PyTorch's own dictionary also has {sorted(missing)}"


def test_memory_goes_back_when_the_cache_is_emptied() -> None:
    run(
        INSTALL,
        """
        kept = torch.full((MIB,), 3.0, device="cuda")
        tensors = [torch.empty(64 * MIB, dtype=torch.uint8, device="cuda") for _ in range(16)]
        assert torch.cuda.memory_reserved() >= 1024 * MIB
        free = torch.cuda.mem_get_info()[0]
        del tensors
        torch.cuda.empty_cache()
        reserved = torch.cuda.memory_reserved()
        assert reserved <= 16 * MIB, reserved
        assert torch.cuda.mem_get_info()[0] - free >= 900 * MIB
        assert bool((kept == 3).all())
        """,
    )


def collect() -> dict[str, Callable[[], None]]:
    """All tests that need a device, by name."""
    found: dict[str, Callable[[], None]] = {}
    for path in sorted(Path(__file__).parent.glob("test_gpu*.py")):
        for name, test in vars(importlib.import_module(path.stem)).items():
            if name.startswith("test_"):
                found[name.removeprefix("test_")] = test
    return found


def main(words: list[str]) -> int:
    """Runs the tests whose names have one of the words, or all."""
    if "--list" in words:
        print("\n".join(collect()))
        return 0
    chosen = {name: test for name, test in collect().items() if not words or any(word in name for word in words)}
    if not chosen:
        print(f"error: no test has {' or '.join(words)} in its name\nhint: `--list` names them", file=sys.stderr)
        return 2
    failed = [name for name, test in chosen.items() if not succeeds(name, test)]
    print(f"{len(chosen) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def succeeds(name: str, test: Callable[[], None]) -> bool:
    start = time.monotonic()
    try:
        test()
    except Exception:
        print(f"FAILED {name} · {time.monotonic() - start:.1f} s\n{traceback.format_exc()}", flush=True)
        return False
    print(f"ok     {name} · {time.monotonic() - start:.1f} s", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
