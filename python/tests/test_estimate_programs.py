"""`lowtide.torch.estimate` on programs as people write them: models that are there already, mappings, scalers, prints,
files that fail."""

from __future__ import annotations

import collections
import functools
import random
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="estimate traces with PyTorch")

from torch import nn  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensor  # noqa: E402

from lowtide.torch.estimation import estimate  # noqa: E402
from lowtide.torch.estimation.__main__ import main  # noqa: E402

WIDTH = 256
adam = functools.partial(torch.optim.AdamW, foreach=False)


def real(net: nn.Module) -> bool:
    return not any(isinstance(tensor, FakeTensor) for tensor in [*net.parameters(), *net.buffers()])


@pytest.mark.parametrize("way", ["plain", "moved", "ignored", "inside"])
def test_a_function_that_returns_a_module_leaves_it_as_it_is(way: str) -> None:
    net = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH))
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}

    def build() -> nn.Module:
        if way == "moved":
            return net.cuda()
        if way == "ignored":
            net.cuda().half()
        return nn.Sequential(net, nn.Linear(WIDTH, 1)) if way == "inside" else net

    kind = torch.float16 if way == "ignored" else torch.float32
    found = estimate(build, torch.zeros(8, WIDTH, dtype=kind), adam, steps=2)
    assert real(net) and next(net.parameters()).device.type == "cpu"
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())
    assert found.parameters >= WIDTH * WIDTH * (2 if way == "ignored" else 4)
    assert way != "ignored" or found.parameters < WIDTH * WIDTH * 4


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("count", torch.zeros(2))
        self.scale = torch.ones(WIDTH)
        self.more = {"shifts": [torch.zeros(WIDTH)]}

    def forward(self, values: Any) -> Any:
        self.count[0] += 1
        return self.layer(values) * self.scale.to(values.device) + self.more["shifts"][0].to(values.device)


def test_modules_may_have_tensors_as_plain_attributes() -> None:
    net = Scaled()
    values = torch.zeros(8, WIDTH)
    assert estimate(net, values, adam).parameters >= WIDTH * WIDTH * 4
    assert estimate(lambda: net, values, adam).parameters >= WIDTH * WIDTH * 4
    assert not isinstance(net.scale, FakeTensor) and torch.equal(net.scale, torch.ones(WIDTH))
    assert net.count[0] == 0


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)

    def forward(self, values: Any, scale: Any = 1) -> Any:
        return {"loss": (self.layer(values) * scale).mean()}


def test_any_mapping_is_keywords() -> None:
    batch = collections.UserDict(values=torch.zeros(8, WIDTH), scale=torch.ones(8, 1))
    found = estimate(Named, batch, memory="8GiB")
    assert found.size == 8
    seen = []

    def step(model: Any, batch: Any, optimizer: Any) -> None:
        seen.append(type(batch))
        model(**batch)["loss"].backward()

    estimate(Named, batch, step=step, steps=1)
    assert seen == [collections.UserDict] and not isinstance(batch["values"], FakeTensor)


def test_what_the_tokenizers_of_transformers_give_is_keywords() -> None:
    transformers = pytest.importorskip("transformers")
    batch = transformers.BatchEncoding({"values": torch.zeros(8, WIDTH)})
    assert estimate(Named, batch, steps=1).size == 8


PROGRAM = """
import sys
import torch
from torch import nn
assert sys.argv == [__file__], sys.argv
from beside import WIDTH
def model():
    return nn.Linear(WIDTH, WIDTH)
def example(batch=8):
    return torch.zeros(batch, WIDTH)
"""


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (PROGRAM, ["-o", "none/x.json"], "none/x.json: No such file or directory\nhint:"),
        (PROGRAM, ["--trace", "none/x.csv"], "none/x.csv: No such file or directory\nhint:"),
        ("raise SystemExit(0)", [], "train.py:1: the file ends the program: SystemExit: 0\nhint:"),
        ("import torch\n\ntorch.zeros(3).view(2)", [], "train.py:3: RuntimeError: shape '[2]'"),
        (PROGRAM + "def loss(output):\n    return output.nothing", [], "train.py:12: AttributeError: "),
        ("import torch\ndef model(): pass", [], "train.py: the file has no function example()\nhint: the file defines"),
        (None, [], "train.py: there is no such file\nhint:"),
    ],
)
def test_what_fails_in_a_file_is_said_with_its_place(
    tmp_path: Path, monkeypatch: Any, capsys: Any, text: str | None, options: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beside.py").write_text("WIDTH = 16")
    if text is not None:
        (tmp_path / "train.py").write_text(text)
    assert main(["train.py", "--steps", "1", *options]) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert ("hint:" in said) == ("hint:" in shown)


def sizes_of(maker: Any, vary: str) -> int:
    found = estimate(lambda: nn.Linear(64, 64), maker, vary=vary, memory="256MiB", steps=1)
    assert found.largest is not None
    return found.largest["native"]


def test_sizes_go_to_the_parameter_of_that_name() -> None:
    maker = lambda flag=True, text="a", length=100, batch=4: torch.zeros(batch, length, 64)  # noqa: E731
    assert estimate(lambda: nn.Linear(64, 64), maker, steps=1).size == 4
    assert sizes_of(maker, "sequence") > 20 * sizes_of(maker, "batch")
    assert estimate(lambda: nn.Linear(64, 64), lambda n: torch.zeros(n, 64), steps=1).size == 1
    assert estimate(lambda: nn.Linear(64, 64), lambda depth=64: torch.zeros(2, depth), steps=1).size == 2


def test_a_size_that_the_function_does_not_take_is_refused() -> None:
    with pytest.raises(ValueError, match="no parameter for the sequence, only `batch`\nhint: "):
        sizes_of(lambda batch=4: torch.zeros(batch, 10, 64), "sequence")
    with pytest.raises(ValueError, match="needs a value for `width`\nhint: "):
        sizes_of(lambda batch, width: torch.zeros(batch, width), "batch")


def test_operations_without_a_fake_kernel_are_carried_out_or_named() -> None:
    with torch.library._scoped_library("lowtide_test", "FRAGMENT") as library:
        library.define("doubled(Tensor x) -> Tensor")
        library.define("nowhere(Tensor x) -> Tensor")
        library.impl("doubled", lambda x: x * 2, "CPU")
        library.impl("nowhere", lambda x: x * 2, "CUDA")

        class Custom(nn.Linear):
            def forward(self, values: Any) -> Any:
                return getattr(torch.ops.lowtide_test, name)(super().forward(values))

        name = "doubled"
        assert estimate(lambda: Custom(8, 8), torch.zeros(2, 8), train=False).size == 2
        name = "nowhere"
        with pytest.raises(RuntimeError, match="lowtide_test::nowhere.* cannot be traced(.|\n)*hint: .*register_fake"):
            estimate(lambda: Custom(8, 8), torch.zeros(2, 8), train=False)


def plain_step(model: Any, batch: Any, optimizer: Any) -> None:
    loss = model(batch).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def test_a_step_of_ones_own_has_gradients_and_state() -> None:
    layer = lambda: nn.Linear(1024, 1024, bias=False)  # noqa: E731
    usual = estimate(layer, torch.zeros(8, 1024), adam, loss=lambda output: output.pow(2).mean())
    own = estimate(layer, torch.zeros(8, 1024), adam, step=plain_step)
    assert (own.gradients, own.optimizer_state) == (usual.gradients, usual.optimizer_state)
    groups = {group.name: group.bytes for group in own.by_category}
    assert groups["gradient"] == 4 << 20 and groups["optimizer state"] >= 8 << 20
    assert own.activations < 1 << 20
    assert abs(own.peak_allocated - usual.peak_allocated) < 1 << 18


def test_a_scaler_makes_its_steps() -> None:
    made = []

    def step(model: Any, batch: Any, optimizer: Any) -> None:
        scaler = torch.amp.GradScaler("cuda")
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(batch).float().pow(2).mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
        scaler.step(optimizer)
        scaler.update()
        made.append(scaler.get_scale())
        optimizer.zero_grad()

    found = estimate(lambda: nn.Linear(4096, 1024, bias=False), torch.zeros(8, 4096), adam, step=step)
    assert found.optimizer_state == pytest.approx(2 * found.parameters, rel=0.01)
    assert made == [65536.0] * 3


def test_made_up_numbers_are_finite() -> None:
    def step(model: Any, batch: Any, optimizer: Any) -> None:
        output = model(batch)
        for values in (output, output.mean(), output.log().sum()):
            assert not torch.isnan(values).any() and not values.isinf().any() and torch.isfinite(values).all()
        assert torch.isnan(batch).any()

    estimate(lambda: nn.Linear(64, 4096), torch.full((2048, 64), torch.nan), step=step, steps=1)


def test_random_numbers_are_the_same_every_time_and_the_users_stay() -> None:
    class Skipping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(16))

        def forward(self, values: Any) -> Any:
            for layer in self.layers:
                if random.random() < 0.5 and torch.rand(()).item() < 0.7:
                    values = layer(values)
            return values

    states = random.getstate(), torch.get_rng_state()
    peaks = {estimate(Skipping, lambda: torch.randn(512, 64)).peak_allocated for _ in range(3)}
    assert len(peaks) == 1
    assert random.getstate() == states[0] and torch.equal(torch.get_rng_state(), states[1])


def test_steps_may_print_pin_and_ask_for_statistics() -> None:
    said: list[str] = []

    def step(model: Any, batch: Any, optimizer: Any) -> None:
        loss = model(torch.zeros(4, 64).pin_memory().to("cuda", non_blocking=True)).mean()
        said.append(f"{loss:.3f} {loss}")
        assert torch.cuda.memory_stats()["allocated_bytes.all.current"] > 0
        assert torch.cuda.memory_stats(0)["num_ooms"] == 0
        said.append(torch.cuda.memory_summary() + torch.cuda.memory.memory_summary(device=0))

    found = estimate(lambda: nn.Linear(64, 64), torch.zeros(4, 64), step=step, steps=1)
    assert float(said[0].split()[0]) < 100 and not found.assumptions


def test_an_optimizer_that_is_made_already_is_refused_with_a_hint() -> None:
    model = torch.nn.Linear(4, 4)
    with pytest.raises(TypeError, match="hint: give torch.optim.AdamW"):
        estimate(model, torch.zeros(2, 4), torch.optim.AdamW(model.parameters()))


def test_flexible_attention_is_refused_by_name() -> None:
    flexible = pytest.importorskip("torch.nn.attention.flex_attention").flex_attention

    class Attention(nn.Linear):
        def forward(self, values: Any) -> Any:
            rows = super().forward(values).unflatten(-1, (4, 16)).transpose(1, 2)
            return torch.compile(flexible)(rows, rows, rows)

    words = "flex_attention cannot be traced(.|\n)*hint: .*scaled_dot_product_attention"
    with pytest.raises(RuntimeError, match=words):
        estimate(lambda: Attention(64, 64), torch.zeros(2, 128, 64), train=False)


class Failing(nn.Module):
    def __init__(self, message: str = "") -> None:
        super().__init__()
        self.layer, self.message = nn.Linear(4, 4), message

    def forward(self, values: Any) -> Any:
        if self.message:
            raise RuntimeError(self.message)
        return self.layer(values)


@pytest.mark.parametrize(
    ("message", "example", "hint"),
    [
        ("", (torch.zeros(2, 4), 1), "a tuple is passed as arguments"),
        ("", {"rows": torch.zeros(2, 4)}, "a tuple is passed as arguments"),
        ("", torch.zeros(2, 3), "call the model with this example on the CPU"),
        ("something else", torch.zeros(2, 4), "call the model with this example on the CPU"),
        ("Error in dlopen: libcuda.so.1: no such file", torch.zeros(2, 4), "this code calls the GPU's driver itself"),
    ],
)
def test_a_model_that_fails_gets_the_hint_that_applies(message: str, example: Any, hint: str) -> None:
    said = f"the model failed on the example(.|\n)*{message}(.|\n)*hint: {hint}"
    with pytest.raises(RuntimeError, match=said) as raised:
        estimate(lambda: Failing(message), example)
    assert str(raised.value).count("hint:") == 1
    assert ("test_estimate_programs.py:" in str(raised.value)) == ("arguments" not in hint)
