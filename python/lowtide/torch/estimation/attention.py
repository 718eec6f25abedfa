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

from lowtide.torch.estimation.pretence import replace

aten = torch.ops.aten


def attend(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Any:
    """`scaled_dot_product_attention` by the kernel that a recent GPU would use."""
    kind = choose(query, key, value, attn_mask, enable_gqa)
    if kind == "flash":
        return flash(query, key, value, dropout_p, is_causal, scale)
    if kind == "efficient":
        return efficient(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    if torch.is_autocast_enabled("cuda"):
        query, key, value = (tensor.to(torch.get_autocast_dtype("cuda")) for tensor in (query, key, value))
    return aten._scaled_dot_product_attention_math(
        query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
    )[0]


def choose(query: Any, key: Any, value: Any, mask: Any, enable_gqa: bool) -> str:
    """The kernel: flash, efficient or math."""
    cuda = torch.backends.cuda
    dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else query.dtype
    is_usual = query.dim() == key.dim() == value.dim() == 4 and query.shape[-1] == key.shape[-1]
    if not is_usual or query.is_nested or 0 in query.shape:
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
    if torch.is_autocast_enabled("cuda"):
        query, key, value = (tensor.to(torch.get_autocast_dtype("cuda")) for tensor in (query, key, value))
    output = aten._scaled_dot_product_flash_attention(query, key, value, dropout, is_causal, False, scale=scale)[0]
    return output[..., :size] if size % 8 else output


def efficient(
    query: Any, key: Any, value: Any, mask: Any, dropout: float, is_causal: bool, scale: float | None, enable_gqa: bool
) -> Any:
    """Attention with a mask, which becomes a bias; only in full precision are its rows padded."""
    if torch.is_autocast_enabled("cuda"):
        query, key, value = (tensor.to(torch.get_autocast_dtype("cuda")) for tensor in (query, key, value))
    if mask is not None:
        if mask.dtype == torch.bool:
            mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(mask.logical_not(), float("-inf"))
        else:
            mask = mask.to(query.dtype)
        if query.dtype == torch.float32 and (rest := mask.shape[-1] % 16):
            mask = functional.pad(mask, [0, 16 - rest])[..., : mask.shape[-1]]
        mask = mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    needs_backward = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, key, value))
    return aten._scaled_dot_product_efficient_attention(
        query, key, value, mask, needs_backward, dropout, is_causal, scale=scale
    )[0]


@contextlib.contextmanager
def attention() -> Iterator[None]:
    """Has PyTorch attend as here until the block ends."""
    native = functional.scaled_dot_product_attention

    def served(query: Any, *arguments: Any, **keywords: Any) -> Any:
        return (attend if query.device.type == "cuda" else native)(query, *arguments, **keywords)

    with contextlib.ExitStack() as stack:
        replace(stack, functional, "scaled_dot_product_attention", served)
        replace(stack, torch._C._nn, "scaled_dot_product_attention", served)
        yield
