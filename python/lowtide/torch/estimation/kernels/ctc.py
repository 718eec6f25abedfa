"""The CTC loss as CUDA computes it. PyTorch has no fake kernels for it: they are here, with the choice between its own
kernel and cuDNN's, which depends on the lengths, and what either allocates."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from lowtide.torch.estimation.fake.device import Refused, replace

aten = torch.ops.aten

LONGEST = 255
"""Targets of more labels are too long for cuDNN, which makes room for so many where lengths are on the device."""

INEXACT = "what cuDNN works on in the CTC loss is approximate"


def numbers(watcher: Any, lengths: Any) -> list[int]:
    """Lengths as numbers, whether they are given as such or as a tensor."""
    if not isinstance(lengths, torch.Tensor):
        return [int(length) for length in lengths]
    value = watcher.value_of(lengths, "ctc_loss")
    with _disable_current_modes():
        return [int(length) for length in value.reshape(-1).tolist()]


def uses_cudnn(
    watcher: Any, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int
) -> bool:
    """Whether PyTorch has cuDNN compute the loss: never for targets on the device with lengths on the host."""
    is_wanted = torch.backends.cudnn.enabled and blank == 0 and targets.dim() == 1 and targets.dtype == torch.int32
    is_usual = log_probs.dtype == torch.float32 and log_probs.dim() == 3 and targets.is_contiguous()
    if not (is_wanted and is_usual):
        return False
    if isinstance(input_lengths, torch.Tensor):
        if input_lengths.dtype != torch.int32 or target_lengths.dtype != torch.int32:
            return False
    elif targets.device.type != "cpu":
        return False
    times, counts = numbers(watcher, input_lengths), numbers(watcher, target_lengths)
    if not isinstance(input_lengths, torch.Tensor) and any(time != log_probs.shape[0] for time in times):
        return False
    return all(count <= min(time, LONGEST) for time, count in zip(times, counts, strict=False))


@contextlib.contextmanager
def ctc(watcher: Any) -> Iterator[None]:
    """Has `torch.ctc_loss` take the steps that it takes on the device until the block ends: those for tensors of
    lengths are others where the tensors are fake, and lists of lengths it would copy from memory that is not there."""
    native = torch.ctc_loss

    def loss(
        log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: int = 1,
        zero_infinity: bool = False,
    ) -> Any:
        if log_probs.device.type != "cuda":
            return native(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
        is_batched = log_probs.dim() == 3
        log_probs = log_probs if is_batched else log_probs.unsqueeze(1)
        is_cudnn = uses_cudnn(watcher, log_probs, targets, input_lengths, target_lengths, blank)
        if is_cudnn:
            lengths = input_lengths, target_lengths
            losses = aten._cudnn_ctc_loss(log_probs, targets, *lengths, blank, True, zero_infinity)[0]
        else:
            target_lengths = numbers(watcher, target_lengths)
            lengths = [log_probs.shape[0]] * log_probs.shape[1], target_lengths
            targets = targets.to(log_probs.device, torch.int64)
            losses = aten._ctc_loss(log_probs, targets, *lengths, blank, zero_infinity)[0]
            if zero_infinity:
                losses = torch.where(losses == float("inf"), losses.new_zeros(()), losses)
        if reduction == 1:
            if not isinstance(target_lengths, torch.Tensor):
                target_lengths = torch.tensor(target_lengths, dtype=losses.dtype, device=losses.device)
            return (losses / target_lengths.clamp_min(1)).mean()
        return losses.sum() if reduction == 2 else losses if is_batched else losses.squeeze(0)

    with contextlib.ExitStack() as stack:
        replace(stack, torch, "ctc_loss", loss)
        yield


def never(watcher: Any, *args: Any) -> bool:
    """What belongs to other devices is not used."""
    return False


def native(
    watcher: Any, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[Any, Any]:
    """The losses, and the logarithms of the forward variables, which the backward pass needs."""
    if log_probs.dtype not in (torch.float32, torch.float64):
        raise Refused(
            f"the CTC loss has no kernel for {log_probs.dtype} on a GPU\nhint: pass log_probs.float()"
        )
    times, batch = log_probs.shape[:2]
    longest = max(numbers(watcher, target_lengths), default=0)
    return log_probs.new_empty(batch), log_probs.new_empty(batch, times, 2 * longest + 1)


def native_backward(watcher: Any, grad: Any, log_probs: Any, *rest: Any, **keywords: Any) -> Any:
    """The gradient by the logarithms of the probabilities."""
    return log_probs.new_empty(log_probs.shape)


def cudnn(
    watcher: Any, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int,
    deterministic: bool, zero_infinity: bool,
) -> tuple[Any, Any]:
    """The losses and, at once, their gradients."""
    watcher.assumptions.setdefault(INEXACT, 1)
    return log_probs.new_empty(log_probs.shape[1]), log_probs.new_empty(log_probs.shape)


def native_memory(args: Any, inputs: list[Any], outputs: list[Any]) -> list[list[int]]:
    """The lengths, and where targets begin, on the device."""
    return [[args[0].shape[1] * 8] * 3]


def native_backward_memory(args: Any, inputs: list[Any], outputs: list[Any]) -> list[list[int]]:
    """The lengths, the logarithms of the backward variables, and of large problems sums of these for every other
    place, where the blanks are."""
    log_probs, log_alpha, zero_infinity = args[1], args[6], len(args) > 8 and args[8]
    times, batch, labels = log_probs.shape
    value = log_probs.element_size()
    held = [batch * 8] * 3 + [log_alpha.numel() * value]
    if 2 * times + 24 * batch // 10 + 2 * labels // 10 <= 450:
        return [held]
    blanks = batch * times * (log_alpha.shape[2] // 2 + 1) * value
    phases = [[*held, blanks, batch * times * value, blanks, batch * times * value]]
    if zero_infinity:
        phases.append([*held, batch, value, log_probs.numel() * value])
    return phases


def cudnn_memory(args: Any, inputs: list[Any], outputs: list[Any]) -> list[list[int]]:
    """About the probabilities, and the forward and backward variables of targets that are as long as may be."""
    times, batch, labels = args[0].shape
    return [[times * batch * (labels + 2 * (2 * LONGEST + 1)) * args[0].element_size()]]


def overloads(name: str) -> list[Any]:
    """An operation's forms that return what they make, where this PyTorch has it."""
    packet = getattr(aten, name, None)
    names = packet.overloads() if packet is not None else ()
    return [getattr(packet, form) for form in names if "out" not in form]


RESULTS: dict[Any, Callable[..., Any]] = {
    form: kernel
    for name, kernel in [
        ("_use_cudnn_ctc_loss", uses_cudnn), ("_use_miopen_ctc_loss", never), ("_ctc_loss", native),
        ("_ctc_loss_backward", native_backward), ("_cudnn_ctc_loss", cudnn),
    ]
    for form in overloads(name)
}
"""What stands for a fake kernel, by operation."""

RULES: list[tuple[list[Any], Callable[..., list[list[int]]]]] = [
    ([aten._ctc_loss], native_memory),
    ([aten._ctc_loss_backward], native_backward_memory),
    ([aten._cudnn_ctc_loss], cudnn_memory),
]
