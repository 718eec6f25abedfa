"""Training and inference on one device, as people do it: real architectures with random weights.

Each workload is a generator: it builds its model, then makes a step and yields that step's loss, for ever.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F

Workload = Callable[[], Iterator[float]]
WORKLOADS: dict[str, Workload] = {}


def workload(function: Workload) -> Workload:
    WORKLOADS[function.__name__] = function
    return function


def update(loss: torch.Tensor, optimizer: torch.optim.Optimizer) -> float:
    """Makes the rest of a step, and returns its loss."""
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return float(loss.detach())


def language_model(config, lengths: Iterator[int], batch: int = 4) -> Iterator[float]:
    """Trains a causal language model in bfloat16 with AdamW on random tokens."""
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).to(device="cuda", dtype=torch.bfloat16).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=False, foreach=True)
    for length in lengths:
        tokens = torch.randint(0, config.vocab_size, (batch, length), device="cuda")
        output = model(input_ids=tokens, labels=tokens, use_cache=False)
        yield update(output.loss, optimizer)


def llama_config():
    from transformers import LlamaConfig

    return LlamaConfig(
        hidden_size=2048,
        intermediate_size=5632,
        num_hidden_layers=16,
        num_attention_heads=16,
        num_key_value_heads=8,
        vocab_size=32000,
        max_position_embeddings=8192,
    )


def lengths(seed: int, longest: int) -> Iterator[int]:
    draw = random.Random(seed)
    while True:
        yield draw.randrange(256, longest, 8)


@workload
def llama_fixed() -> Iterator[float]:
    def always() -> Iterator[int]:
        while True:
            yield 2048

    return language_model(llama_config(), always())


@workload
def llama_varlen() -> Iterator[float]:
    return language_model(llama_config(), lengths(1, 3072))


@workload
def mixtral_moe() -> Iterator[float]:
    from transformers import MixtralConfig

    config = MixtralConfig(
        hidden_size=1024,
        intermediate_size=2816,
        num_hidden_layers=8,
        num_attention_heads=16,
        num_key_value_heads=8,
        num_local_experts=8,
        vocab_size=32000,
    )
    return language_model(config, lengths(3, 2048))


@workload
def resnet50() -> Iterator[float]:
    import torchvision

    torch.manual_seed(0)
    model = torchvision.models.resnet50().to("cuda").train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    while True:
        images = torch.randn(256, 3, 224, 224, device="cuda")
        labels = torch.randint(0, 1000, (256,), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(images), labels)
        yield update(loss, optimizer)


@workload
def maskrcnn() -> Iterator[float]:
    import torchvision

    torch.manual_seed(0)
    detection = torchvision.models.detection
    model = detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None).to("cuda").train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    draw = random.Random(5)

    def sample() -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        height, width, objects = draw.randrange(400, 900), draw.randrange(400, 900), draw.randrange(1, 12)
        image = torch.rand(3, height, width, device="cuda")
        corner = torch.rand(objects, 2, device="cuda") * 200
        boxes = torch.cat([corner, corner + 20 + torch.rand(objects, 2, device="cuda") * 150], dim=1)
        labels = torch.randint(1, 91, (objects,), device="cuda")
        masks = torch.zeros(objects, height, width, dtype=torch.uint8, device="cuda")
        return image, {"boxes": boxes, "labels": labels, "masks": masks}

    while True:
        images, targets = zip(*(sample() for _ in range(8)), strict=True)
        loss = sum(model(list(images), list(targets)).values())
        yield update(loss, optimizer)


@workload
def llama_generate() -> Iterator[float]:
    from transformers import LlamaForCausalLM

    torch.manual_seed(0)
    config = llama_config()
    model = LlamaForCausalLM(config).to(device="cuda", dtype=torch.bfloat16).eval()
    draw = random.Random(7)
    with torch.no_grad():
        while True:
            shape = (draw.randrange(4, 33), draw.randrange(64, 1500))
            tokens = torch.randint(0, config.vocab_size, shape, device="cuda")
            made = model.generate(tokens, max_new_tokens=12, min_new_tokens=12, do_sample=False, pad_token_id=0)
            yield float(made.sum() % 1000)


@workload
def llama_offload() -> Iterator[float]:
    """Activations go to the host on a stream of their own and come back for the backward pass."""
    from offload import StreamedOffload
    from torch.utils.checkpoint import checkpoint
    from transformers import LlamaForCausalLM

    torch.manual_seed(0)
    config = llama_config()
    model = LlamaForCausalLM(config).to(device="cuda", dtype=torch.bfloat16).train()
    tokens = torch.randint(0, config.vocab_size, (4, 2048), device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    offload = StreamedOffload(model.parameters())

    def part(hidden: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(model.lm_head(hidden).float(), wanted, reduction="sum")

    while True:
        with offload:
            hidden = model.model(input_ids=tokens, use_cache=False).last_hidden_state.flatten(0, 1)
            wanted = tokens.flatten()
            loss = torch.zeros((), device="cuda")
            for begin in range(0, len(hidden), 4096):
                piece = slice(begin, begin + 4096)
                loss = loss + checkpoint(part, hidden[piece], wanted[piece], use_reentrant=False)
            loss = loss / len(hidden)
        yield update(loss, optimizer)
