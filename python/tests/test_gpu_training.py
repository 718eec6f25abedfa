"""Trainings on a real device: the same losses as under the native allocator, for long, compiled, several at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from device import EXACT, INSTALL, NATIVE, run

try:
    import pytest
except ImportError:
    pass
else:
    pytestmark = pytest.mark.gpu


TRAINING = """
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
torch.backends.cudnn.deterministic = True
images = torch.nn.Sequential(
    torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(),
    torch.nn.Conv2d(32, 64, 3, stride=2, padding=1), torch.nn.BatchNorm2d(64), torch.nn.ReLU(),
    torch.nn.AvgPool2d(4), torch.nn.Flatten(),
    torch.nn.Linear(1024, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10),
).cuda()
optimizer = torch.optim.AdamW(images.parameters(), lr=1e-3)
for number in range(30):
    batch = torch.randn(16 + 8 * (number % 3), 3, 32, 32).cuda(non_blocking=True)
    wanted = torch.randint(0, 10, (len(batch),)).cuda()
    loss = torch.nn.functional.cross_entropy(images(batch), wanted)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(loss.item().hex())
"""


def test_losses_equal_the_native_allocators_to_the_last_bit() -> None:
    native = run(NATIVE, TRAINING, **EXACT).split()
    own = run(INSTALL, TRAINING, **EXACT).split()
    assert len(native) == 30
    differing = [number for number in range(30) if native[number] != own[number]]
    assert not differing, f"losses differ in steps {differing}: {native[differing[0]]} and {own[differing[0]]}"


def test_two_processes_share_a_device() -> None:
    alone = run(INSTALL, TRAINING, **EXACT)
    with ThreadPoolExecutor(3) as pool:
        together = [pool.submit(run, INSTALL, TRAINING, **EXACT) for _ in range(3)]
        assert [future.result() == alone for future in together] == [True] * 3


def test_ten_thousand_steps_of_random_shapes() -> None:
    print(
        run(
            INSTALL,
            """
            torch.manual_seed(0)
            chance = random.Random(0)
            model = torch.nn.Sequential(
                torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 256), torch.nn.GELU(),
                torch.nn.Linear(256, 64),
            ).cuda()
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
            good = torch.ones((), dtype=torch.bool, device="cuda")
            marks, start = [], time.monotonic()
            for number in range(10_000):
                batch = torch.randn(chance.randrange(1, 128), chance.randrange(1, 64), 64, device="cuda")
                loss = (model(batch) - batch).pow(2).mean()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                good &= loss.isfinite()
                if number % 1000 == 999:
                    assert bool(good), f"a loss is not finite before step {number}"
                    told = lowtide.torch.stats()
                    marks.append((told["reserved_bytes"], told["peak_requested_bytes"]))
            seconds = time.monotonic() - start
            reserved, requested = [mark[0] for mark in marks], marks[-1][1]
            print(f"{seconds:.1f} s, requested {requested}, reserved by thousand {reserved}")
            assert max(reserved[2:]) <= max(reserved[:2]) + 16 * MIB, "what is reserved grows"
            assert max(reserved) <= 1.25 * requested + 32 * MIB, "much is reserved in vain"
            assert seconds < 120, seconds
            """,
            timeout=240,
        )
    )


def test_a_compiled_model_gives_the_same() -> None:
    run(
        INSTALL,
        """
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256)).cuda()
        compiled = torch.compile(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for number in range(12):
            data = torch.randn(64, 256, device="cuda")
            plain = model(data).pow(2).mean().item()
            loss = compiled(data).pow(2).mean()
            assert abs(loss.item() - plain) < 1e-3 * abs(plain), (number, loss.item(), plain)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        """,
        timeout=280,
    )


def test_convolutions_may_be_tuned() -> None:
    """PyTorch asks its allocator how much memory is left before it tries algorithms."""
    run(
        INSTALL,
        """
        torch.backends.cudnn.benchmark = True
        layer = torch.nn.Conv2d(16, 32, 3).cuda()
        assert layer(torch.ones(4, 16, 32, 32, device="cuda")).shape == (4, 32, 30, 30)
        """,
    )
