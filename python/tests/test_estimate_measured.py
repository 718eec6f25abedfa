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


def test_attention_with_a_learned_bias() -> None:
    transformers = pytest.importorskip("transformers", reason="the model is Transformers'")
    config = transformers.T5Config(
        decoder_start_token_id=0, pad_token_id=0, d_model=768, d_ff=3072, num_layers=6, num_heads=12,
        attn_implementation="eager",
    )
    ids = torch.randint(0, 32000, (8, 512))
    example = {"input_ids": ids, "labels": ids[:, :256].clone(), "use_cache": False}
    build = lambda: transformers.T5ForConditionalGeneration(config)  # noqa: E731
    found = estimate(build, example, adamw, autocast=torch.bfloat16, steps=2)
    assert found.peak_requested == pytest.approx(6_349_735_020, rel=0.01)


class Words(torch.nn.Module):
    """A language model of two recurrent layers."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(20000, 512)
        self.read = torch.nn.LSTM(512, 1024, 2, batch_first=True, dropout=0.2)
        self.guess = torch.nn.Linear(1024, 20000)

    def forward(self, ids: Any) -> Any:
        read, _ = self.read(self.embed(ids))
        return torch.nn.functional.cross_entropy(self.guess(read[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


class Signals(torch.nn.Module):
    """One recurrent layer that reads in both directions."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Linear(128, 256)
        self.read = torch.nn.GRU(256, 512, 1, bidirectional=True)
        self.guess = torch.nn.Linear(1024, 10)

    def forward(self, rows: Any) -> Any:
        return self.guess(self.read(self.embed(rows))[0]).float().pow(2).mean()


def test_recurrent_layers() -> None:
    found = estimate(Words, torch.randint(0, 20000, (32, 256)), adamw, steps=2)
    assert found.peak_requested == pytest.approx(3_031_726_728, rel=0.01)
    found = estimate(Signals, torch.empty(300, 64, 128), adamw, autocast=torch.float16, steps=2)
    assert found.peak_requested == pytest.approx(724_111_528, rel=0.03)
