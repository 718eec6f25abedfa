"""`lowtide.torch.estimate`: peaks against counts by hand, values that decide shapes, the search, and what is said of
mistakes."""

from __future__ import annotations

import functools
import json

import pytest

torch = pytest.importorskip("torch", reason="estimate traces with PyTorch")

from torch import nn  # noqa: E402

from lowtide.torch.estimation import Estimate, estimate  # noqa: E402
from lowtide.torch.estimation.kernels.workspaces import BLAS_WORKSPACE  # noqa: E402
from lowtide.torch.estimation.answer.memory import capacity  # noqa: E402
from lowtide.torch.estimation.kernels.recurrent import Shape  # noqa: E402
from lowtide.torch.estimation.kernels.reduction import partial_results  # noqa: E402
from lowtide.torch.estimation.answer.search import largest  # noqa: E402

WIDTH, BATCH = 4096, 1024


def rounded(*sizes: int) -> int:
    return sum(-(-size // 512) * 512 for size in sizes)


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False), nn.ReLU(), nn.Linear(WIDTH, 1, bias=False))


def test_a_perceptron_takes_what_a_count_by_hand_says() -> None:
    found = estimate(perceptron, lambda: torch.zeros(BATCH, WIDTH), functools.partial(torch.optim.Adam, foreach=False))
    weights = [WIDTH * WIDTH * 4, WIDTH * 4]
    assert found.parameters == sum(weights)
    assert found.gradients == sum(weights)
    assert found.optimizer_state == 2 * sum(weights)
    # The optimizer's step: weights, gradients, two states, the root of one of them and its quotient, and what the
    # loop holds.
    held = [BATCH * WIDTH * 4, BATCH * 4, 4]
    least = rounded(*weights * 4, WIDTH * WIDTH * 4, *held) + BLAS_WORKSPACE
    assert least <= found.peak_allocated <= least + rounded(WIDTH * WIDTH * 4) + BLAS_WORKSPACE + (1 << 20)


def test_plain_descent_peaks_in_the_backward_pass_exactly() -> None:
    descent = functools.partial(torch.optim.SGD, lr=0.1, foreach=False)
    found = estimate(perceptron, lambda: torch.zeros(BATCH, WIDTH), descent, steps=2)
    weights, image = [WIDTH * WIDTH * 4, WIDTH * 4], BATCH * WIDTH * 4
    # As the first layer's weight gets its gradient: both weights and gradients, the batch, the gradient before the
    # ReLU, the output, the loss and its gradient. The activation behind the ReLU is gone.
    alive = rounded(*weights, *weights, image, image, BATCH * 4, 4, 4) + 2 * BLAS_WORKSPACE
    assert found.peak_allocated == alive
    assert found.peak_step == 1


def test_inference_keeps_no_activations() -> None:
    layers = lambda: nn.Sequential(*[nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4)])  # noqa: E731
    found = estimate(layers, lambda: torch.zeros(BATCH, WIDTH), train=False)
    assert found.gradients == found.optimizer_state == 0
    weights, image = WIDTH * WIDTH * 4, BATCH * WIDTH * 4
    # The batch before and this one, the output before, and two activations at a time.
    assert rounded(*[weights] * 4, *[image] * 3) + BLAS_WORKSPACE <= found.peak_allocated
    assert found.peak_allocated <= rounded(*[weights] * 4, *[image] * 5) + BLAS_WORKSPACE


def test_the_users_model_and_example_stay_as_they_are() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    example = torch.randn(4, 8)
    estimate(model, example, torch.optim.AdamW)
    assert all(type(parameter) is nn.Parameter and parameter.grad is None for parameter in model.parameters())
    assert all(parameter.device.type == "cpu" for parameter in model.parameters())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert type(example) is torch.Tensor and example.device.type == "cpu"
    assert model(example).sum().item() == model(example).sum().item()


def test_nothing_is_left_replaced() -> None:
    def watched() -> list[object]:
        attention, apply = nn.functional.scaled_dot_product_attention, torch.autograd.Function.apply
        return [torch.cuda.is_available, torch.Tensor.tolist, nn.Module._apply, attention, apply]

    before = watched()
    estimate(perceptron, lambda: torch.zeros(2, WIDTH))
    assert watched() == before
    assert torch.tensor([1.0, 2.0]).tolist() == [1.0, 2.0]


class Chooser(nn.Module):
    """Goes on with the rows whose score is above a bar."""

    def __init__(self, bar: float) -> None:
        super().__init__()
        self.score = nn.Linear(64, 1)
        self.work = nn.Linear(64, 4096)
        self.bar = bar

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        chosen = rows[self.score(rows).squeeze(1) > self.bar]
        if chosen.shape[0] == 0 or chosen.abs().sum().item() < 0:
            return self.score(rows).mean()
        return self.work(chosen).pow(2).mean()


def test_shapes_that_depend_on_values_are_made_up_and_said_so() -> None:
    all_rows = estimate(lambda: Chooser(-100.0), lambda: torch.randn(2000, 64))
    half_of_them = estimate(lambda: Chooser(0.0), lambda: torch.randn(2000, 64))
    assert any("made-up" in assumption for assumption in half_of_them.assumptions)
    assert half_of_them.activations < 0.7 * all_rows.activations


def test_values_that_follow_from_the_example_are_not_made_up() -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.work = nn.Linear(64, 4096)

        def forward(self, rows: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            assert mask.sum().item() == 100
            return self.work(rows[mask]).mean()

    mask = torch.arange(1000) < 100
    found = estimate(Masked, (torch.randn(1000, 64), mask))
    assert found.assumptions == []
    assert found.activations < 200 * 4096 * 4


def test_mixed_precision_halves_what_is_kept() -> None:
    model = lambda: nn.Sequential(*[nn.Linear(512, 512) for _ in range(8)])  # noqa: E731
    full = estimate(model, lambda: torch.empty(4096, 512), steps=2)
    mixed = estimate(model, lambda: torch.empty(4096, 512), autocast="bfloat16", steps=2)
    assert 0.45 < mixed.activations / full.activations < 0.75


def test_attention_keeps_no_matrix_of_scores() -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project = nn.Linear(512, 1536, dtype=torch.bfloat16)

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            parts = self.project(rows).chunk(3, -1)
            heads = [part.unflatten(-1, (8, 64)).transpose(1, 2) for part in parts]
            return nn.functional.scaled_dot_product_attention(*heads, is_causal=True).float().mean()

    found = estimate(Attention, lambda: torch.randn(4, 4096, 512, dtype=torch.bfloat16))
    assert found.peak_allocated < 4 * 8 * 4096 * 4096 * 2


def test_the_search_brackets_the_answer() -> None:
    narrow = lambda: nn.Sequential(nn.Linear(1024, 1024, bias=False), nn.ReLU(), nn.Linear(1024, 1))  # noqa: E731
    example = lambda batch: torch.empty(batch, 1024)  # noqa: E731
    found = estimate(narrow, example, memory="1GiB", vary="batch", steps=2)
    assert found.largest is not None
    size = found.largest["lowtide"]
    within = estimate(narrow, lambda: example(size), memory="1GiB", steps=2)
    beyond = estimate(narrow, lambda: example(size + 1), memory="1GiB", steps=2)
    assert within.fits is not None and within.fits["lowtide"]
    assert beyond.fits is not None and not beyond.fits["lowtide"]
    assert found.largest["native"] <= found.largest["lowtide"]


@pytest.mark.parametrize("answer", [0, 1, 7, 1000, 123457])
def test_a_search_needs_few_questions(answer: int) -> None:
    asked: list[int] = []

    def reserved(size: int) -> int:
        return 1000 + 10 * size

    def fits(size: int) -> bool:
        asked.append(size)
        return size <= answer

    assert largest([reserved], fits, [32], reserved(answer)) == answer
    assert len(asked) <= 20


def test_sequences_grow_along_the_second_dimension() -> None:
    embed = lambda: nn.Sequential(nn.Embedding(1000, 256), nn.Linear(256, 1000))  # noqa: E731
    found = estimate(embed, torch.randint(0, 1000, (4, 128)), memory="128MiB", vary="sequence", steps=1)
    assert found.size == 128 and found.vary == "sequence"
    assert found.largest is not None and found.largest["lowtide"] > 128


def test_a_list_is_an_example_for_each_step() -> None:
    short, long = torch.zeros(8, WIDTH), torch.zeros(4096, WIDTH)
    found = estimate(perceptron, [short, long, short])
    assert found.steps == 3 and found.peak_step == 2


def test_the_answer_has_a_text_an_object_and_a_trace(tmp_path: object) -> None:
    found = estimate(perceptron, lambda: torch.zeros(4, WIDTH), torch.optim.AdamW, memory="24GiB")
    assert isinstance(found, Estimate)
    assert "peak" in str(found) and "fits 24.0 GiB" in str(found) and "alive at the peak" in str(found)
    numbers = json.loads(found.json())
    assert numbers["version"] == 1 and numbers["peak_allocated"] == found.peak_allocated
    assert sum(group["bytes"] for group in numbers["by_category"]) == found.peak_allocated
    assert found.trace.startswith(b"event,id,bytes,stream")
    for name in ("native", "expandable", "lowtide"):
        assert found.peak_reserved[name] >= found.peak_requested


class Reader(nn.Module):
    """A recurrent layer alone."""

    def __init__(self, layer: type, **settings: object) -> None:
        super().__init__()
        self.layer = layer(32, 64, **settings)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.layer(rows)[0]


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_are_traced_and_their_workspace_is_said_to_be_near(layer: type) -> None:
    read = lambda: Reader(layer, num_layers=2, dropout=0.5, batch_first=True)  # noqa: E731
    found = estimate(read, torch.randn(8, 16, 32), torch.optim.SGD)
    assert any("cuDNN" in assumption for assumption in found.assumptions)


@pytest.mark.parametrize(
    ("shape", "rows", "width", "value_bytes", "measured"),
    [
        (Shape("lstm", 2, 1, True, 0.2), 256 * 32, 1024, 4, 370_147_584),
        (Shape("lstm", 3, 2, True, 0.1), 100 * 16, 256, 2, 28_262_656),
        (Shape("gru", 1, 2, True, 0.0), 300 * 64, 512, 2, 235_929_856),
        (Shape("gru", 3, 1, True, 0.0), 100 * 16, 256, 4, 32_768_256),
        (Shape("rnn_tanh", 2, 1, True, 0.2), 256 * 32, 1024, 4, 101_712_128),
        (Shape("rnn_tanh", 1, 1, False, 0.0), 256 * 32, 1024, 4, 0),
    ],
)
def test_recurrent_layers_keep_what_an_h200_measured(
    shape: Shape, rows: int, width: int, value_bytes: int, measured: int
) -> None:
    assert shape.reserve(rows * width * shape.directions, value_bytes) == measured


@pytest.mark.parametrize(
    ("shape", "measured"),
    [((19200, 256), 39_321_600), ((12608, 768), 77_463_552), ((12608, 3072), 138_412_032), ((200704, 96), 25_952_256)],
)
def test_sums_of_columns_take_what_an_h200_measured(shape: tuple[int, int], measured: int) -> None:
    source = torch.empty(shape, dtype=torch.bfloat16, device="meta")
    assert partial_results(source, source.sum(0, keepdim=True))[0] == measured


def test_a_bias_that_is_not_dense_along_rows_needs_all_scores() -> None:
    class Biased(nn.Module):
        def __init__(self, is_dense: bool) -> None:
            super().__init__()
            self.bias = nn.Parameter(torch.zeros(4, 256, 256) if is_dense else torch.zeros(256, 256, 4))
            self.scale = nn.Parameter(torch.ones(()))
            self.is_dense = is_dense

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            rows = rows * self.scale
            bias = self.bias if self.is_dense else self.bias.permute(2, 0, 1)
            return nn.functional.scaled_dot_product_attention(rows, rows, rows, bias.unsqueeze(0))

    found = [estimate(lambda: Biased(is_dense), torch.empty(8, 4, 256, 64)) for is_dense in (True, False)]
    scores = 8 * 4 * 256 * 256 * 4
    assert found[1].peak_allocated > found[0].peak_allocated + scores // 2


def test_a_reduced_loss_holds_the_storage_of_all_losses() -> None:
    compare = lambda output: nn.functional.mse_loss(output, torch.zeros_like(output))  # noqa: E731
    found = estimate(lambda: nn.Linear(512, 2048), torch.empty(1024, 512), loss=compare, steps=1)
    rows = [line.split(",") for line in found.trace.decode().splitlines()]
    losses = [row for row in rows if row[0] == "alloc" and row[4].endswith(" mse_loss")]
    assert [int(row[2]) for row in losses[:2]] == [1024 * 2048 * 4] * 2
    assert [row[5] for row in losses[:2]] == ["activation", "workspace"]


def test_a_bias_is_added_in_place_to_rows_that_are_not_dense() -> None:
    class Turned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project = nn.Linear(64, 4096)

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return self.project(rows.transpose(0, 1))

    found = estimate(Turned, torch.empty(64, 128, 64), train=False, steps=1)
    assert found.peak_allocated < 2 * 64 * 128 * 4096 * 4


@pytest.mark.parametrize(
    ("problem", "arguments"),
    [
        ("not a torch.nn.Module", {"model": lambda: 7}),
        ("not a torch.nn.Module", {"model": 7}),
        ("the model failed on the example", {"example": torch.zeros(2, 3)}),
        ("is not a unit of memory", {"memory": "12 parsecs"}),
        ("nor one of the GPUs", {"memory": "voodoo2"}),
        ("needs a memory", {"vary": "batch"}),
        ("vary is", {"vary": "depth", "memory": "1GiB"}),
        ("is empty", {"example": []}),
    ],
)
def test_mistakes_are_named_with_a_hint(problem: str, arguments: dict[str, object]) -> None:
    given: dict[str, object] = {"model": perceptron, "example": torch.zeros(2, WIDTH), **arguments}
    with pytest.raises((TypeError, ValueError, RuntimeError)) as raised:
        estimate(given.pop("model"), given.pop("example"), **given)
    assert problem in str(raised.value) and "hint:" in str(raised.value)


def test_gpus_have_names() -> None:
    assert capacity("H200") == (143771 << 20) - (1 << 30)
    assert capacity("rtx 4090") < 24 << 30
    assert capacity("24GiB") == capacity(24 << 30) == 24 << 30
