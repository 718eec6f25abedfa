"""Makes PyTorch believe for a while that there is one GPU: what Python asks `torch.cuda` is answered as an H200
would, and
nothing reaches a driver. Tensors that are made meanwhile are fake."""

from __future__ import annotations

import collections
import contextlib
import random
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._dynamo  # before anything is replaced: it takes stock of PyTorch when it is first imported
import torch._subclasses.fake_tensor as fake_tensor
import torch.optim.optimizer as optimizers
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from lowtide.torch.estimation.tracing.ledger import Ledger

MULTIPROCESSORS = 132
CAPABILITY = (9, 0)

GRAPHS = ("CUDAGraph", "graph", "make_graphed_callables", "graph_pool_handle")


class FakeMode(FakeTensorMode):
    """Fake tensors that never touch a device, whether there is one or not."""

    avoid_device_init = True  # type: ignore[assignment]


def fake_mode() -> FakeMode:
    """A mode whose tensors are fake."""
    return FakeMode(allow_fallback_kernels=False, allow_non_fake_inputs=True)


@contextlib.contextmanager
def repeatable() -> Iterator[None]:
    """Draws the same random numbers every time, and leaves the program's own as they are."""
    numpy = sys.modules.get("numpy")
    drawn = random.getstate(), torch.get_rng_state(), numpy.random.get_state() if numpy is not None else None
    random.seed(0)
    torch.default_generator.manual_seed(0)
    if numpy is not None:
        numpy.random.seed(0)
    try:
        yield
    finally:
        random.setstate(drawn[0])
        torch.set_rng_state(drawn[1])
        if numpy is not None:
            numpy.random.set_state(drawn[2])


def properties(memory: int) -> Any:
    """What `torch.cuda.get_device_properties` tells."""
    return types.SimpleNamespace(
        name="NVIDIA H200", major=CAPABILITY[0], minor=CAPABILITY[1], total_memory=memory, is_integrated=0,
        multi_processor_count=MULTIPROCESSORS, max_threads_per_multi_processor=2048, warp_size=32,
        regs_per_multiprocessor=65536, shared_memory_per_block=49152, shared_memory_per_block_optin=232448,
        L2_cache_size=60 << 20, gcnArchName="", is_multi_gpu_board=0,
    )


def statistics(ledger: Ledger) -> dict[str, int]:
    """What `torch.cuda.memory_stats` tells: how much is alive, and zero for anything else."""
    told: dict[str, int] = collections.defaultdict(int)
    for kind in ("allocated_bytes", "active_bytes", "reserved_bytes", "requested_bytes"):
        told[f"{kind}.all.current"], told[f"{kind}.all.peak"] = ledger.alive, ledger.peak
    return told


class Stream:
    """The only stream there is."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self.device = torch.device("cuda", 0)
        self.stream_id = self.cuda_stream = 0

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: Any) -> None:
        return None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments, **keywords: True if name == "query" else 0.0 if name == "elapsed_time" else None


class Refused(RuntimeError):
    """What a program does cannot be estimated."""


def refused(name: str) -> type:
    """What stands for a part of CUDA graphs, and cannot be made."""

    def __init__(self: Any, *arguments: Any, **keywords: Any) -> None:
        raise Refused(
            f"torch.cuda.{name} cannot be estimated: nothing is captured without a GPU, and what a graph takes besides "
            "its pool is known to the driver alone\n"
            "hint: estimate the step without the capture; the graph's private pool holds about the peak of what is "
            "captured"
        )

    return type(name, (), {"__init__": __init__})


@contextlib.contextmanager
def pretend(ledger: Ledger, memory: int) -> Iterator[None]:
    """Answers for a GPU until the block ends."""
    cuda = torch.cuda
    nothing = lambda *arguments, **keywords: None  # noqa: E731
    always = lambda value: lambda *arguments, **keywords: value  # noqa: E731
    stream = Stream()
    answers: list[tuple[Any, str, Any]] = [
        (cuda, "is_available", always(True)),
        (cuda, "_is_compiled", always(True)),
        (cuda, "is_initialized", always(True)),
        (cuda, "_lazy_init", nothing),
        (cuda, "_lazy_call", nothing),
        (cuda, "init", nothing),
        (cuda, "device_count", always(1)),
        (cuda, "current_device", always(0)),
        (cuda, "set_device", nothing),
        (cuda, "get_device_capability", always(CAPABILITY)),
        (cuda, "get_device_name", always("NVIDIA H200")),
        (cuda, "get_device_properties", always(properties(memory))),
        (cuda, "get_arch_list", always(["sm_90"])),
        (cuda, "is_bf16_supported", always(True)),
        (cuda, "is_current_stream_capturing", always(False)),
        (cuda, "synchronize", nothing),
        (cuda, "empty_cache", nothing),
        (cuda, "ipc_collect", nothing),
        (cuda, "reset_peak_memory_stats", nothing),
        (cuda, "reset_accumulated_memory_stats", nothing),
        (cuda, "memory_stats", lambda *arguments, **keywords: statistics(ledger)),
        (cuda, "memory_summary", always("")),
        (cuda, "memory_snapshot", always([])),
        (cuda.memory, "memory_stats", lambda *arguments, **keywords: statistics(ledger)),
        (cuda.memory, "memory_summary", always("")),
        (cuda.memory, "memory_snapshot", always([])),
        (cuda, "memory_allocated", lambda *arguments: ledger.alive),
        (cuda, "max_memory_allocated", lambda *arguments: ledger.peak),
        (cuda, "memory_reserved", lambda *arguments: ledger.alive),
        (cuda, "max_memory_reserved", lambda *arguments: ledger.peak),
        (cuda, "mem_get_info", lambda *arguments: (memory - ledger.alive, memory)),
        (cuda, "current_stream", always(stream)),
        (cuda, "default_stream", always(stream)),
        (cuda, "stream", always(stream)),
        (cuda, "set_stream", nothing),
        (cuda, "Stream", Stream),
        (cuda, "Event", Stream),
        (cuda, "get_rng_state", lambda *arguments: torch.zeros(16, dtype=torch.uint8)),
        (cuda, "set_rng_state", nothing),
        (cuda, "get_rng_state_all", lambda *arguments: [torch.zeros(16, dtype=torch.uint8)]),
        (cuda, "set_rng_state_all", nothing),
        (cuda, "manual_seed", nothing),
        (cuda, "manual_seed_all", nothing),
        (cuda.device, "__enter__", nothing),
        (cuda.device, "__exit__", always(False)),
        (cuda.amp.common, "amp_definitely_not_available", always(False)),
        *[(owner, name, refused(name)) for owner in (cuda, cuda.graphs) for name in GRAPHS],
        (fake_tensor, "init_gpu_context", nothing),
        (optimizers, "_foreach_supported_types", [*optimizers._foreach_supported_types, FakeTensor]),
    ]
    with contextlib.ExitStack() as stack:
        for owner, name, answer in answers:
            replace(stack, owner, name, answer)
        yield


@contextlib.contextmanager
def untraced() -> Iterator[None]:
    """Has libraries take fake tensors for real ones where they would take other ways for the sake of a compiler."""
    with contextlib.ExitStack() as stack:
        if (module := sys.modules.get("transformers.utils.import_utils")) is not None:
            replace(stack, module, "is_fake_tensor", lambda tensor: False)
        if (module := sys.modules.get("transformers.generation.stopping_criteria")) is not None:
            replace(stack, module.EosTokenCriteria, "__call__", unended)
        yield


def unended(self: Any, tokens: Any, scores: Any, **keywords: Any) -> Any:
    """Says that no text has ended: made-up tokens must not make a generation shorter than it can be."""
    return torch.zeros(tokens.shape[0], device=tokens.device, dtype=torch.bool)


def replace(stack: contextlib.ExitStack, owner: Any, name: str, value: Any) -> None:
    """Gives `owner` another `name` until `stack` unwinds; one that it does not have is left alone."""
    if not hasattr(owner, name):
        return
    is_own = name in vars(owner)
    before = vars(owner)[name] if is_own else None
    setattr(owner, name, value)
    stack.callback(lambda: setattr(owner, name, before) if is_own else delattr(owner, name))
