"""Large CPU tensors from the host's arena, with real PyTorch: values, threads, forks, ends."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import child
import pytest

pytest.importorskip("torch")

SERVE = """
import torch
import lowtide.torch
from lowtide import _lowtide
lowtide.torch.install(device=False, cpu=True)
"""


def run(program: str) -> str:
    return child.run(SERVE + textwrap.dedent(program))


def test_large_tensors_are_served_and_small_ones_are_not() -> None:
    run(
        """
        small = torch.ones((1 << 18) - 1)
        assert _lowtide.cpu_stats()["live"] == 0
        large = torch.ones(1 << 18)
        assert _lowtide.cpu_stats()["live"] == 1 << 20
        assert large.data_ptr() % 64 == 0
        del large
        assert _lowtide.cpu_stats()["live"] == 0
        assert _lowtide.trim_cpu() >= 1 << 20
        assert _lowtide.cpu_stats()["reserved"] == 0
        """
    )


def test_tensors_that_share_and_resize_keep_their_values() -> None:
    run(
        """
        import numpy, pickle
        tensor = torch.arange(1 << 20, dtype=torch.float32)
        array = tensor.numpy()
        array[5] = -1
        assert tensor[5] == -1
        view = tensor[100:].clone()
        del tensor
        assert array[7] == 7 and view[0] == 100
        again = torch.from_numpy(numpy.ones(1 << 20)) + 1
        assert again.sum().item() == 2 << 20
        again.resize_(1 << 21)
        assert again[(1 << 20) - 1] == 2
        assert torch.equal(pickle.loads(pickle.dumps(view)), view)
        lazy = view._lazy_clone() if hasattr(view, "_lazy_clone") else view.clone()
        lazy[0] = 3
        assert view[0] == 100
        shared = view.share_memory_()
        assert shared[1] == 101
        """
    )


def test_what_the_arena_cannot_serve_raises_as_before() -> None:
    run(
        """
        try:
            torch.empty(1 << 50)
        except RuntimeError as error:
            assert "can't allocate memory" in str(error)
        else:
            raise SystemExit("no error")
        """
    )


def test_no_two_threads_have_the_same_memory() -> None:
    run(
        """
        import random, threading
        wrong = []
        def work(seed):
            chance, held = random.Random(seed), []
            for turn in range(400):
                if held and chance.random() < 0.5:
                    value, tensor = held.pop(chance.randrange(len(held)))
                    if not bool((tensor == value).all()):
                        wrong.append(value)
                else:
                    value = seed * 1000 + turn
                    held.append((value, torch.full((chance.randrange(1 << 18, 1 << 19),), float(value))))
                if turn % 50 == 0 and seed == 0:
                    lowtide.step()
            for value, tensor in held:
                if not bool((tensor == value).all()):
                    wrong.append(value)
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert not wrong, wrong
        assert _lowtide.cpu_stats()["live"] == 0
        """
    )


def test_a_tensor_may_be_freed_by_another_thread() -> None:
    run(
        """
        import queue, threading
        tensors = queue.Queue(maxsize=8)
        def drop():
            while tensors.get() is not None:
                pass
        thread = threading.Thread(target=drop)
        thread.start()
        for _ in range(500):
            tensors.put(torch.empty(1 << 18))
        tensors.put(None)
        thread.join()
        assert _lowtide.cpu_stats()["live"] == 0
        """
    )


TRAINING = """
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 512))
optimizer = torch.optim.AdamW(model.parameters())
for step in range(12):
    batch = torch.randn(512 + 128 * (step % 3), 512)
    loss = (model(batch) - batch).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item().hex())
"""


def test_losses_are_the_same_to_the_last_bit() -> None:
    assert child.run("import torch\n" + TRAINING) == child.run(SERVE + TRAINING)


def test_what_is_reserved_stays_close_to_what_is_in_use() -> None:
    steady = TRAINING.replace("128 * (step % 3)", "0").replace("range(12)", "range(30)")
    out = child.run(SERVE + steady + "print(_lowtide.cpu_stats())")
    stats = ast.literal_eval(out.splitlines()[-1])
    assert 0 < stats["peak_live"] <= stats["peak_reserved"] <= 1.25 * stats["peak_live"], stats


def test_workers_of_a_loader_are_forked() -> None:
    run(
        """
        from torch.utils.data import DataLoader, Dataset
        base = torch.arange(1 << 19, dtype=torch.float32)
        class Numbers(Dataset):
            def __len__(self):
                return 16
            def __getitem__(self, index):
                return base * index + torch.ones(1 << 19)
        loader = DataLoader(Numbers(), batch_size=2, num_workers=2, multiprocessing_context="fork")
        for turn in range(2):
            for number, batch in enumerate(loader):
                for place in (0, 1):
                    index = number * 2 + place
                    assert batch[place][3] == 3 * index + 1
        assert base[77] == 77
        """
    )


def test_a_child_may_free_what_it_inherited_while_others_allocate() -> None:
    run(
        """
        import os, threading
        stop = False
        def churn():
            while not stop:
                torch.empty(1 << 18)
        threads = [threading.Thread(target=churn) for _ in range(2)]
        [thread.start() for thread in threads]
        for _ in range(30):
            kept = [torch.full((1 << 18,), 3.0) for _ in range(4)]
            pid = os.fork()
            if pid == 0:
                right = all(bool((tensor == 3).all()) for tensor in kept)
                del kept
                fresh = [torch.full((1 << 18,), 4.0) for _ in range(4)]
                right = right and all(bool((tensor == 4).all()) for tensor in fresh)
                del fresh
                os._exit(0 if right else 1)
            assert os.waitpid(pid, 0)[1] == 0
        stop = True
        [thread.join() for thread in threads]
        """
    )


def test_a_process_may_end_with_live_tensors() -> None:
    run(
        """
        import atexit
        kept = [torch.ones(1 << 19) for _ in range(8)]
        class Holder:
            def __init__(self):
                self.tensor = torch.ones(1 << 19)
            def __del__(self):
                self.tensor = None
        holder = Holder()
        torch.kept = torch.ones(1 << 19)
        atexit.register(lambda: torch.ones(1 << 19))
        """
    )


def test_a_recording_sees_what_the_arena_serves(tmp_path: Path) -> None:
    child.run(
        SERVE
        + """
import lowtide.torch.recording as recording
with recording.record("x.csv.gz"):
    torch.empty(1 << 20)
    torch.empty(1 << 12)
""",
        cwd=tmp_path,
    )
    sizes = [row["bytes"] for row in child.rows(tmp_path / "x.csv.gz") if row["event"] == "alloc"]
    assert sizes == [str(4 << 20), str(4 << 12)]


# Frees a block of the arena twice, by the function that PyTorch's allocator names for it.
FREE_TWICE = """
import ctypes
from pathlib import Path
word = ctypes.c_void_p
get = ctypes.CDLL(str(Path(torch.__file__).parent / "lib/libc10.so"))["_ZN3c1015GetCPUAllocatorEv"]
get.restype = word
allocator = get()
raw_deleter = word.from_address(word.from_address(allocator).value + 4 * ctypes.sizeof(word)).value
delete = ctypes.CFUNCTYPE(None, word)(ctypes.CFUNCTYPE(word, word)(raw_deleter)(allocator))
tensor = torch.ones(1 << 18)
address = tensor.data_ptr()
del tensor
delete(address)
delete(address)
assert _lowtide.cpu_stats()["failed_frees"] == 2
"""

RECORD = """
import torch
from lowtide import _lowtide
from lowtide.torch import recording
_lowtide.serve_cpu()
with recording.record("x.csv.gz"):
    torch.empty(1 << 20)
"""


@pytest.mark.parametrize("begin", [SERVE, RECORD], ids=["served", "recorded"])
def test_a_free_that_fails_is_said_when_the_program_ends(begin: str, tmp_path: Path) -> None:
    done = child.start(begin + FREE_TWICE, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Lowtide: the arena of CPU tensors: 2 frees failed, the first ") == 1, done.stderr


def test_install_says_what_is_wrong() -> None:
    run(
        """
        try:
            _lowtide.serve_cpu(0)
        except ValueError as error:
            assert "threshold" in str(error)
        try:
            _lowtide.serve_cpu(1 << 22)
        except RuntimeError as error:
            assert "already" in str(error)
        else:
            raise SystemExit("no error")
        """
    )
