"""The search for the largest size by forecasts: it finds what a search by traces alone finds, with few traces."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="estimate traces with PyTorch")

from torch import nn  # noqa: E402

from lowtide.torch.estimation import estimate  # noqa: E402
from lowtide.torch.estimation.answer import estimate as estimating  # noqa: E402
from lowtide.torch.estimation.answer.estimate import Runs, by_traces  # noqa: E402
from lowtide.torch.estimation.answer.example import Examples  # noqa: E402
from lowtide.torch.estimation.answer.forecast import Forecast, Pattern, neighbours  # noqa: E402
from lowtide.torch.estimation.answer.outcome import ALLOCATORS  # noqa: E402
from lowtide.torch.estimation.tracing.ledger import Ledger  # noqa: E402
from lowtide.torch.estimation.tracing.step import Task  # noqa: E402

adam = functools.partial(torch.optim.AdamW, foreach=False)


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))


class Scores(nn.Module):
    """Attention with all scores in memory, which grow with the square of the sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(64, 192)

    def forward(self, rows: Any) -> Any:
        query, key, value = self.project(rows).chunk(3, -1)
        return (query @ key.transpose(1, 2)).softmax(-1) @ value


class Ragged(nn.Module):
    """Makes many blocks whose sizes are far from what they are rounded to."""

    def __init__(self) -> None:
        super().__init__()
        self.scales = nn.Parameter(torch.ones(64))

    def forward(self, rows: Any) -> Any:
        return sum((rows * scale).exp().sum(0) for scale in self.scales)


class Switching(nn.Module):
    """Works on a copy in full from some size on."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))

    def forward(self, rows: Any) -> Any:
        made = self.layers(rows)
        return made + rows.new_zeros(8 << 20).sum() if rows.shape[0] >= 30 else made


class Choosing(nn.Module):
    """Has as many blocks as its values ask for."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(256, 256)

    def forward(self, rows: Any) -> Any:
        for _ in range(1 + rows.shape[0] % 3):
            rows = self.layer(rows)
        return rows


class Positions(nn.Module):
    """Takes sequences up to a length."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.zeros(1, 500, 512))

    def forward(self, rows: Any) -> Any:
        return (rows + self.positions[:, : rows.shape[1]]).exp()


def own_step(model: Any, batch: Any, optimizer: Any) -> None:
    for part in batch.chunk(2):
        model(part).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def runs_of(
    model: Any, example: Any, memory: int, vary: str = "batch", *, train: bool = True, step: Any = None, steps: int = 3
) -> Runs:
    task = Task(model, [], adam, None, None, train, torch.device("cuda"), memory, step)
    runs = Runs(task, Examples(example, vary), steps, memory)
    runs.traced(runs.examples.size)
    return runs


def counted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each trace that is made from now on is of an opening only."""
    made: list[bool] = []
    native = estimating.trace

    def trace(task: Task) -> Any:
        made.append(task.is_brief)
        return native(task)

    monkeypatch.setattr(estimating, "trace", trace)
    return made


rows = lambda batch=4: torch.empty(batch, 1024, 1024)  # noqa: E731
thin = lambda batch=4: torch.empty(batch, 4096, 256)  # noqa: E731

CASES: dict[str, Callable[[], Runs]] = {
    "affine": lambda: runs_of(perceptron, rows, 2 << 30),
    "quadratic": lambda: runs_of(Scores, lambda sequence=64: torch.empty(4, sequence, 64), 1 << 30, "sequence"),
    "rounded": lambda: runs_of(Ragged, lambda batch=7: torch.empty(batch, 9999), 1 << 30, steps=2),
    "switched on": lambda: runs_of(Switching, thin, 1 << 30),
    "inference": lambda: runs_of(perceptron, rows, 2 << 30, train=False),
    "own step": lambda: runs_of(perceptron, rows, 2 << 30, step=own_step),
    "lists": lambda: runs_of(perceptron, [rows(), rows()], 2 << 30),
}


# The opening of a step of the program's own is all of it: there is nothing to save.
@pytest.mark.parametrize("case", [case for case in CASES if case != "own step"])
def test_a_forecast_finds_what_traces_find(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_trace = by_traces(CASES[case]())
    runs = CASES[case]()
    made = counted(monkeypatch)
    assert Forecast(runs, runs.examples.size).largest(ALLOCATORS) == by_trace
    assert len(made) <= (16 if case == "quadratic" else 9)
    assert made.count(False) <= (9 if case == "lists" else 2)


@pytest.mark.parametrize("case", ["affine", "quadratic", "switched on", "own step"])
def test_what_is_told_was_traced_and_so_was_the_next(case: str) -> None:
    runs = CASES[case]()
    forecast = Forecast(runs, runs.examples.size)
    found = forecast.largest(ALLOCATORS)
    assert found is not None
    for size in found.values():
        assert size in forecast.of_size and size + 1 in forecast.of_size
        assert forecast.peak(size) == runs.traced(size).ledger.peak
        assert forecast.peak(size + 1) == runs.traced(size + 1).ledger.peak
    assert all(runs.answers.fits(name)(size) for name, size in found.items())
    assert not any(runs.answers.fits(name)(size + 1) for name, size in found.items())


def test_sizes_whose_events_are_never_alike_are_searched_by_traces() -> None:
    found = estimate(Choosing, thin, adam, memory="300MiB", vary="batch", steps=1).largest
    assert found is not None
    runs = runs_of(Choosing, thin, 300 << 20, steps=1)
    assert all(runs.answers.fits(name)(size) for name, size in found.items())
    assert not any(runs.answers.fits(name)(size + 1) for name, size in found.items())


def test_a_guess_beyond_what_the_model_takes_is_no_failure() -> None:
    maker = lambda sequence=20: torch.empty(64, sequence, 512)  # noqa: E731
    fitting = by_traces(runs_of(Positions, maker, 128 << 20, "sequence"))
    assert max(fitting.values()) < 500
    assert estimate(Positions, maker, adam, memory="128MiB", vary="sequence").largest == fitting


def test_nothing_fits_where_the_weights_do_not() -> None:
    assert estimate(perceptron, rows, adam, memory="1MiB", vary="batch").largest == dict.fromkeys(ALLOCATORS, 0)


def test_an_interrupted_search_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    native = estimating.trace

    def trace(task: Task) -> Any:
        if task.is_brief:
            raise KeyboardInterrupt
        return native(task)

    monkeypatch.setattr(estimating, "trace", trace)
    with pytest.raises(KeyboardInterrupt):
        estimate(perceptron, rows, adam, memory="1GiB", vary="batch")


def test_lines_are_drawn_through_near_sizes_that_are_far_enough_apart() -> None:
    assert neighbours([4], 9) == (4, None)
    assert neighbours([4, 20], 9) == (4, 20)
    assert neighbours([4, 20, 21], 22) == (21, 20)
    assert neighbours([4, 20, 21], 30) == (21, 4)


def test_blocks_follow_lines_parabolas_and_steps() -> None:
    ledger = Ledger()
    laws: list[Callable[[int], int]] = [lambda n: 4096, lambda n: 100 * n + 12, lambda n: 3 * n * n + 7 * n]
    for law in laws:
        ledger.allocate(law(10), "here", "made", "activation")
    ledger.close_opening()
    pattern = Pattern(10, ledger, False)
    for size in (10, 40, 90):
        like = Ledger()
        for law in laws:
            like.allocate(law(size), "here", "made", "activation")
        pattern.add(size, like)
    for size in (5, 17, 41, 88, 300):
        assert pattern.bytes_of(size) == [law(size) for law in laws]
