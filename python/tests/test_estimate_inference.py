"""`lowtide.torch.estimate` of inference: beside the same programs run on the CPU with every allocation recorded, and
CUDA graphs, which are refused."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="estimate traces with PyTorch")

from torch import nn  # noqa: E402

from lowtide.torch.estimation import Estimate, estimate  # noqa: E402
from lowtide.torch.recording import record, stop  # noqa: E402

VOCABULARY = 50


def tensors_peak(found: Estimate) -> int:
    """The peak of what the program's own tensors take, without weights and workspaces."""
    sizes: dict[str, int] = {}
    alive = peak = 0
    for row in csv.DictReader(found.trace.decode().splitlines()):
        if row["event"] == "alloc" and row["category"] not in ("parameter", "buffer", "workspace"):
            sizes[row["id"]] = int(row["bytes"])
            alive += sizes[row["id"]]
            peak = max(peak, alive)
        elif row["event"] == "free":
            alive -= sizes.pop(row["id"], 0)
    return peak


def recorded_peak(build: Callable[[], Any], example: Any, step: Any, path: Path, steps: int = 2) -> int:
    """The peak of what the same steps allocate on the CPU."""
    model = build()
    step(model, example.clone(), None)
    with record(path, min_size=0):
        for _ in range(steps):
            batch = example.clone()
            step(model, batch, None)
        told = stop()
    assert told is not None and batch is not None
    return told.peak["cpu"]


class Projecting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(256, 768, bias=False)

    def forward(self, rows: Any) -> Any:
        return self.project(rows.transpose(1, 2).reshape(rows.shape[0], -1, 256))


def growing(model: Any, batch: Any, optimizer: Any) -> None:
    """Attends with keys and values that grow with every token."""
    with torch.inference_mode():
        keys = values = None
        rows = batch
        for _ in range(20):
            query, key, value = model.project(rows).chunk(3, -1)
            keys = key if keys is None else torch.cat([keys, key], 1)
            values = value if values is None else torch.cat([values, value], 1)
            scores = torch.matmul(query, keys.transpose(1, 2)).softmax(-1)
            rows = torch.einsum("bij,bjk->bik", scores, values)


def reshaping(model: Any, batch: Any, optimizer: Any) -> None:
    """Copies within operations that consist of others: a reshape, a product of expanded matrices."""
    with torch.inference_mode():
        made = model(batch)
        torch.matmul(made.transpose(0, 1).reshape(made.shape[0], -1, 64), made[0, :64, :64].t())


@pytest.mark.parametrize("step", [growing, reshaping])
def test_inference_takes_what_the_same_program_takes_on_the_cpu(step: Any, tmp_path: Path) -> None:
    example = torch.zeros(8, 256, 64) if step is reshaping else torch.zeros(8, 4, 256)
    found = estimate(Projecting, example, step=step, train=False, steps=2)
    measured = recorded_peak(Projecting, example, step, tmp_path / "trace.csv")
    assert tensors_peak(found) == pytest.approx(measured, rel=0.01)


def language_model(family: str) -> Any:
    transformers = pytest.importorskip("transformers", reason="the model is Transformers'")
    if family == "llama":
        config = transformers.LlamaConfig(
            hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=2,
            vocab_size=VOCABULARY, attn_implementation="eager", eos_token_id=None,
        )
        return transformers.LlamaForCausalLM(config).eval()
    config = transformers.GPT2Config(
        n_layer=2, n_embd=256, n_head=8, vocab_size=VOCABULARY, bos_token_id=1, eos_token_id=None,
        attn_implementation="eager",
    )
    return transformers.GPT2LMHeadModel(config).eval()


def generating(**settings: Any) -> Any:
    def step(model: Any, batch: Any, optimizer: Any) -> None:
        with torch.inference_mode():
            mask = torch.ones_like(batch)
            model.generate(batch, attention_mask=mask, max_new_tokens=24, pad_token_id=0, do_sample=False, **settings)

    return step


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_generation_takes_what_it_takes_on_the_cpu(family: str, tmp_path: Path) -> None:
    build, ids = lambda: language_model(family), torch.randint(0, VOCABULARY, (8, 64))
    found = estimate(build, ids, step=generating(), train=False, steps=2)
    measured = recorded_peak(build, ids, generating(), tmp_path / "trace.csv")
    assert tensors_peak(found) == pytest.approx(measured, rel=0.01)


def test_generation_is_not_cut_short_by_tokens_that_are_made_up() -> None:
    ids = torch.randint(0, VOCABULARY, (1, 8))
    build = lambda: language_model("llama")  # noqa: E731
    with_end = [estimate(build, ids, step=generating(eos_token_id=ends), train=False, steps=1).peak_allocated
                for ends in (None, list(range(VOCABULARY)))]
    assert with_end[0] == pytest.approx(with_end[1], abs=4096)


class Seeing(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU())


class Deciding(Seeing):
    @torch.inference_mode()
    def forward(self, image: Any) -> Any:
        return super().forward(image)


def test_inference_mode_has_the_workspaces_of_no_grad() -> None:
    image = torch.empty(8, 3, 64, 64)
    plain = estimate(Seeing, image, train=False)
    assert estimate(Deciding, image, train=False).peak_allocated == plain.peak_allocated
    assert any(",workspace" in row for row in plain.trace.decode().splitlines())
    with torch.inference_mode():
        assert estimate(Seeing, torch.empty(8, 3, 64, 64), train=False).peak_allocated == plain.peak_allocated
        made = Seeing()
    assert estimate(made, image, train=False).peak_allocated == plain.peak_allocated


def captured(model: Any, batch: Any, optimizer: Any) -> None:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        model(batch)


def made_callable(model: Any, batch: Any, optimizer: Any) -> None:
    torch.cuda.make_graphed_callables(model, (batch,))


@pytest.mark.parametrize(("step", "name"), [(captured, "CUDAGraph"), (made_callable, "make_graphed_callables")])
def test_cuda_graphs_are_refused_by_name_with_a_hint(step: Any, name: str) -> None:
    with pytest.raises(RuntimeError, match=f"torch.cuda.{name} cannot be estimated(.|\n)*hint: estimate the step"):
        estimate(lambda: nn.Linear(8, 8), torch.zeros(2, 8), step=step, steps=1)


def test_a_model_that_captures_itself_is_refused_too() -> None:
    class Capturing(nn.Linear):
        def forward(self, rows: Any) -> Any:
            captured(super().forward, rows, None)

    with pytest.raises(RuntimeError, match="^torch.cuda.CUDAGraph cannot be estimated"):
        estimate(lambda: Capturing(8, 8), torch.zeros(2, 8))
