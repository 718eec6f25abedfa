"""Attention as CUDA serves it. Which kernel PyTorch takes depends on the device, so that the choice is made here; the
memory of
the flash and cuDNN kernels is the same."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as functional

from lowtide.torch.estimation.fake.device import replace

aten = torch.ops.aten


def attend(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Any:
    """`scaled_dot_product_attention` by the kernel that a recent GPU would use; autocast takes effect before, and not
    within."""
    if torch.is_autocast_enabled("cuda"):
        lower = torch.get_autocast_dtype("cuda")
        query, key, value = (tensor.to(lower) for tensor in (query, key, value))
        if attn_mask is not None and attn_mask.is_floating_point():
            attn_mask = attn_mask.to(lower)
    with torch.autocast("cuda", enabled=False):
        kind = choose(query, key, value, attn_mask, enable_gqa)
        if kind == "flash":
            return flash(query, key, value, dropout_p, is_causal, scale)
        if kind == "efficient":
            return efficient(query, key, value, attn_mask, dropout_p, is_causal, scale)
        return by_formula(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)


def choose(query: Any, key: Any, value: Any, mask: Any, enable_gqa: bool) -> str:
    """The kernel: flash, efficient or math. The fused ones want the last dimension dense, that of the mask too."""
    cuda = torch.backends.cuda
    dtype = query.dtype
    is_usual = query.dim() == key.dim() == value.dim() == 4 and query.shape[-1] == key.shape[-1]
    if not is_usual or query.is_nested or 0 in query.shape:
        return "math"
    if any(tensor.stride(-1) != 1 for tensor in (query, key, value, mask) if tensor is not None and tensor.dim()):
        return "math"
    same_heads = query.shape[1] == key.shape[1] == value.shape[1]
    same_size = key.shape[-1] == value.shape[-1]
    is_half = dtype in (torch.float16, torch.bfloat16)
    if mask is None and is_half and query.shape[-1] <= 256 and (same_heads or enable_gqa):
        if (cuda.flash_sdp_enabled() or cuda.cudnn_sdp_enabled()) and same_size:
            return "flash"
    if cuda.mem_efficient_sdp_enabled() and (is_half or dtype == torch.float32) and same_heads:
        if not (mask is not None and mask.requires_grad and not query.requires_grad):
            return "efficient"
    return "math"


def flash(query: Any, key: Any, value: Any, dropout: float, is_causal: bool, scale: float | None) -> Any:
    """Flash attention; heads whose size is no multiple of eight are padded, as PyTorch does."""
    size = query.shape[-1]
    scale = scale if scale is not None else 1 / math.sqrt(size)
    if size % 8:
        query, key, value = (functional.pad(tensor, [0, 8 - size % 8]) for tensor in (query, key, value))
    output = aten._scaled_dot_product_flash_attention(query, key, value, dropout, is_causal, False, scale=scale)[0]
    return output[..., :size] if size % 8 else output


def as_bias(mask: Any, dtype: torch.dtype) -> Any:
    """A mask as what is added to the scores."""
    if mask.dtype == torch.bool:
        return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask.logical_not(), float("-inf"))
    return mask


def by_formula(
    query: Any, key: Any, value: Any, mask: Any, dropout: float, is_causal: bool, scale: float | None, enable_gqa: bool
) -> Any:
    """Attention by separate kernels, with all scores in memory; halves are worked on in full precision."""
    dtype = query.dtype
    scale = math.sqrt(scale if scale is not None else 1 / math.sqrt(query.shape[-1]))
    if is_causal:
        mask = query.new_ones(query.shape[-2], key.shape[-2], dtype=torch.bool).tril()
    if mask is not None:
        mask = as_bias(mask, dtype)
    is_half = dtype in (torch.float16, torch.bfloat16)
    if is_half and not torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed():
        query, key, value = query.float(), key.float(), value.float()
    query = query * scale
    if enable_gqa:
        shared = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(shared, -3), value.repeat_interleave(shared, -3)
    scores = torch.matmul(query, key.transpose(-2, -1) * scale)
    if mask is not None:
        scores.add_(mask)
    scores = torch._safe_softmax(scores, -1)
    if dropout > 0:
        scores = functional.dropout(scores, dropout)
    returned = scores.to(dtype)
    output = torch.matmul(scores, value).to(dtype)
    del returned
    return output


def efficient(
    query: Any, key: Any, value: Any, mask: Any, dropout: float, is_causal: bool, scale: float | None
) -> Any:
    """Attention with a mask, which becomes a bias; only in full precision are its rows padded."""
    if mask is not None:
        mask = as_bias(mask, query.dtype).to(query.dtype)
        if query.dtype == torch.float32 and (rest := mask.shape[-1] % 16):
            mask = functional.pad(mask, [0, 16 - rest])[..., : mask.shape[-1]]
        mask = mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    needs_backward = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, key, value))
    return aten._scaled_dot_product_efficient_attention(
        query, key, value, mask, needs_backward, dropout, is_causal, scale=scale
    )[0]


@contextlib.contextmanager
def attention() -> Iterator[None]:
    """Has PyTorch attend as here until the block ends, and linear layers add their bias in place where they do so with
    tensors that are no subclass: rows that are not dense are multiplied first."""
    native, native_linear = functional.scaled_dot_product_attention, functional.linear

    def served(query: Any, *arguments: Any, **keywords: Any) -> Any:
        return (attend if query.device.type == "cuda" else native)(query, *arguments, **keywords)

    def linear(input: Any, weight: Any, bias: Any = None) -> Any:
        is_dense = input.dim() <= 2 or input.is_contiguous()
        if bias is None or is_dense or input.device.type != "cuda":
            return native_linear(input, weight, bias)
        return torch.matmul(input, weight.t()).add_(bias)

    with contextlib.ExitStack() as stack:
        for name, function in (("scaled_dot_product_attention", served), ("linear", linear)):
            replace(stack, functional, name, function)
            replace(stack, torch._C._nn, name, function)
        yield
