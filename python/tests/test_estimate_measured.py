"""Estimates beside what an H200 measured: `torch.cuda.max_memory_allocated` of real training, PyTorch 2.11,
Transformers 5.17."""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="estimate traces with PyTorch")

from lowtide.torch.estimation import estimate  # noqa: E402


def adamw(parameters: Any) -> Any:
    return torch.optim.AdamW(parameters, lr=1e-4, fused=False, foreach=True)


def momentum(parameters: Any) -> Any:
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)


def tokens(vocabulary: int, batch: int, length: int) -> dict[str, Any]:
    ids = torch.randint(0, vocabulary, (batch, length))
    return {"input_ids": ids, "labels": ids, "use_cache": False}


def test_llama() -> None:
    transformers = pytest.importorskip("transformers", reason="the model is Transformers'")
    config = transformers.LlamaConfig(
        hidden_size=2048, intermediate_size=5632, num_hidden_layers=16, num_attention_heads=16, num_key_value_heads=8,
        vocab_size=32000, max_position_embeddings=8192,
    )
    build = lambda: transformers.AutoModelForCausalLM.from_config(config).to(dtype=torch.bfloat16)  # noqa: E731
    found = estimate(build, tokens(32000, 4, 2048), adamw, steps=2)
    assert found.peak_requested == pytest.approx(21_009_773_064, rel=0.01)
    assert found.assumptions == []


def test_experts() -> None:
    transformers = pytest.importorskip("transformers", reason="the model is Transformers'")
    config = transformers.MixtralConfig(
        hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=8,
        num_local_experts=8, vocab_size=32000,
    )
    lengths = random.Random(3)
    examples = [tokens(32000, 4, lengths.randrange(256, 2048, 8)) for _ in range(2)]
    build = lambda: transformers.AutoModelForCausalLM.from_config(config).to(dtype=torch.bfloat16)  # noqa: E731
    found = estimate(build, examples, adamw, steps=2)
    assert found.peak_requested == pytest.approx(10_164_467_336, rel=0.03)


def test_residual_network() -> None:
    torchvision = pytest.importorskip("torchvision", reason="the model is torchvision's")
    target = torch.randint(0, 1000, (256,))
    found = estimate(
        torchvision.models.resnet50, lambda: torch.empty(256, 3, 224, 224), momentum, autocast=torch.bfloat16, steps=2,
        loss=lambda output: torch.nn.functional.cross_entropy(output, target.to(output.device)),
    )
    assert found.peak_requested == pytest.approx(11_785_936_912, rel=0.01)


def test_detection() -> None:
    torchvision = pytest.importorskip("torchvision", reason="the model is torchvision's")
    sizes = random.Random(5)
    examples = []
    for _ in range(2):
        images, targets = [], []
        for _ in range(8):
            height, width, count = sizes.randrange(400, 900), sizes.randrange(400, 900), sizes.randrange(1, 12)
            corner = torch.rand(count, 2) * 200
            boxes = torch.cat([corner, corner + 20 + torch.rand(count, 2) * 150], dim=1)
            images.append(torch.rand(3, height, width))
            masks = torch.zeros(count, height, width, dtype=torch.uint8)
            targets.append({"boxes": boxes, "labels": torch.randint(1, 91, (count,)), "masks": masks})
        examples.append((images, targets))
    detection = torchvision.models.detection
    build = lambda: detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None)  # noqa: E731
    found = estimate(build, examples, momentum, steps=2)
    assert found.peak_requested == pytest.approx(26_357_414_380, rel=0.1)
    assert found.assumptions
