"""`lowtide.torch.estimate` on code that somebody compiled, with TorchScript or `torch.compile`: the trace is that of
the code as it was written."""

from __future__ import annotations

import functools
import io
import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="estimate traces with PyTorch")

from torch import nn  # noqa: E402

from lowtide.torch.estimation import Estimate, estimate  # noqa: E402

descent = functools.partial(torch.optim.SGD, lr=0.1)
ROWS = torch.zeros(512, 64)


def events(found: Estimate) -> list[list[str]]:
    """What is allocated and freed, without the places, which differ."""
    return [line.split(",")[:4] + line.split(",")[5:] for line in found.trace.decode().splitlines()]


def written() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))


def scripted(code: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(code)


def dynamic_expand(places: torch.Tensor, query: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    return places.expand([query.size(0), query.size(1), query.size(2), positions.size(-1)])


def scaled_size(query: torch.Tensor, factor: int) -> torch.Tensor:
    return torch.sqrt(torch.tensor(query.size(-1), dtype=torch.float) * factor)


def gated(values: torch.Tensor) -> torch.Tensor:
    return values * torch.sigmoid(values * 1.702)


class Disentangled(nn.Module):
    """Attention by relative places, with functions such as those that DeBERTa has TorchScript compile."""

    def __init__(self, change: Callable[[Any], Any]) -> None:
        super().__init__()
        self.project = nn.Linear(64, 192)
        self.places = nn.Embedding(32, 64)
        self.expand, self.scale, self.act = change(dynamic_expand), change(scaled_size), change(gated)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        query, key, value = (part.unflatten(-1, (4, 16)).transpose(1, 2) for part in self.project(rows).chunk(3, -1))
        scores = query @ key.transpose(-1, -2) / self.scale(query, 2).to(query.device)
        positions = torch.arange(16, device=rows.device)
        distance = (positions[:, None] - positions[None, :] + 16).unsqueeze(0).unsqueeze(0)
        relative = query @ self.places.weight.unflatten(-1, (4, 16)).permute(1, 2, 0)
        scores = scores + torch.gather(relative, -1, self.expand(distance, query, positions))
        return self.act(scores.softmax(-1) @ value)


def test_scripted_functions_are_traced_as_the_functions_that_they_were() -> None:
    rows = torch.zeros(8, 16, 64)
    plain = estimate(lambda: Disentangled(lambda function: function), rows, descent)
    found = estimate(lambda: Disentangled(scripted), rows, descent)
    assert events(found) == events(plain) and plain.assumptions == []
    assert [text.split(":")[0] for text in found.assumptions] == ["TorchScript"]


def test_scripted_functions_whose_python_is_gone_run_as_scripts() -> None:
    act = scripted(gated)
    act._torchdynamo_inline = None

    class Gated(nn.Linear):
        def forward(self, values: torch.Tensor) -> torch.Tensor:
            return self.act(super().forward(values))

    Gated.act = staticmethod(gated)
    plain = estimate(lambda: Gated(64, 256), ROWS, descent)
    Gated.act = staticmethod(act)
    assert events(estimate(lambda: Gated(64, 256), ROWS, descent)) == events(plain)


@pytest.mark.parametrize("way", ["scripted", "traced", "loaded", "inside", "built"])
def test_script_modules_are_traced_as_the_modules_that_they_were(way: str) -> None:
    model: Any = scripted(written())
    if way == "traced":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = torch.jit.trace(written(), ROWS[:2])
    if way == "loaded":
        file = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.jit.save(model, file)
            file.seek(0)
            model = torch.jit.load(file)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    given = {"inside": lambda: nn.Sequential(model), "built": lambda: scripted(written())}.get(way, model)
    found = estimate(given, ROWS, descent)
    plain = estimate(written, ROWS, descent)
    assert (found.parameters, found.gradients) == (plain.parameters, plain.gradients)
    assert found.peak_requested == plain.peak_requested
    assert all(torch.equal(*pair) for pair in zip(before, model.parameters(), strict=True))


class Halves(nn.Module):
    """A model of which one part is compiled."""

    def __init__(self, act: Callable[[Any], Any]) -> None:
        super().__init__()
        self.first, self.second, self.act = nn.Linear(64, 256), nn.Linear(256, 64), act

    def forward(self, values: Any) -> Any:
        return self.second(self.act(self.first(values)))


def compiled(way: str, **settings: Any) -> Any:
    if way == "module":
        return torch.compile(written(), **settings)
    if way == "built module":
        return lambda: torch.compile(written(), **settings)
    if way == "function inside":
        return lambda: Halves(torch.compile(nn.functional.gelu, **settings))
    model = written()
    model.compile(**settings)
    return model if way == "in place" else lambda: compiled("in place", **settings)


@pytest.mark.parametrize("way", ["module", "built module", "in place", "built in place", "function inside"])
@pytest.mark.parametrize("settings", [{}, {"fullgraph": True}, {"mode": "reduce-overhead"}])
def test_compiled_code_is_traced_as_it_was_written_and_that_is_said(way: str, settings: dict[str, Any]) -> None:
    plain = estimate(lambda: Halves(nn.functional.gelu), ROWS, descent)
    found = estimate(compiled(way, **settings), ROWS, descent)
    assert found.peak_requested == plain.peak_requested
    assert [text.split(":")[0] for text in found.assumptions] == ["torch.compile"]


def test_compiling_is_as_before_afterwards() -> None:
    class Meddling(nn.Linear):
        def forward(self, values: Any) -> Any:
            raise KeyError("stop")

    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    model = torch.compile(nn.Linear(4, 4), backend=backend)
    act = scripted(gated)
    call = type(act).__call__
    with pytest.raises(RuntimeError, match="stop"):
        estimate(lambda: Meddling(4, 4), ROWS)
    assert type(act).__call__ == call
    model(torch.zeros(2, 4))
    assert len(graphs) == 1


@pytest.mark.parametrize("version", ["deberta", "deberta_v2"])
def test_deberta_answers_with_its_functions_scripted_as_without(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    transformers = pytest.importorskip("transformers", reason="the model is Transformers'")
    family = {"deberta": "Deberta", "deberta_v2": "DebertaV2"}[version]
    config = getattr(transformers, f"{family}Config")(
        vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        relative_attention=True, pos_att_type=["c2p", "p2c"], max_position_embeddings=64, position_buckets=16,
    )
    build = lambda: getattr(transformers, f"{family}ForSequenceClassification")(config)  # noqa: E731
    batch = {"input_ids": torch.randint(1, 100, (2, 32)), "labels": torch.zeros(2, dtype=torch.long)}
    plain = estimate(build, batch, descent)
    place = f"transformers.models.{version}.modeling_{version}"
    module = pytest.importorskip(place)
    for name in ("c2p_dynamic_expand", "p2c_dynamic_expand", "pos_dynamic_expand", "scaled_size_sqrt"):
        function = getattr(module, name)
        monkeypatch.setattr(module, name, scripted(getattr(function, "_torchdynamo_inline", function)))
    found = estimate(build, batch, descent)
    assert events(found) == events(plain)
    assert found.gradients > 0 and any(text.startswith("TorchScript") for text in found.assumptions)
