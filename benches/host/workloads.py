"""Training and inference on the CPU, as people do it. Each workload builds its model and returns a function that makes
one step and returns a number of it. `small` needs no PyTorch."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Step = Callable[[], float]
WORKLOADS: dict[str, Callable[[], Step]] = {}


def workload(build: Callable[[], Step]) -> Callable[[], Step]:
    WORKLOADS[build.__name__] = build
    return build


def training(forward: Callable[[], Any], optimizer: Any) -> Step:
    """A step that minimizes what `forward` returns."""

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        loss = forward()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


@workload
def eltwise() -> Step:
    """A chain of element-wise operations on tensors of 32 MiB, forward and back: bound by memory."""
    import torch

    weight = torch.randn(2048, 4096, requires_grad=True)

    def step() -> float:
        value = weight
        for _ in range(6):
            value = torch.tanh(value) * 1.01
        total = value.sum()
        weight.grad = None
        total.backward()
        return float(total.detach())

    return step


@workload
def cnn() -> Step:
    """A small residual network on 32 images of 48 by 48."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Residual(nn.Module):
        def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
            super().__init__()
            self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.first_norm = nn.BatchNorm2d(outputs)
            self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.second_norm = nn.BatchNorm2d(outputs)
            same = stride == 1 and inputs == outputs
            self.shortcut = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            hidden = F.relu(self.first_norm(self.first(images)))
            return F.relu(self.second_norm(self.second(hidden)) + self.shortcut(images))

    stem = [nn.Conv2d(3, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU()]
    body = [Residual(32, 32), Residual(32, 64, 2), Residual(64, 128, 2)]
    model = nn.Sequential(*stem, *body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100))
    images, labels = torch.randn(32, 3, 48, 48), torch.randint(0, 100, (32,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return training(lambda: F.cross_entropy(model(images), labels), optimizer)


@workload
def dlrm_var() -> Step:
    """A recommender with 26 sparse tables; the batch changes its size from step to step."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    tables, rows, width = 26, 100_000, 16

    def dense(*sizes: int) -> list[nn.Module]:
        layers: list[nn.Module] = []
        for inputs, outputs in zip(sizes, sizes[1:], strict=False):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        return layers

    class Recommender(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            bags = [nn.EmbeddingBag(rows, width, mode="sum", sparse=True) for _ in range(tables)]
            self.tables = nn.ModuleList(bags)
            self.bottom = nn.Sequential(*dense(13, 512, 256, 64, width))
            pairs = (tables + 1) * tables // 2
            self.top = nn.Sequential(*dense(pairs + width, 1024, 512, 256, 1)[:-1])
            self.lower = torch.tril_indices(tables + 1, tables + 1, -1)

        def forward(self, numbers: torch.Tensor, categories: list[torch.Tensor]) -> torch.Tensor:
            below = self.bottom(numbers)
            looked_up = [table(rows) for table, rows in zip(self.tables, categories, strict=True)]
            features = torch.stack([below, *looked_up], 1)
            dots = torch.bmm(features, features.transpose(1, 2))[:, self.lower[0], self.lower[1]]
            return self.top(torch.cat([below, dots], 1)).squeeze(1)

    def batch(size: int) -> tuple[torch.Tensor, list[torch.Tensor], torch.Tensor]:
        categories = [torch.randint(0, rows, (size, 4)) for _ in range(tables)]
        return torch.randn(size, 13), categories, torch.rand(size).round()

    model = Recommender()
    draw = random.Random(1)
    batches = [batch(draw.randrange(6000, 10_000)) for _ in range(6)]
    count = 0

    def forward() -> torch.Tensor:
        nonlocal count
        numbers, categories, clicked = batches[count % len(batches)]
        count += 1
        return F.binary_cross_entropy_with_logits(model(numbers, categories), clicked)

    return training(forward, torch.optim.SGD(model.parameters(), lr=0.01))


@workload
def gpt() -> Step:
    """A transformer of four layers that learns to continue text, with AdamW."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    words, width, heads, layers, length = 8192, 256, 4, 4, 256

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention_norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
            self.project, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, hidden: torch.Tensor) -> torch.Tensor:
            batch, time, _ = hidden.shape
            parts = self.project(self.attention_norm(hidden)).view(batch, time, 3, heads, width // heads)
            query, key, value = parts.permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
            hidden = hidden + self.merge(mixed.transpose(1, 2).reshape(batch, time, width))
            return hidden + self.narrow(F.gelu(self.widen(self.mlp_norm(hidden))))

    class Transformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            hidden = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
            return self.head(self.norm(self.blocks(hidden)))

    model = Transformer()
    tokens = torch.randint(0, words, (4, 129))

    def forward() -> torch.Tensor:
        return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    return training(forward, torch.optim.AdamW(model.parameters(), lr=3e-4))


@workload
def infer() -> Step:
    """A transformer that reads sequences of 16 different lengths, without gradients."""
    import torch
    from torch import nn

    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    model = nn.TransformerEncoder(layer, 4).eval()
    draw = random.Random(1)
    inputs = [torch.randn(8, draw.randrange(32, 384), 256) for _ in range(16)]
    count = 0

    def step() -> float:
        nonlocal count
        count += 1
        with torch.no_grad():
            return float(model(inputs[count % len(inputs)]).sum())

    return step


@workload
def unet_sizes() -> Step:
    """A small U-Net that is trained on images of any size."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    def double(inputs: int, outputs: int) -> nn.Module:
        layers: list[nn.Module] = []
        for channels in (inputs, outputs):
            layers += [nn.Conv2d(channels, outputs, 3, 1, 1), nn.BatchNorm2d(outputs), nn.ReLU()]
        return nn.Sequential(*layers)

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            widths = [16, 32, 64]
            self.down = nn.ModuleList(double(a, b) for a, b in zip([3, *widths], widths, strict=False))
            self.bottom = double(64, 128)
            self.up = nn.ModuleList(double(a + b, b) for a, b in zip([128, 64, 32], widths[::-1], strict=True))
            self.head = nn.Conv2d(16, 4, 1)

        def forward(self, hidden: torch.Tensor) -> torch.Tensor:
            passed = []
            for down in self.down:
                hidden = down(hidden)
                passed.append(hidden)
                hidden = F.max_pool2d(hidden, 2)
            hidden = self.bottom(hidden)
            for up in self.up:
                beside = passed.pop()
                hidden = up(torch.cat([F.interpolate(hidden, size=beside.shape[2:]), beside], 1))
            return self.head(hidden)

    model, draw = UNet(), random.Random(3)

    def forward() -> torch.Tensor:
        height, width = (8 * draw.randrange(10, 25) for _ in range(2))
        images, labels = torch.randn(2, 3, height, width), torch.randint(0, 4, (2, height, width))
        return F.cross_entropy(model(images), labels)

    return training(forward, torch.optim.SGD(model.parameters(), lr=0.01))


@workload
def bert_lengths() -> Step:
    """An encoder that is trained on batches of texts of any length, with AdamW."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    words, width = 8192, 256
    layer = nn.TransformerEncoderLayer(width, 4, 1024, dropout=0.1, batch_first=True, activation="gelu")
    places = nn.Embedding(512, width)
    parts = [nn.Embedding(words, width), places, nn.TransformerEncoder(layer, 4), nn.Linear(width, words)]
    model = nn.ModuleList(parts)
    draw = random.Random(5)

    def forward() -> torch.Tensor:
        tokens = torch.randint(0, words, (4, draw.randrange(24, 256)))
        embed, places, encode, head = model
        hidden = encode(embed(tokens) + places(torch.arange(tokens.shape[1])))
        return F.cross_entropy(head(hidden).flatten(0, 1), tokens.flatten())

    return training(forward, torch.optim.AdamW(model.parameters(), lr=3e-4))


@workload
def cnn_infer() -> Step:
    """A deeper convolutional network that reads batches of images, without gradients."""
    import torch
    from torch import nn

    layers: list[nn.Module] = []
    for inputs, outputs in zip([3, 32, 64, 128], [32, 64, 128, 256], strict=True):
        for channels, stride in ((inputs, 2), (outputs, 1)):
            layers += [nn.Conv2d(channels, outputs, 3, stride, 1), nn.BatchNorm2d(outputs), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 100)).eval()
    images = torch.randn(16, 3, 192, 192)

    def step() -> float:
        with torch.inference_mode():
            return float(model(images).sum())

    return step


@workload
def generate() -> Step:
    """A transformer continues texts of any length, a word at a time, with a cache that grows."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    words, width, heads, layers = 8192, 384, 6, 6
    embed = nn.Embedding(words, width)
    shapes = [(width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)]
    blocks = [nn.ModuleList(nn.Linear(*shape) for shape in shapes) for _ in range(layers)]
    draw = random.Random(7)

    def passes(hidden: torch.Tensor, cache: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
        batch, time, _ = hidden.shape
        for number, (project, merge, widen, narrow) in enumerate(blocks):
            parts = project(F.layer_norm(hidden, (width,))).view(batch, time, 3, heads, width // heads)
            query, key, value = parts.permute(2, 0, 3, 1, 4)
            if len(cache) > number:
                key, value = torch.cat([cache[number][0], key], 2), torch.cat([cache[number][1], value], 2)
                cache[number] = (key, value)
            else:
                cache.append((key, value))
            mixed = F.scaled_dot_product_attention(query, key, value, is_causal=time > 1)
            hidden = hidden + merge(mixed.transpose(1, 2).reshape(batch, time, width))
            hidden = hidden + narrow(F.gelu(widen(F.layer_norm(hidden, (width,)))))
        return hidden

    def step() -> float:
        cache: list[tuple[torch.Tensor, torch.Tensor]] = []
        tokens = torch.randint(0, words, (draw.randrange(2, 9), draw.randrange(16, 96)))
        with torch.inference_mode():
            for _ in range(24):
                hidden = passes(embed(tokens), cache)[:, -1]
                tokens = (hidden @ embed.weight.T).argmax(-1, keepdim=True)
        return float(tokens.sum())

    return step


@workload
def small() -> Step:
    """Objects of the sizes that programs without tensors have, none of them large."""
    draw = random.Random(1)
    sizes = [draw.choice((600, 1000, 4000, 16_000)) for _ in range(1000)]

    def step() -> float:
        total = 0
        for turn in range(200):
            kept = [bytearray(size + turn) for size in sizes]
            names = {str(index): value for index, value in enumerate(kept)}
            total += len(names) + sum(map(len, kept[::2]))
            del kept[::3]
        return float(total)

    return step
