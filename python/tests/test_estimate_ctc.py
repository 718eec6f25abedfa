"""The CTC loss under `lowtide.torch.estimate`: its two kernels, which of them is taken, and a speech model that has
it."""

from __future__ import annotations

import csv
import functools
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="estimate traces with PyTorch")

from torch import nn  # noqa: E402

from lowtide.torch.estimation import Estimate, estimate  # noqa: E402

TIMES, BATCH, LABELS, LONGEST = 400, 16, 64, 50
LENGTHS = [LONGEST, *range(1, BATCH)]


def taken(found: Estimate, operator: str) -> list[int]:
    """The bytes of what an operation allocates, in order."""
    rows = csv.DictReader(found.trace.decode().splitlines())
    return [int(row["bytes"]) for row in rows if row["event"] == "alloc" and row["site"].endswith(f" {operator}")]


class Loss(nn.Module):
    """Scores that are learned by themselves."""

    def __init__(self, times: int = TIMES, **settings: Any) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(times, BATCH, LABELS))
        self.settings = settings

    def forward(self, targets: Any, lengths: Any) -> Any:
        times = torch.full((BATCH,), self.scores.shape[0], dtype=lengths.dtype, device=lengths.device)
        return nn.functional.ctc_loss(self.scores.log_softmax(2), targets, times, lengths, **self.settings)


def example(kind: torch.dtype = torch.long) -> tuple[Any, Any]:
    return torch.ones(sum(LENGTHS), dtype=kind), torch.tensor(LENGTHS, dtype=kind)


@pytest.mark.parametrize("is_infinity_zero", [False, True])
def test_the_loss_keeps_the_forward_variables_and_its_gradient_has_the_backward_ones(is_infinity_zero: bool) -> None:
    found = estimate(lambda: Loss(zero_infinity=is_infinity_zero), example(), steps=1)
    targets, lengths = example()
    real = torch.ops.aten._ctc_loss(torch.zeros(TIMES, BATCH, LABELS), targets, [TIMES] * BATCH, lengths.tolist())
    kept = [part.numel() * 4 for part in real]
    assert kept == [BATCH * 4, BATCH * TIMES * (2 * LONGEST + 1) * 4]
    assert taken(found, "_ctc_loss") == [*kept, *[BATCH * 8] * 3]
    gradient, places = TIMES * BATCH * LABELS * 4, BATCH * TIMES * 4
    blanks = places * (LONGEST + 1)
    expected = [gradient, *[BATCH * 8] * 3, kept[1], blanks, places, blanks, places]
    again = [*[BATCH * 8] * 3, kept[1], BATCH, 4, gradient] if is_infinity_zero else []
    assert taken(found, "_ctc_loss_backward") == [*expected, *again]
    assert found.assumptions == []


def test_a_small_problem_needs_no_sums() -> None:
    found = estimate(lambda: Loss(times=60), example(), steps=1)
    assert taken(found, "_ctc_loss_backward") == [
        60 * BATCH * LABELS * 4, *[BATCH * 8] * 3, BATCH * 60 * (2 * LONGEST + 1) * 4,
    ]


def test_cudnn_is_taken_for_short_targets_of_32_bits_and_said_to_be_approximate() -> None:
    found = estimate(Loss, example(torch.int32), steps=1)
    assert taken(found, "_ctc_loss") == [] and len(taken(found, "_cudnn_ctc_loss")) == 3
    assert any("cuDNN" in assumption for assumption in found.assumptions)


@pytest.mark.parametrize("reason", ["64 bits", "switched off", "blank", "too long"])
def test_anything_else_is_left_to_the_native_kernel(reason: str) -> None:
    targets, lengths = example(torch.long if reason == "64 bits" else torch.int32)
    if reason == "too long":
        lengths[0] = 300
        targets = torch.ones(int(lengths.sum()), dtype=torch.int32)

    class Particular(Loss):
        def forward(self, *given: Any) -> Any:
            with torch.backends.cudnn.flags(enabled=reason != "switched off"):
                return super().forward(*given)

    found = estimate(lambda: Particular(blank=int(reason == "blank")), (targets, lengths), steps=1)
    assert taken(found, "_cudnn_ctc_loss") == [] and len(taken(found, "_ctc_loss")) == 5


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_lengths_may_be_lists_and_targets_on_the_host(reduction: str) -> None:
    class Listed(Loss):
        def forward(self, targets: Any) -> Any:
            scores = self.scores.log_softmax(2)
            targets = torch.ones(sum(LENGTHS), dtype=torch.int32)
            times = [TIMES] * BATCH
            return nn.functional.ctc_loss(scores, targets, times, LENGTHS, reduction=reduction, blank=1).sum()

    assert len(taken(estimate(Listed, example()[0], steps=1), "_ctc_loss")) == 5


@pytest.mark.parametrize("is_padded", [False, True])
def test_wav2vec2_answers(is_padded: bool) -> None:
    transformers = pytest.importorskip("transformers", reason="the model is Transformers'")
    config = transformers.Wav2Vec2Config(
        vocab_size=32, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        conv_dim=(32,) * 7, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2, layerdrop=0.0,
        feat_extract_norm="layer" if is_padded else "group",
    )
    batch = {"input_values": torch.zeros(2, 16000), "labels": torch.randint(1, 32, (2, 10))}
    if is_padded:
        batch["attention_mask"] = (torch.arange(16000) < torch.tensor([[16000], [12000]])).long()
        batch["labels"][1, 6:] = -100
    descent = functools.partial(torch.optim.SGD, lr=0.1)
    found = estimate(lambda: transformers.Wav2Vec2ForCTC(config), batch, descent, steps=1)
    assert found.assumptions == [] and found.gradients == found.parameters
    # One second is 49 places; every label has a blank before it, and there is one in the end.
    assert taken(found, "_ctc_loss")[1] == 2 * 49 * 21 * 4


def test_a_kind_that_has_no_kernel_on_a_gpu_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"no kernel for torch.bfloat16 on a GPU\nhint: pass log_probs.float\(\)"):
        estimate(lambda: Loss().to(torch.bfloat16), example(), steps=1)
