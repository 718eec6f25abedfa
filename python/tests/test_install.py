"""`lowtide.torch.install()` with real PyTorch where there is no GPU: the errors, and what PyTorch then asks of Lowtide.
The devices are simulated ones, and PyTorch is told that CUDA is there."""

from __future__ import annotations

import re
import textwrap

import child
import pytest
import lowtide.torch
from lowtide.torch.sizes import size
from simulated import PRELUDE

pytest.importorskip("torch")

PYTORCH = PRELUDE + "import torch, lowtide.torch\n"

INSTALL = """
serve()
torch.cuda.device_count = lambda: 1
lowtide.torch.install()
"""

# What PyTorch's functions ask CUDA itself before they ask the allocator.
STARTED = """
torch.cuda.memory.is_initialized = lambda: True
torch.cuda.memory._lazy_init = lambda: None
torch.cuda.memory._get_device_index = lambda device, optional=False, allow_cpu=False: device or 0
"""


def run(program: str, *parts: str) -> str:
    return child.run("".join((PYTORCH, *parts, textwrap.dedent(program))))


def test_install_without_a_device_says_so_and_what_can_be_done() -> None:
    run(
        """
        torch.cuda.device_count = lambda: 0
        for _ in range(2):
            try:
                lowtide.torch.install()
            except RuntimeError as error:
                assert "CUDA" in str(error) and "hint: `install(device=False, cpu=True)`" in str(error), error
            else:
                raise SystemExit("no error")
        assert not lowtide.torch.device.is_served()
        """
    )


def test_install_of_nothing_changes_nothing() -> None:
    run(
        """
        own = torch._C._cuda_memoryStats
        try:
            lowtide.torch.install(device=False)
        except ValueError as error:
            assert "nothing is to be served" in str(error)
        assert torch._C._cuda_memoryStats is own
        assert lowtide.torch.stats(0) == {} and lowtide.torch.trim() == 0
        """
    )


def test_install_comes_before_another_allocator() -> None:
    run(
        """
        torch.cuda.device_count = lambda: 1
        other = torch.cuda.memory.CUDAPluggableAllocator(_lowtide.__file__, "lowtide_alloc", "lowtide_free")
        torch.cuda.memory.change_current_allocator(other)
        try:
            lowtide.torch.install()
        except RuntimeError as error:
            assert "CUDA has started already" in str(error) and "lowtide run --device" in str(error), error
        else:
            raise SystemExit("no error")
        """
    )


def test_install_twice_is_once() -> None:
    run(
        """
        lowtide.torch.install()
        lowtide.torch.install(limit="1GiB", learn=False)
        assert lowtide.torch.device.is_served()
        """,
        INSTALL,
    )


def test_a_limit_that_is_no_size_is_refused_before_anything_happens() -> None:
    run(
        """
        torch.cuda.device_count = lambda: 1
        for limit in ("24 potatoes", -1, True, []):
            try:
                lowtide.torch.install(limit=limit)
            except (TypeError, ValueError) as error:
                assert "is no size" in str(error) and "\\nhint: " in str(error), error
            else:
                raise SystemExit("no error")
        assert not lowtide.torch.device.is_served()
        """
    )


@pytest.mark.parametrize(
    ("text", "bytes"),
    [
        ("24GiB", 24 << 30),
        ("1.5 GiB", 3 << 29),
        (" 512 mib ", 512 << 20),
        ("3KB", 3000),
        ("2TB", 2 * 10**12),
        ("77", 77),
        ("8b", 8),
        (123, 123),
        (0, 0),
        (1e9, 10**9),
    ],
)
def test_sizes_are_read_as_people_write_them(text: int | float | str, bytes: int) -> None:
    assert size(text) == bytes


@pytest.mark.parametrize("text", ["", "GiB", "-1GiB", "1 2", "1e9", "12XB", -5, float("nan")])
def test_what_is_no_size_is_refused(text: float | str) -> None:
    with pytest.raises(ValueError, match="is no size[^\n]*\nhint: "):
        size(text)


@pytest.mark.parametrize("value", [None, True, [], b"1GiB"])
def test_what_cannot_be_a_size_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="is no size\nhint: "):
        size(value)  # type: ignore[arg-type]


def test_pytorch_gives_memory_back_and_limits_itself_through_the_hooks() -> None:
    run(
        """
        block = alloc(20 * MIB)
        free(block, 20 * MIB)
        assert stats()["reserved_bytes"] >= 20 * MIB
        torch._C._cuda_emptyCache()
        assert stats()["reserved_bytes"] == 0
        torch._C._cuda_setMemoryFraction(0.5, 0)
        kept = alloc(30 * MIB)
        assert stats()["reserved_bytes"] <= 32 * MIB
        """,
        INSTALL,
    )


def test_pytorch_tells_lowtides_numbers() -> None:
    run(
        """
        kept, gone = alloc(20 * MIB), alloc(10 * MIB)
        free(gone, 10 * MIB)
        memory = torch.cuda.memory
        assert memory.memory_allocated(0) == 20 * MIB and memory.max_memory_allocated(0) == 30 * MIB
        assert memory.memory_reserved(0) >= 20 * MIB and memory.max_memory_reserved(0) >= 30 * MIB
        memory.reset_peak_memory_stats(0)
        assert memory.max_memory_allocated(0) == 20 * MIB
        memory.reset_accumulated_memory_stats(0)
        told = memory.memory_stats(0)
        assert told["allocation.all.current"] == 1 and told["num_ooms"] == 0, told
        assert "20480 KiB" in memory.memory_summary(0) or "20 MiB" in memory.memory_summary(0), memory.memory_summary(0)
        assert lowtide.torch.stats(0)["requested_bytes"] == 20 * MIB
        lowtide.torch.reset_peak(0)
        """,
        INSTALL,
        STARTED,
    )


def test_the_statistics_have_the_keys_that_pytorch_documents() -> None:
    told = run(
        """
        print("\\n".join(sorted(torch.cuda.memory.memory_stats(0))))
        print("---")
        print(torch.cuda.memory.memory_stats.__doc__)
        """,
        INSTALL,
        STARTED,
    )
    have, documented = told.split("---\n")
    wanted = set()
    for pattern in re.findall(r"^ *- ``\"([a-z_.{},]+)\"``", documented, re.MULTILINE):
        wanted |= expand(pattern)
    # The documentation has this name for what the dictionary calls `allocation`.
    wanted = {key.replace("allocated.", "allocation.", 1) if key.startswith("allocated.") else key for key in wanted}
    # By pool, and there is none.
    wanted.discard("reserved_bytes_by_private_pools")
    assert len(wanted) > 100
    assert wanted <= set(have.split()), wanted - set(have.split())


def expand(pattern: str) -> set[str]:
    """`a.{b,c}` is `a.b` and `a.c`."""
    match = re.search(r"\{([a-z_,]+)\}", pattern)
    if match is None:
        return {pattern}
    before, after = pattern[: match.start()], pattern[match.end() :]
    return {key for part in match[1].split(",") for key in expand(before + part + after)}


def test_a_step_of_an_optimizer_is_a_step() -> None:
    run(
        """
        weight = torch.nn.Parameter(torch.ones(4))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for _ in range(3):
            block = alloc(MIB)
            weight.sum().backward()
            optimizer.step()
            free(block, MIB)
        alloc(MIB)
        assert stats()["steps"] == 3, stats()
        lowtide.torch.step()
        alloc(MIB)
        assert stats()["steps"] == 4, stats()
        """,
        INSTALL,
    )


@pytest.mark.parametrize("arguments", [{"device": False}, {"device": False, "cpu": True, "limit": "1GiB"}])
def test_what_would_do_nothing_is_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="hint: "):
        lowtide.torch.install(**arguments)  # type: ignore[arg-type]
