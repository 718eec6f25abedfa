"""Sees every operation on fake tensors: notes the memory that it takes on the device and when that is let go, keeps a
shadow of
small values, and carries out for real what depends on values."""

from __future__ import annotations

import sys
import weakref
from typing import Any

import torch
import torch.autograd.graph
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

from lowtide.torch.estimation.fake.shadow import DEEPEST, LARGEST, Recipe, Shadow
from lowtide.torch.estimation.kernels import ctc, workspaces
from lowtide.torch.estimation.tracing.ledger import Block, Ledger
from lowtide.torch.estimation.tracing.sites import Sites

aten = torch.ops.aten
HOST = torch.device("cpu")
META = torch.device("meta")
DEVICE = torch.ops.prim.device.default
ENGINE = torch.autograd.graph._engine_run_backward.__code__
EAGER = 1 << 18
"""Shadows of up to so many elements are worked out at once where they are written through views."""

BY_MASK = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._unsafe_index.Tensor,
           aten._index_put_impl_.default, aten._unsafe_index_put.default}
IN_PLACE = {
    aten.index_put.default: aten.index_put_.default,
    aten.scatter.src: aten.scatter_.src,
    aten.scatter.value: aten.scatter_.value,
    aten.scatter_add.default: aten.scatter_add_.default,
    aten.index_add.default: aten.index_add_.default,
    aten.index_fill.int_Scalar: aten.index_fill_.int_Scalar,
    aten.masked_scatter.default: aten.masked_scatter_.default,
}
"""What autograd's formulas do in place on a tensor that they just made, unless it is of a class of its own."""

UNFORESEEABLE = (DataDependentOutputException, DynamicOutputShapeException, UnsupportedOperatorException)


class Watcher(TorchDispatchMode):
    """The mode above the fake one."""

    def __init__(self, mode: FakeTensorMode, ledger: Ledger, device: torch.device) -> None:
        super().__init__()
        self.mode = mode
        self.ledger = ledger
        self.device = device
        self.sites = Sites()
        self.kernels = workspaces.Kernels()
        self.dice = torch.Generator().manual_seed(0)
        self.assumptions: dict[str, int] = {}
        self.category = "activation"
        self.storages: dict[int, tuple[weakref.ref[Any], Block | None]] = {}
        self.shared: set[int] = set()
        self.fresh: set[int] = set()
        self.leaves: list[Any] = []
        self.is_hosted = False
        self.newest: weakref.ref[Any] | None = None

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is DEVICE:
            return self.device_of(args[0])
        kwargs = kwargs or {}
        if kwargs.get("device") == HOST and sys._getframe(1).f_code is ENGINE:
            kwargs = {**kwargs, "device": self.device}
        if func.namespace in ("prim", "profiler"):
            return func(*args, **kwargs)
        if torch.is_inference_mode_enabled() and func._can_decompose():
            with self:  # Without autograd nothing took it apart on the way here, and its parts have rules.
                return func.decompose(*args, **kwargs)
        if func in IN_PLACE and args[0] is self.latest() and sys._getframe(1).f_code is ENGINE:
            func = IN_PLACE[func]
        return self.perform(func, args, kwargs)

    def device_of(self, tensor: FakeTensor) -> torch.device:
        """What C++ hears when it asks for a tensor's device. Autograd must not take the device for a real one: it
        asks once
        for each result that it will differentiate, and its engine asks all the time."""
        if tensor.fake_mode.in_kernel_invocation:
            return META
        if id(tensor) in self.fresh:
            self.fresh.discard(id(tensor))
            return HOST
        return HOST if self.is_hosted or sys._getframe(2).f_code is ENGINE else tensor.fake_device

    def perform(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Carries an operation out on fake tensors and notes what comes of it."""
        self.fresh.clear()
        if func is aten._local_scalar_dense.default:
            value = self.value_of(args[0], "item")
            with _disable_current_modes():
                return value.item()
        if func in BY_MASK:
            args = self.masks_as_indices(args)
        inputs = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        try:
            if func.namespace == "torchvision" and func is torch.ops.torchvision.nms.default:
                raise DynamicOutputShapeException(func)
            kernel = ctc.RESULTS.get(func)
            result = func(*args, **kwargs) if kernel is None else kernel(self, *args, **kwargs)
        except UNFORESEEABLE:
            result = self.carry_out(func, args, kwargs, inputs)
        outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, FakeTensor)]
        self.account(func, args, inputs, outputs)
        self.follow(func, args, kwargs, inputs, outputs)
        self.newest = weakref.ref(outputs[0]) if outputs else None
        is_differentiated = torch.is_grad_enabled() or func.namespace != "aten"
        if is_differentiated and any(leaf.requires_grad for leaf in inputs):
            self.announce(outputs)
            if func._schema.is_mutable:
                self.announce([leaf._base for leaf in inputs if leaf._is_view()])
        return result

    def latest(self) -> Any:
        """The result of the operation before, while it is there."""
        return self.newest() if self.newest is not None else None

    def announce(self, tensors: list[Any]) -> None:
        """Says that autograd will ask for the device of these next."""
        self.fresh.update(id(tensor) for tensor in tensors)

    # Memory

    def account(self, func: Any, args: Any, inputs: list[Any], outputs: list[FakeTensor]) -> None:
        """Notes the memory that an operation's results and its kernels take."""
        site = ""
        is_on_device = False
        for output in outputs:
            storage = output.untyped_storage()
            key = storage._cdata
            if key in self.storages:
                if not any(output is leaf for leaf in inputs):
                    self.shared.add(key)
                continue
            block = None
            if output.fake_device.type == "cuda":
                is_on_device = True
                site = site or self.sites.here()
                size = workspaces.storage_bytes(func, inputs, output)
                block = self.ledger.allocate(size, site, name_of(func), self.category)
            self.watch(storage, key, block)
        is_on_device = is_on_device or any(leaf.fake_device.type == "cuda" for leaf in outputs[:1])
        if is_on_device:
            phases, lasting = self.kernels.memory(func, args, inputs, outputs)
            if phases or lasting:
                name = name_of(func)
                site = site or self.sites.here()
                for size in lasting:
                    self.ledger.allocate(size, site, name, "workspace")
                for sizes in phases:
                    for block in [self.ledger.allocate(size, site, name, "workspace") for size in sizes]:
                        self.ledger.free(block)

    def watch(self, storage: Any, key: int, block: Block | None) -> None:
        """Notes the end of a storage when it comes."""

        def ended(_: Any) -> None:
            self.storages.pop(key, None)
            self.shared.discard(key)
            if block is not None:
                self.ledger.free(block)

        self.storages[key] = (weakref.ref(storage, ended), block)

    def block_of(self, tensor: torch.Tensor) -> Block | None:
        """The block that a tensor lies in."""
        entry = self.storages.get(tensor.untyped_storage()._cdata)
        return entry[1] if entry else None

    def label(self, tensors: Any, category: str) -> None:
        """Says what the blocks of these tensors are for."""
        for tensor in tensors:
            if isinstance(tensor, FakeTensor) and (block := self.block_of(tensor)) is not None:
                block.category = category

    # Values

    def shadow_of(self, tensor: torch.Tensor) -> Shadow | None:
        """A tensor's shadow, where it has one."""
        if isinstance(tensor, FakeTensor):
            shadow = tensor.__dict__.get("lowtide_shadow")
            return shadow
        return Shadow.known(tensor)

    def value_of(self, tensor: torch.Tensor, name: str) -> torch.Tensor:
        """A tensor's value, made up where nothing is known about it."""
        shadow = self.shadow_of(tensor)
        if shadow is None:
            shadow = Shadow.made_up(tuple(tensor.shape), tensor.dtype)
            tensor.lowtide_shadow = shadow  # type: ignore[attr-defined]
        value = shadow.resolve(self.dice)
        if shadow.is_assumed:
            kind = str(tensor.dtype).removeprefix("torch.")
            text = f"{name} at {self.sites.here()} of made-up {kind} values"
            self.assumptions[text] = self.assumptions.get(text, 0) + 1
        return value

    def carry_out(self, func: Any, args: Any, kwargs: Any, inputs: list[Any]) -> Any:
        """Carries an operation out on values, because the shapes of its results depend on them."""
        arguments, keywords = tree_map(
            lambda leaf: self.value_of(leaf, name_of(func)) if isinstance(leaf, torch.Tensor) else leaf, (args, kwargs)
        )
        device = next((leaf.fake_device for leaf in inputs if isinstance(leaf, FakeTensor)), HOST)
        with _disable_current_modes(), torch.no_grad():
            results = func(*arguments, **on_host(keywords))

        def faked(leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            fake = torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device=device)
            fake.lowtide_shadow = Shadow.known(leaf)  # type: ignore[attr-defined]
            return fake

        with self.mode:
            return tree_map(faked, results)

    def masks_as_indices(self, args: Any) -> Any:
        """The arguments of an indexing with every mask replaced by the indices that it stands for, as the kernels do
        it."""
        indices: list[Any] = []
        for index in args[1]:
            if isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8):
                places = self.perform(aten.nonzero.default, (index,), {})
                indices.extend(self.perform(aten.select.int, (places, 1, axis), {}) for axis in range(index.dim()))
            else:
                indices.append(index)
        return (args[0], indices, *args[2:])

    def follow(self, func: Any, args: Any, kwargs: Any, inputs: list[Any], outputs: list[FakeTensor]) -> None:
        """Gives the results of an operation their shadows."""
        if func._schema.is_mutable:
            self.follow_writes(func, args, kwargs, inputs)
            return
        if not outputs:
            return
        if outputs[0].__dict__.get("lowtide_shadow") is not None and not any(outputs[0] is leaf for leaf in inputs):
            return
        small = [leaf for leaf in outputs if leaf.numel() <= LARGEST]
        if not small:
            return
        needs = [self.shadow_of(leaf) for leaf in inputs]
        depth = 1 + max((need.depth for need in needs if need is not None), default=0)
        if any(need is None for need in needs) or len(small) != len(outputs):
            for output in small:
                made = Shadow.made_up(tuple(output.shape), output.dtype, bound_of(func, args))
                output.lowtide_shadow = made  # type: ignore[attr-defined]
            return
        if depth > DEEPEST and all(leaf.dtype.is_floating_point for leaf in outputs):
            for output in outputs:
                output.lowtide_shadow = Shadow.made_up(tuple(output.shape), output.dtype)  # type: ignore[attr-defined]
            return
        self.prepare(func, args, kwargs, outputs, depth, None)
        if depth > DEEPEST:
            for output in outputs:
                output.lowtide_shadow.resolve(self.dice)  # type: ignore[attr-defined]
                output.lowtide_shadow.depth = 0  # type: ignore[attr-defined]

    def prepare(self, func: Any, args: Any, kwargs: Any, outputs: list[Any], depth: int, written: Any) -> None:
        """Gives `outputs` shadows that are worked out when they are needed."""
        shadow = lambda leaf: self.shadow_of(leaf) if isinstance(leaf, torch.Tensor) else leaf  # noqa: E731
        arguments, keywords = tree_map(shadow, (args, on_host(kwargs)))
        needs = [leaf for leaf in tree_leaves((arguments, keywords)) if isinstance(leaf, Shadow)]
        recipe = Recipe(HARMLESS.get(func, func), arguments, keywords, needs)
        recipe.in_place = written
        for output in outputs:
            made = Shadow(tuple(output.shape), output.dtype)
            made.recipe, made.depth, made.bound = recipe, depth, bound_of(func, args)
            recipe.makes.append(made)
            output.lowtide_shadow = made

    def follow_writes(self, func: Any, args: Any, kwargs: Any, inputs: list[Any]) -> None:
        """Brings the shadows of what an operation writes to up to date."""
        written = [leaf for leaf in written_by(func, args, kwargs) if isinstance(leaf, FakeTensor)]
        shadowed = [leaf for leaf in written if self.shadow_of(leaf) is not None]
        if not shadowed:
            return
        needs = [self.shadow_of(leaf) for leaf in inputs]
        is_simple = len(written) == 1 and written[0] is (args[0] if args else None)
        is_shared = any(leaf.untyped_storage()._cdata in self.shared for leaf in written)
        if all(need is not None for need in needs):
            if is_simple and not is_shared:
                depth = 1 + max(need.depth for need in needs)  # type: ignore[union-attr]
                if depth <= DEEPEST:
                    self.prepare(func, args, kwargs, written, depth, self.shadow_of(written[0]))
                    return
            if sum(leaf.numel() for leaf in inputs) <= EAGER and self.write_through(func, args, kwargs):
                return
        for leaf in shadowed:
            leaf.lowtide_shadow = Shadow.made_up(tuple(leaf.shape), leaf.dtype)  # type: ignore[attr-defined]

    def write_through(self, func: Any, args: Any, kwargs: Any) -> bool:
        """Carries a write out on values, which views of them share."""

        def value(leaf: Any) -> Any:
            shadow = self.shadow_of(leaf) if isinstance(leaf, torch.Tensor) else None
            return leaf if shadow is None else shadow.resolve(self.dice)

        arguments, keywords = tree_map(value, (args, on_host(kwargs)))
        with _disable_current_modes(), torch.no_grad():
            try:
                func(*arguments, **keywords)
            except (RuntimeError, NotImplementedError, TypeError, IndexError, ValueError):
                return False
        for leaf in tree_leaves(written_by(func, args, kwargs)):
            if (shadow := self.shadow_of(leaf)) is not None:
                shadow.depth = 0
        return True


def name_of(func: Any) -> str:
    """An operation's name."""
    return func._schema.name.removeprefix("aten::")


def zeros(*args: Any, **kwargs: Any) -> torch.Tensor:
    """What stands for memory whose values nobody knows yet."""
    return torch.empty(*args, **kwargs).zero_()


HARMLESS = {aten.empty.memory_format: zeros}


def on_host(keywords: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments for an operation on the CPU."""
    if "device" not in keywords and "pin_memory" not in keywords:
        return keywords
    return {name: HOST if name == "device" and value is not None else value
            for name, value in keywords.items() if name != "pin_memory"}


def written_by(func: Any, args: Any, kwargs: Any) -> list[Any]:
    """The tensors that an operation writes to."""
    written: list[Any] = []
    for place, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = kwargs.get(argument.name) if argument.kwarg_only or place >= len(args) else args[place]
            written.extend(leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor))
    return written


BY_PLACE = {
    aten.argmax.default, aten.argmin.default, aten.topk.default, aten.sort.default, aten.sort.stable, aten.max.dim,
    aten.min.dim, aten.multinomial.default, aten.argsort.default, aten.kthvalue.default, aten.median.dim,
}


def bound_of(func: Any, args: Any) -> int | None:
    """What the numbers in a result lie below, where they are places along a dimension."""
    if func not in BY_PLACE:
        return None
    tensor = args[0]
    named = {argument.name: value for argument, value in zip(func._schema.arguments, args, strict=False)}
    dimension = named.get("dim", -1)
    if dimension is None or tensor.dim() == 0:
        return int(tensor.numel())
    return int(tensor.shape[dimension])
