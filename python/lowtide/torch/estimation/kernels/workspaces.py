"""What CUDA kernels allocate besides their results: workspaces of the libraries, the partial results of reductions,
the copies
that sorting makes. The rules are those of the kernels' own code, and of cuDNN what it was seen to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from lowtide.torch.estimation.kernels import ctc
from lowtide.torch.estimation.kernels.reduction import partial_results

aten = torch.ops.aten

BLAS_WORKSPACE = 32 << 20
"""What PyTorch gives cuBLAS on a Hopper GPU, once for each thread that uses it."""

BLASLT_WORKSPACE = 1 << 20
"""The same for cuBLASLt, which adds a bias while it multiplies."""

HALVES = (torch.float16, torch.bfloat16)

Phases = list[list[int]]
"""Blocks that are there together, in the order in which such groups come and go."""


class Kernels:
    """Knows what operations need, and what they were given for good."""

    def __init__(self) -> None:
        self.rules: dict[Any, Callable[..., Phases]] = {}
        for packets, rule in RULES:
            for packet in packets:
                for name in packet.overloads() if packet is not None else ():
                    self.rules[getattr(packet, name)] = rule
        self.blas = {getattr(packet, name) for packet in BLAS for name in packet.overloads()}
        self.with_bias = {aten.addmm.default, aten.addmm.out}
        self.given: set[tuple[bool, int]] = set()

    def memory(self, func: Any, args: Any, inputs: list[Any], outputs: list[Any]) -> tuple[Phases, list[int]]:
        """What an operation takes and gives back, and what it keeps."""
        lasting = []
        if func in self.blas:
            is_backward = torch._C._current_autograd_node() is not None
            has_bias = func in self.with_bias and args[0].dim() == 1
            for size in (BLAS_WORKSPACE, BLASLT_WORKSPACE)[: 2 if has_bias else 1]:
                if (is_backward, size) not in self.given:
                    self.given.add((is_backward, size))
                    lasting.append(size)
        rule = self.rules.get(func)
        return (rule(args, inputs, outputs) if rule is not None and outputs else []), lasting


def storage_bytes(func: Any, inputs: list[Any], output: Any) -> int:
    """The bytes of a new result's storage: those of all losses where they were reduced to one, which PyTorch makes
    small afterwards without giving the rest back."""
    if func in LOSSES and output.dim() == 0:
        return torch.broadcast_shapes(*[leaf.shape for leaf in inputs[:2]]).numel() * output.element_size()
    return output.untyped_storage().nbytes()


def size_of(tensor: Any) -> int:
    """The bytes of a tensor's elements."""
    return tensor.numel() * tensor.element_size()


def reduce(args: Any, inputs: list[Any], outputs: list[Any]) -> Phases:
    """A reduction by several blocks for each result keeps their partial results in memory."""
    return [partial_results(inputs[0], outputs[0])]


def loss(args: Any, inputs: list[Any], outputs: list[Any]) -> Phases:
    """Losses of all elements, before they are reduced to one."""
    if outputs[0].dim():
        return []
    count = torch.broadcast_shapes(inputs[0].shape, inputs[1].shape).numel()
    return [[count * outputs[0].element_size(), *partial_results(inputs[0], outputs[0])]]


# Convolutions


def transposed(tensor: Any, by: int = 1) -> int:
    """The bytes of an image with its channels last, their number rounded up to a multiple of `by`."""
    channels = -(-tensor.shape[1] // by) * by
    return size_of(tensor) // max(tensor.shape[1], 1) * channels


def convolution_workspace(image: Any, weight: Any, result: Any, stride: Any, groups: int) -> int:
    """cuDNN's tensor cores want channels last, and it makes such copies of images that are not. Kernels of one pixel
    that walk over
    rows of whole vectors do without."""
    is_fast = image.dtype in HALVES or (image.dtype == torch.float32 and torch.backends.cudnn.allow_tf32)
    last = torch.channels_last_3d if image.dim() == 5 else torch.channels_last
    if not is_fast or groups != 1 or image.dim() not in (4, 5) or not torch.backends.cudnn.enabled:
        return 0
    if image.is_contiguous(memory_format=last) and not image.is_contiguous():
        return 0
    pixels = image.shape[2:].numel()
    is_point = weight.shape[2:].numel() == 1
    if is_point and all(step == 1 for step in stride) and pixels % 4 == 0:
        return 0
    by = 8 if image.dtype in HALVES else 1
    kernel = 0 if is_point else size_of(weight) // max(weight.shape[1], 1) * (-(-weight.shape[1] // by) * by)
    return transposed(image, by) + transposed(result) + kernel + 144


def convolution(args: Any, inputs: list[Any], outputs: list[Any]) -> Phases:
    """A convolution."""
    image, weight, _, stride = args[:4]
    return [[convolution_workspace(image, weight, outputs[0], stride, args[8])]]


def convolution_backward(args: Any, inputs: list[Any], outputs: list[Any]) -> Phases:
    """Its gradients: by the image, then by the weights."""
    gradient, image, weight, _, stride = args[:5]
    workspace = convolution_workspace(image, weight, gradient, stride, args[9])
    by_image, by_weight = args[10][0], args[10][1]
    extra = size_of(weight) if workspace and image.dtype in HALVES else 0
    if not workspace and is_narrow(image, weight, gradient):
        extra = transposed(image) + transposed(gradient, 4) + 144
    return [[workspace]] * bool(by_image) + [[workspace + extra]] * bool(by_weight)


def is_narrow(image: Any, weight: Any, gradient: Any) -> bool:
    """Whether the gradient by a kernel of one pixel has so few channels, and so many pixels to add up, that cuDNN makes
    copies with channels last all the same."""
    is_point = weight.dim() == 4 and weight.shape[2:].numel() == 1
    is_single = image.dtype == torch.float32 and torch.backends.cudnn.allow_tf32 and image.is_contiguous()
    return is_point and is_single and gradient.shape[1] < 16 and image.shape[2:].numel() >= 8192


# Attention


def attention_backward(args: Any, inputs: list[Any], outputs: list[Any]) -> Phases:
    """The gradient by the query in full precision, and by keys and values for every head of the query where these
    share."""
    _, query, key = args[:3]
    heads, rows, size = query.shape[1], query.shape[2], query.shape[3]
    statistics = query.shape[0] * heads * rows * 4
    spread = 2 * size_of(key) // key.shape[1] * heads if key.shape[1] != heads else 0
    return [[query.numel() // size * size * 4 + statistics + spread]]


def safe_softmax(args: Any, inputs: list[Any], outputs: list[Any]) -> Phases:
    """Looks for rows that are all masked."""
    count = args[0].numel()
    return [[count, count // max(args[0].shape[args[1]], 1), 4]]


# Sorting


def sorting(count: int, key_bytes: int) -> int:
    """A radix sort of pairs: a copy of keys and of places."""
    return count * (key_bytes + 8) + (8 << 10)


def sort(args: Any, inputs: list[Any], outputs: list[Any]) -> Phases:
    """Sorts along a dimension; long rows are sorted together with their places."""
    tensor = args[0]
    return [[sorting(tensor.numel(), tensor.element_size())]]


def index_put(args: Any, inputs: list[Any], outputs: list[Any]) -> Phases:
    """Adds at places that may repeat: the places are made linear and sorted first."""
    if len(args) < 4 or not args[3]:
        return []
    indices = [index for index in args[1] if index is not None]
    if not indices:
        return []
    count = torch.broadcast_shapes(*[index.shape for index in indices]).numel()
    return [[count * 8, count * 8, count * 8, sorting(count, 8)]]


def embedding_backward(args: Any, inputs: list[Any], outputs: list[Any]) -> Phases:
    """Sorts the rows that were looked up, and adds up parts of the gradients of each."""
    gradient, indices, rows = args[:3]
    count = indices.numel()
    if count <= 3072:
        return []
    distinct = rows * (1 - (1 - 1 / rows) ** count)
    parts = int(distinct + count / 10)
    sums = parts * gradient.shape[-1] * 4
    return [[count * 8, count * 8, sorting(count, 8)], [count * 8, count * 8, parts * 8, sums]]


def nonzero(args: Any, inputs: list[Any], outputs: list[Any]) -> Phases:
    """Counts first."""
    return [[4, 4096]]


def masked_select(args: Any, inputs: list[Any], outputs: list[Any]) -> Phases:
    """Finds the places under the mask, along every dimension."""
    places = args[1].dim() * outputs[0].numel() * 8
    return [[4, 4096, places], [places]]


def logsumexp(args: Any, inputs: list[Any], outputs: list[Any]) -> Phases:
    """The largest of each sum, and the exponentials of what lies below."""
    return [[size_of(outputs[0]), size_of(args[0])]]


def packet(path: str) -> Any:
    """An operation by its name, where this PyTorch has it."""
    return getattr(aten, path, None)


LOSSES = {aten.mse_loss.default, aten.smooth_l1_loss.default}
BLAS = [aten.mm, aten.addmm, aten.bmm, aten.baddbmm]

RULES: list[tuple[list[Any], Callable[..., Phases]]] = [
    ([aten.sum, aten.mean, aten.amax, aten.amin, aten.var, aten.std, aten.var_mean, aten.prod, aten.any, aten.all,
      aten.linalg_vector_norm, aten.norm], reduce),
    ([aten.mse_loss, aten.smooth_l1_loss], loss),
    ([aten.convolution], convolution),
    ([aten.convolution_backward], convolution_backward),
    ([aten._scaled_dot_product_flash_attention_backward, packet("_scaled_dot_product_efficient_attention_backward"),
      packet("_scaled_dot_product_cudnn_attention_backward")], attention_backward),
    ([packet("_safe_softmax")], safe_softmax),
    ([aten.sort, aten.argsort], sort),
    ([aten.index_put, aten.index_put_, aten._index_put_impl_, aten._unsafe_index_put], index_put),
    ([aten.embedding_dense_backward], embedding_backward),
    ([aten.nonzero], nonzero),
    ([aten.masked_select], masked_select),
    ([aten.logsumexp], logsumexp),
    *ctc.RULES,
]
