"""Pinned memory at its exact size. What needs a device is marked; the pool itself is tested without one in Rust."""

from __future__ import annotations

import textwrap

import child
import pytest

torch = pytest.importorskip("torch")

SERVE = """
import torch
import lowtide.torch
from lowtide import _lowtide
lowtide.torch.install(device=False, pinned=True)
"""


def run(program: str) -> str:
    return child.run(SERVE + textwrap.dedent(program))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_device_it_says_so() -> None:
    done = child.start(SERVE)
    assert done.returncode == 1
    assert "pinned memory" in done.stderr and "hint: leave `pinned` out" in done.stderr
    assert "Aborted" not in done.stderr


@pytest.mark.gpu
class TestOnADevice:
    def test_a_block_takes_what_it_asks_for(self) -> None:
        run(
            """
            asked = 9 << 28  # 2.25 GiB, for which PyTorch takes 4
            block = torch.empty(asked, dtype=torch.uint8, pin_memory=True)
            stats = _lowtide.pinned_stats()
            assert block.is_pinned()
            assert stats["live"] == asked, stats
            assert stats["reserved"] - asked <= 4096, stats
            del block
            again = torch.empty(asked // 2, dtype=torch.uint8, pin_memory=True)
            assert _lowtide.pinned_stats()["reserved"] == stats["reserved"]
            """
        )

    def test_copies_both_ways_are_right(self) -> None:
        run(
            """
            for size in (100, 4096, 1 << 18, (1 << 22) + 3):
                pinned = torch.arange(size, dtype=torch.float32).pin_memory()
                assert pinned.is_pinned()
                device = pinned.to("cuda", non_blocking=True)
                back = torch.empty(size, pin_memory=True)
                back.copy_(device + 1, non_blocking=True)
                torch.cuda.synchronize()
                assert torch.equal(back, torch.arange(size, dtype=torch.float32) + 1)
            """
        )

    def test_a_freed_block_waits_for_the_copies_that_use_it(self) -> None:
        run(
            """
            streams = [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
            size, results = 1 << 24, []
            for turn in range(60):
                with torch.cuda.stream(streams[turn % 3]):
                    torch.cuda._sleep(20_000_000)
                    pinned = torch.full((size,), float(turn)).pin_memory()
                    results.append((turn, pinned.to("cuda", non_blocking=True)[:: 1 << 12].clone()))
                    del pinned
            torch.cuda.synchronize()
            for turn, result in results:
                assert bool((result == turn).all()), turn
            assert _lowtide.pinned_stats()["live"] == 0
            """
        )

    def test_the_cache_can_be_emptied(self) -> None:
        run(
            """
            blocks = [torch.empty(1 << 24, pin_memory=True) for _ in range(4)]
            del blocks
            assert _lowtide.pinned_stats()["reserved"] >= 4 << 26
            torch._C._host_emptyCache()
            assert _lowtide.pinned_stats()["reserved"] == 0
            """
        )

    def test_loaders_that_pin_work(self) -> None:
        run(
            """
            from torch.utils.data import DataLoader, TensorDataset
            data = TensorDataset(torch.arange(4096, dtype=torch.float32).reshape(64, 64))
            loader = DataLoader(data, batch_size=8, num_workers=2, pin_memory=True)
            for turn in range(2):
                total = sum(batch[0].to("cuda", non_blocking=True).sum().item() for batch in loader)
                assert total == 4096 * 4095 / 2
            """
        )


@pytest.mark.gpu
@pytest.mark.parametrize("conf", ["", "expandable_segments:True", "backend:cudaMallocAsync", "lowtide"])
def test_a_recording_of_cuda_has_sizes_streams_and_places(tmp_path, conf: str) -> None:
    variables = {"PYTORCH_CUDA_ALLOC_CONF": conf} if conf and conf != "lowtide" else {}
    program = "import lowtide.torch; lowtide.torch.install()\n" if conf == "lowtide" else ""
    program += textwrap.dedent(
        """
        import torch
        import lowtide.torch.recording as recording
        with recording.record("x.csv.gz"):
            def make():
                return torch.empty(1 << 20, device="cuda")
            first = make()
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                second = make()
            first.record_stream(side)
            weight = torch.ones(512, 512, device="cuda", requires_grad=True)
            (weight @ weight).sum().backward()
            lowtide_step = __import__("lowtide").step()
            del first, second
            raw = torch.cuda.caching_allocator_alloc(12345)
            torch.cuda.caching_allocator_delete(raw)
            torch.cuda.synchronize()
        """
    )
    done = child.start(program, cwd=tmp_path, **variables)
    assert done.returncode == 0 and "not recorded" not in done.stderr, done.stderr
    rows = child.rows(tmp_path / "x.csv.gz")
    blocks = {row["id"]: row for row in rows if row["event"] == "alloc"}
    large = [row for row in blocks.values() if row["bytes"] == str(4 << 20)]
    assert [(row["stream"], row["device"]) for row in large] == [("0", "0"), ("1", "0")]
    assert all(" make" in row["site"] for row in large)
    records = [row for row in rows if row["event"] == "record"]
    assert [(row["id"], row["stream"]) for row in records] == [(large[0]["id"], "1")]
    freed = {row["id"] for row in rows if row["event"] == "free"}
    assert {large[0]["id"], large[1]["id"]} <= freed
    raw = [row for row in blocks.values() if row["bytes"] == "12345"]
    assert len(raw) == 1 and raw[0]["id"] in freed
    assert any(row["category"] == "backward" and row["site"].startswith("backward of ") for row in blocks.values())
