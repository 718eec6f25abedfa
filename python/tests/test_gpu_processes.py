"""How processes begin, fork and end with a real device."""

from __future__ import annotations

import textwrap

import child
from device import INSTALL, LOWTIDE, NATIVE, run

try:
    import pytest
except ImportError:
    pass
else:
    pytestmark = pytest.mark.gpu


def test_install_after_cuda_has_started_is_an_error() -> None:
    run(
        LOWTIDE,
        """
        torch.zeros(1, device="cuda")
        try:
            lowtide.torch.install()
        except RuntimeError as error:
            assert "CUDA has started already" in str(error) and "hint: " in str(error), error
        else:
            raise SystemExit("no error")
        assert torch.ones(3, device="cuda").sum().item() == 3
        assert torch.cuda.memory_allocated() >= 0
        """,
    )


def test_a_forked_child_uses_the_processor_and_ends() -> None:
    run(
        INSTALL,
        """
        from torch.utils.data import DataLoader, Dataset
        kept = torch.full((8 * MIB,), 5.0, device="cuda")
        torch.cuda.synchronize()
        for ends in (lambda: os._exit(0), lambda: sys.exit(0)):
            child = os.fork()
            if child == 0:
                del kept
                assert torch.ones(1000).sum() == 1000
                lowtide.step()
                ends()
            assert os.waitpid(child, 0)[1] == 0
            assert bool((kept == 5).all())
        class Numbers(Dataset):
            def __len__(self):
                return 64
            def __getitem__(self, index):
                return torch.full((1000,), float(index))
        for batch in DataLoader(Numbers(), batch_size=8, num_workers=2, multiprocessing_context="fork"):
            moved = batch.cuda()
            assert moved.sum().item() == batch.sum().item()
        child = os.fork()
        if child == 0:
            try:
                torch.ones(10, device="cuda")
            except RuntimeError as error:
                os._exit(0 if "spawn" in str(error) else 3)
            os._exit(4)
        assert os.waitpid(child, 0)[1] == 0
        assert bool((kept == 5).all()) and torch.ones(10, device="cuda").sum().item() == 10
        """,
    )


def test_a_process_forked_before_the_first_tensor_may_use_the_device() -> None:
    """As it may under PyTorch's own allocator."""
    program = """
        child = os.fork()
        if child == 0:
            try:
                right = torch.ones(10, device="cuda").sum().item() == 10
            except BaseException as error:
                print(type(error).__name__, error, file=sys.stderr, flush=True)
                right = False
            os._exit(0 if right else 1)
        assert os.waitpid(child, 0)[1] == 0
        """
    run(NATIVE, program)
    run(INSTALL, program)


def test_a_process_ends_with_live_tensors() -> None:
    done = child.start(
        INSTALL
        + textwrap.dedent(
            """
            import atexit
            kept = [torch.ones(MIB, device="cuda") for _ in range(8)]
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                torch.cuda._sleep(200_000_000)
                late = torch.ones(MIB, device="cuda") * 2
            kept[0].record_stream(side)
            class Holder:
                def __init__(self):
                    self.tensor, self.own = torch.ones(MIB, device="cuda"), self
                def __del__(self):
                    self.tensor = None
            holder = Holder()
            torch.kept = torch.ones(MIB, device="cuda")
            model = torch.nn.Linear(512, 512).cuda()
            model(torch.ones(4, 512, device="cuda")).sum().backward()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                inside = torch.ones(MIB, device="cuda") * 3
            atexit.register(lambda: torch.ones(MIB, device="cuda"))
            """
        )
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), (done.returncode, done.stdout, done.stderr)
