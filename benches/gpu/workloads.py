"""Training and inference on one device, as people do it: real architectures with random weights.

Each workload is a generator: it builds its model and yields `BUILT`, then makes a step and yields that step's loss (or
another number that depends on everything it computed), for ever. Seeds give the same shapes and tokens in every run.
"""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.nn.functional as F

T = TypeVar("T")

# What a workload yields before its first step.
BUILT = 0.0


@dataclass(frozen=True)
class Setting:
    """Where a workload runs and how large it is: a tiny one takes a fraction of a second a step on the CPU."""

    device: str = "cuda"
    tiny: bool = False

    def size(self, full: T, tiny: T) -> T:
        return tiny if self.tiny else full


Workload = Callable[[Setting], Iterator[float]]
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


def in_bfloat16(setting: Setting, build: Callable[[], torch.nn.Module]) -> torch.nn.Module:
    """Builds a model where it will be used: on the host that takes longer than all steps."""
    torch.manual_seed(0)
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(setting.device):
            model = build()
    finally:
        torch.set_default_dtype(usual)
    return model.to(device=setting.device, dtype=torch.bfloat16)


def causal_model(setting: Setting, config) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """A causal language model in bfloat16 with AdamW."""
    from transformers import AutoModelForCausalLM

    model = in_bfloat16(setting, lambda: AutoModelForCausalLM.from_config(config)).train()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=False, foreach=True)


def causal_loss(model: torch.nn.Module, setting: Setting, shape: tuple[int, int]) -> torch.Tensor:
    """The loss of a batch of random tokens."""
    tokens = torch.randint(0, model.config.vocab_size, shape, device=setting.device)
    return model(input_ids=tokens, labels=tokens, use_cache=False).loss


def language_model(setting: Setting, config, lengths: Iterator[int], batch: int = 4) -> Iterator[float]:
    """Trains a causal language model on random tokens."""
    model, optimizer = causal_model(setting, config)
    yield BUILT
    for length in lengths:
        yield update(causal_loss(model, setting, (batch, length)), optimizer)


def llama_config(setting: Setting, width: int = 2048, layers: int = 16):
    from transformers import LlamaConfig

    return LlamaConfig(
        hidden_size=setting.size(width, 64),
        intermediate_size=setting.size(width * 11 // 4, 128),
        num_hidden_layers=setting.size(layers, 2),
        num_attention_heads=setting.size(16, 4),
        num_key_value_heads=setting.size(8, 2),
        vocab_size=setting.size(32000, 256),
        max_position_embeddings=8192,
    )


def lengths(setting: Setting, seed: int, longest: int) -> Iterator[int]:
    draw = random.Random(seed)
    while True:
        yield draw.randrange(256, longest, 8) // setting.size(1, 32)


@workload
def llama_fixed(setting: Setting) -> Iterator[float]:
    return language_model(setting, llama_config(setting), itertools.repeat(setting.size(2048, 64)))


@workload
def llama_varlen(setting: Setting) -> Iterator[float]:
    return language_model(setting, llama_config(setting), lengths(setting, 1, 3072))


@workload
def mixtral_moe(setting: Setting) -> Iterator[float]:
    from transformers import MixtralConfig

    config = MixtralConfig(
        hidden_size=setting.size(1024, 64),
        intermediate_size=setting.size(2816, 128),
        num_hidden_layers=setting.size(8, 2),
        num_attention_heads=setting.size(16, 4),
        num_key_value_heads=setting.size(8, 2),
        num_local_experts=8,
        vocab_size=setting.size(32000, 256),
    )
    return language_model(setting, config, lengths(setting, 3, 2048))


@workload
def resnet50(setting: Setting) -> Iterator[float]:
    return classifier(setting, setting.size(256, 4))


def classifier(setting: Setting, batch: int) -> Iterator[float]:
    """Trains ResNet-50 on random images."""
    import torchvision

    torch.manual_seed(0)
    build = setting.size(torchvision.models.resnet50, torchvision.models.resnet18)
    model = build().to(setting.device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    side = setting.size(224, 64)
    yield BUILT
    while True:
        images = torch.randn(batch, 3, side, side, device=setting.device)
        labels = torch.randint(0, 1000, (batch,), device=setting.device)
        with torch.autocast(setting.device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(images), labels)
        yield update(loss, optimizer)


@workload
def maskrcnn(setting: Setting) -> Iterator[float]:
    import torchvision

    torch.manual_seed(0)
    detection = torchvision.models.detection
    shown = setting.size({}, {"min_size": 64, "max_size": 128, "rpn_post_nms_top_n_train": 50})
    model = detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None, **shown)
    model = model.to(setting.device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    draw = random.Random(5)

    def sample() -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        height, width, objects = draw.randrange(400, 900), draw.randrange(400, 900), draw.randrange(1, 12)
        image = torch.rand(3, height, width, device=setting.device)
        corner = torch.rand(objects, 2, device=setting.device) * 200
        boxes = torch.cat([corner, corner + 20 + torch.rand(objects, 2, device=setting.device) * 150], dim=1)
        labels = torch.randint(1, 91, (objects,), device=setting.device)
        masks = torch.zeros(objects, height, width, dtype=torch.uint8, device=setting.device)
        return image, {"boxes": boxes, "labels": labels, "masks": masks}

    yield BUILT
    while True:
        images, targets = zip(*(sample() for _ in range(setting.size(8, 2))), strict=True)
        loss = sum(model(list(images), list(targets)).values())
        yield update(loss, optimizer)


@workload
def llama_generate(setting: Setting) -> Iterator[float]:
    from transformers import LlamaForCausalLM

    config = llama_config(setting)
    model = in_bfloat16(setting, lambda: LlamaForCausalLM(config)).eval()
    draw = random.Random(7)
    yield BUILT
    with torch.no_grad():
        while True:
            shape = (draw.randrange(4, 33), draw.randrange(64, 1500) // setting.size(1, 32))
            tokens = torch.randint(0, config.vocab_size, shape, device=setting.device)
            made = model.generate(tokens, max_new_tokens=12, min_new_tokens=12, do_sample=False, pad_token_id=0)
            yield float(made.sum() % 1000)


@workload
def llama_offload(setting: Setting) -> Iterator[float]:
    """Activations go to the host on a stream of their own and come back for the backward pass."""
    from offload import StreamedOffload
    from torch.utils.checkpoint import checkpoint
    from transformers import LlamaForCausalLM

    config = llama_config(setting)
    model = in_bfloat16(setting, lambda: LlamaForCausalLM(config)).train()
    shape = (4, setting.size(2048, 64))
    tokens = torch.randint(0, config.vocab_size, shape, device=setting.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    offload = StreamedOffload(model.parameters())

    def part(hidden: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(model.lm_head(hidden).float(), wanted, reduction="sum")

    yield BUILT
    while True:
        with offload:
            hidden = model.model(input_ids=tokens, use_cache=False).last_hidden_state.flatten(0, 1)
            wanted = tokens.flatten()
            loss = torch.zeros((), device=setting.device)
            for begin in range(0, len(hidden), 4096):
                piece = slice(begin, begin + 4096)
                loss = loss + checkpoint(part, hidden[piece], wanted[piece], use_reentrant=False)
            loss = loss / len(hidden)
        yield update(loss, optimizer)


@workload
def segment_sizes(setting: Setting) -> Iterator[float]:
    """DeepLabV3 on images of several resolutions, one resolution a batch."""
    import torchvision

    torch.manual_seed(0)
    segmentation = torchvision.models.segmentation
    build = setting.size(segmentation.deeplabv3_resnet50, segmentation.lraspp_mobilenet_v3_large)
    model = build(weights=None, weights_backbone=None, num_classes=21).to(setting.device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    draw = random.Random(11)
    resolutions = [(320, 320), (384, 512), (480, 640), (512, 512), (512, 768), (640, 640), (720, 480)]
    batch = setting.size(8, 2)
    yield BUILT
    while True:
        height, width = (side // setting.size(1, 5) for side in draw.choice(resolutions))
        images = torch.randn(batch, 3, height, width, device=setting.device)
        labels = torch.randint(0, 21, (batch, height, width), device=setting.device)
        with torch.autocast(setting.device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(images)["out"], labels)
        yield update(loss, optimizer)


@workload
def train_eval(setting: Setting) -> Iterator[float]:
    """A vision transformer; after three training steps comes an evaluation with a larger batch."""
    import torchvision

    torch.manual_seed(0)
    full = {"image_size": 224, "patch_size": 16, "num_layers": 12, "num_heads": 12, "hidden_dim": 768, "mlp_dim": 3072}
    tiny = {"image_size": 32, "patch_size": 8, "num_layers": 2, "num_heads": 2, "hidden_dim": 32, "mlp_dim": 64}
    shape = setting.size(full, tiny)
    model = torchvision.models.VisionTransformer(**shape).to(setting.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def loss_of(batch: int) -> torch.Tensor:
        images = torch.randn(batch, 3, shape["image_size"], shape["image_size"], device=setting.device)
        labels = torch.randint(0, 1000, (batch,), device=setting.device)
        with torch.autocast(setting.device, dtype=torch.bfloat16):
            return F.cross_entropy(model(images), labels)

    yield BUILT
    while True:
        model.train()
        for _ in range(3):
            yield update(loss_of(setting.size(128, 4)), optimizer)
        model.eval()
        with torch.no_grad():
            loss = float(loss_of(setting.size(448, 14)))
        yield loss


@workload
def serve_mixed(setting: Setting) -> Iterator[float]:
    """A text encoder answers requests of any size, eight a round; answers wait for a while to be fetched."""
    from transformers import BertConfig, BertModel

    config = BertConfig(
        hidden_size=setting.size(1024, 64),
        intermediate_size=setting.size(4096, 128),
        num_hidden_layers=setting.size(24, 2),
        num_attention_heads=setting.size(16, 4),
    )
    model = in_bfloat16(setting, lambda: BertModel(config, add_pooling_layer=False)).eval()
    draw = random.Random(13)
    waiting: deque[torch.Tensor] = deque(maxlen=12)

    @torch.no_grad()
    def answer() -> torch.Tensor:
        batch, length = 2 ** draw.uniform(0, setting.size(7, 3)), draw.randrange(8, setting.size(513, 33))
        tokens = torch.randint(0, config.vocab_size, (int(batch), length), device=setting.device)
        return model(input_ids=tokens, attention_mask=torch.ones_like(tokens)).last_hidden_state

    yield BUILT
    while True:
        checksum = torch.zeros((), device=setting.device)
        for _ in range(8):
            waiting.append(answer())
            checksum += waiting[-1].float().abs().mean()
        yield float(checksum)


@workload
def two_models(setting: Setting) -> Iterator[float]:
    """An image model and a language model train in turn, a step of each."""
    images = classifier(setting, setting.size(128, 4))
    config = llama_config(setting, width=1024, layers=12)
    texts = language_model(setting, config, itertools.repeat(setting.size(1024, 32)))
    while True:
        yield next(images) + next(texts)


@workload
def accumulate(setting: Setting) -> Iterator[float]:
    """A language model whose gradients add up over four backward passes before the optimizer makes its step."""
    passes = 4
    model, optimizer = causal_model(setting, llama_config(setting, width=1536))
    yield BUILT
    while True:
        total = torch.zeros((), device=setting.device)
        for _ in range(passes):
            loss = causal_loss(model, setting, (4, setting.size(1024, 32))) / passes
            loss.backward()
            total += loss.detach()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield float(total)
