"""Estimates beside real training: the same steps, run on the CPU and recorded, must have the same peak to the byte.
What the GPU's libraries take for themselves is left out, and so is what stays on the host."""

from __future__ import annotations

import csv
import functools
import sys
from pathlib import Path
from typing import Any

import child
import pytest

torch = pytest.importorskip("torch", reason="estimate traces with PyTorch")

from lowtide.torch.estimation import estimate  # noqa: E402
from lowtide.torch.estimation.kernels.workspaces import BLAS_WORKSPACE  # noqa: E402

SMALLEST = 2048
"""Blocks below this are left out: the loss, and what it is made of."""

RANDOM_STATE = torch.get_rng_state().numel()
"""What a checkpoint keeps on the host."""

MODEL = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.grow = nn.Linear(width, 3 * width, bias=False)
        self.shrink = nn.Linear(3 * width, width, bias=False)

    def forward(self, values):
        return values + self.shrink(nn.functional.gelu(self.grow(self.norm(values))))

class Net(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.first = nn.Linear(64, 64, bias=False)
        self.blocks = nn.Sequential(*[Block(64) for _ in range(4)])
        self.way = way

    def forward(self, values):
        values = self.first(values)
        if self.way == "segments":
            return checkpoint_sequential(self.blocks, 2, values, use_reentrant=False).pow(2).mean()
        for index, block in enumerate(self.blocks):
            is_kept = self.way == "plain" or (self.way == "every other" and index % 2)
            values = block(values) if is_kept else checkpoint(block, values, use_reentrant=self.way == "reentrant")
        return values.pow(2).mean()
"""

PROGRAM = MODEL + """
import sys
import lowtide.torch.recording as recording
torch.set_num_threads(1)
with recording.record(sys.argv[2], min_size=0):
    model = Net(sys.argv[1])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    for step in range(2):
        batch = torch.empty(512, 64)
        loss = model(batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        del batch
"""


def blocks(rows: list[dict[str, str]]) -> list[tuple[str, int]]:
    """The large blocks that are allocated and freed, in order."""
    sizes: dict[str, int] = {}
    events = []
    for row in rows:
        if row["event"] == "alloc" and row["category"] != "workspace":
            size = int(row["bytes"])
            if size >= SMALLEST and size != RANDOM_STATE:
                sizes[row["id"]] = size
                events.append(("alloc", size))
        elif row["event"] == "free" and row["id"] in sizes:
            events.append(("free", sizes.pop(row["id"])))
    return events


def peak(events: list[tuple[str, int]]) -> int:
    alive = most = 0
    for event, size in events:
        alive += size if event == "alloc" else -size
        most = max(most, alive)
    return most


@pytest.mark.parametrize("way", ["plain", "checkpointed", "reentrant", "every other", "segments"])
def test_what_is_alive_is_what_a_real_run_keeps(tmp_path: Path, way: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = child.command([sys.executable, "program.py", way, "real.csv"], cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    real = blocks(child.rows(tmp_path / "real.csv"))
    space: dict[str, Any] = {}
    exec(MODEL, space)
    descent = functools.partial(torch.optim.SGD, lr=0.1, foreach=False)
    found = estimate(lambda: space["Net"](way), lambda: torch.empty(512, 64), descent, steps=2)
    traced = blocks(list(csv.DictReader(found.trace.decode().splitlines())))
    assert peak(traced) == peak(real) > 1 << 21
    assert found.assumptions == []


def test_a_leaf_that_is_made_by_setting_its_flag_gets_a_gradient() -> None:
    class Sensitive(torch.nn.Linear):
        def forward(self, values: Any) -> Any:
            values.requires_grad = True
            slope, = torch.autograd.grad(super().forward(values).sum(), values, create_graph=True)
            return slope.pow(2).mean()

    found = estimate(lambda: Sensitive(64, 64), torch.zeros(8, 64), steps=2)
    assert found.gradients == 64 * 64 * 4
    assert not torch.zeros(2).requires_grad and "requires_grad" not in vars(torch.Tensor)


def test_checkpoints_of_transformers_take_less_either_way() -> None:
    transformers = pytest.importorskip("transformers", reason="the model is Transformers'")
    config = transformers.LlamaConfig(
        hidden_size=64, intermediate_size=256, num_hidden_layers=6, num_attention_heads=2, num_key_value_heads=2,
        vocab_size=100,
    )
    ids = torch.randint(1, 100, (8, 256))

    def activations(is_reentrant: bool | None) -> int:
        def build() -> Any:
            model = transformers.AutoModelForCausalLM.from_config(config)
            if is_reentrant is not None:
                model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": is_reentrant})
            return model

        found = estimate(build, {"input_ids": ids, "labels": ids, "use_cache": False}, steps=1)
        assert found.assumptions == [] and found.gradients == found.parameters
        return found.peak_requested - found.parameters

    kept, recomputed, reentrant = activations(None), activations(False), activations(True)
    workspace = 2 * BLAS_WORKSPACE
    assert recomputed - workspace < (kept - workspace) / 2
    assert abs(reentrant - recomputed) < (recomputed - workspace) / 10
