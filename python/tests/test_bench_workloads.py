"""The workloads of `benches/gpu`, tiny and on the CPU: what a device measures for minutes can be run at all."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the workloads are PyTorch's")

sys.path.insert(0, str(Path(__file__).parents[2] / "benches/gpu"))
from workloads import BUILT, WORKLOADS, Setting

TINY = Setting(device="cpu", tiny=True)
TORCHVISION = {"resnet50", "maskrcnn", "segment_sizes", "train_eval", "two_models"}
TRANSFORMERS = set(WORKLOADS) - TORCHVISION | {"two_models"}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Models this small are slower on several threads, by far where other tests run beside this one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def steps(name: str, count: int) -> list[float]:
    if name in TORCHVISION:
        pytest.importorskip("torchvision", reason="the model is torchvision's")
    if name in TRANSFORMERS:
        pytest.importorskip("transformers", reason="the model is Transformers'")
    run = WORKLOADS[name](TINY)
    assert next(run) == BUILT
    return list(itertools.islice(run, count))


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_yields_a_finite_number_a_step_and_the_same_in_every_run(name: str) -> None:
    # Evaluation is every fourth step of `train_eval`.
    count = 2 if name == "maskrcnn" else 5
    losses = steps(name, count)
    assert all(math.isfinite(loss) for loss in losses), losses
    assert len(set(losses)) == count, "every step computes something else"
    assert steps(name, count) == losses


def test_an_evaluation_without_gradients_follows_three_training_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    trains: list[bool] = []
    entropy = torch.nn.functional.cross_entropy

    def watched(*given: torch.Tensor) -> torch.Tensor:
        trains.append(torch.is_grad_enabled())
        return entropy(*given)

    monkeypatch.setattr(torch.nn.functional, "cross_entropy", watched)
    steps("train_eval", 8)
    assert trains == [True, True, True, False] * 2


def test_gradients_add_up_over_four_passes_before_the_optimizer_makes_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    backward, step = torch.Tensor.backward, torch.optim.AdamW.step
    monkeypatch.setattr(torch.Tensor, "backward", lambda *given: calls.append("backward") or backward(*given))
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda *given: calls.append("step") or step(*given))
    steps("accumulate", 3)
    assert calls == ["backward", "backward", "backward", "backward", "step"] * 3
