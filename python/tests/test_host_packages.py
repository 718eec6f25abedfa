"""`lowtide run` under packages that allocate in ways of their own: NumPy, PyTorch, ONNX Runtime and OpenVINO."""

from __future__ import annotations

import json
import sys
import textwrap
from ctypes.util import find_library
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import child
import lowtide
import pytest

PYTHON = sys.executable
LIBRARY = Path(lowtide.__file__).with_name("liblowtide_malloc.so")
HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(not LIBRARY.is_file(), reason="the package has no liblowtide_malloc.so beside it")


def needs(package: str) -> pytest.MarkDecorator:
    """A test that has nothing to try without the package."""
    return pytest.mark.skipif(find_spec(package) is None, reason=f"needs the package {package}")


def served(program: str, *flags: str, cwd: Path, module: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """What the processes of a program tell that ends well under Lowtide, those with most memory first."""
    script = cwd / "program.py"
    script.write_text(f"import sys; sys.path.insert(0, {str(HERE)!r})\n{textwrap.dedent(program)}")
    words = ["run", "--arena", "always", "-o", "run.json", *flags, "--", PYTHON, *module, str(script)]
    done = child.lowtide(*words, cwd=cwd)
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    processes = json.loads((cwd / "run.json").read_text())["processes"]
    assert processes and all(process["stepped_aside"] is None for process in processes), done.stderr
    assert processes[0]["large"]["allocations"] > 0, processes[0]
    return processes


@needs("numpy")
def test_arrays_are_right_and_those_of_zeros_are_not_resident(tmp_path: Path) -> None:
    program = """
        import os
        os.environ["NUMPY_MADVISE_HUGEPAGE"] = "0"  # or NumPy asks for huge pages itself, from 4 MiB on
        import numpy as np
        rng = np.random.default_rng(0)
        sparse = [np.zeros(1 << 31, dtype=np.uint8)] + [np.zeros(32 << 20, dtype=np.uint8) for _ in range(64)]
        for array in sparse:
            array[:: array.size // 4] = 1
            assert int(array[:: array.size // 4].sum()) == 4 and array[1] == 0
        a = rng.standard_normal((600, 600))
        x = np.linalg.solve(a, b := rng.standard_normal(600))
        assert np.allclose(a @ x, b)
        u, s, v = np.linalg.svd(a[:200, :200])
        assert np.allclose(u * s @ v, a[:200, :200])
        mapped = np.memmap("mapped", dtype=np.float64, mode="w+", shape=(1 << 20,))
        mapped[:] = np.sort(rng.standard_normal(1 << 20))
        mapped.flush()
        assert np.array_equal(np.memmap("mapped", dtype=np.float64), mapped) and (np.diff(mapped) >= 0).all()
        for size in rng.integers(1, 1 << 21, 300):
            whole = np.arange(size)
            assert np.concatenate([whole[: size // 2], whole[size // 2 :]]).sum() == size * (size - 1) // 2
        grown = bytearray()
        for _ in range(200):
            grown += b"0123456789abcdef" * 4096
        assert len(grown) == 200 << 16 and grown[-16:] == b"0123456789abcdef"
    """
    [process] = served(program, cwd=tmp_path)
    assert process["peak_rss_bytes"] < 400 << 20, process


LOADING = """
    import torch

    class Squares(torch.utils.data.Dataset):
        def __len__(self):
            return 64

        def __getitem__(self, index):
            return torch.full((300, 256), float(index)).square()

    def main(how):
        loader = torch.utils.data.DataLoader(
            Squares(), batch_size=4, num_workers=2, multiprocessing_context=how, persistent_workers=how == "spawn"
        )
        model = torch.nn.Linear(256, 256)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
        for _ in range(2):
            total = 0
            for batch in loader:
                optimizer.zero_grad()
                model(batch).mean().backward()
                optimizer.step()
                total += batch[:, 0, 0].sum().item()
            assert total == sum(index**2 for index in range(64)), total

    if __name__ == "__main__":
        main("HOW")
"""


@needs("torch")
@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_workers_of_a_data_loader_are_served(how: str, tmp_path: Path) -> None:
    processes = served(LOADING.replace("HOW", how), cwd=tmp_path)
    assert [process["steps"] for process in processes if process["steps_by"] == "marks"] == [32]


@needs("torch")
def test_every_process_of_torchrun_has_a_plan_of_its_own(tmp_path: Path) -> None:
    program = """
        import time, torch, torch.distributed as group
        group.init_process_group("gloo")
        size = 256 * (1 + group.get_rank())
        model = torch.nn.Sequential(torch.nn.Linear(size, size), torch.nn.ReLU(), torch.nn.Linear(size, size))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(30):
            optimizer.zero_grad()
            loss = model(torch.ones(256, size)).square().mean()
            loss.backward()
            group.all_reduce(total := torch.ones(1 << 16))
            assert total.eq(2).all()
            optimizer.step()
        time.sleep(1)  # a thread of Gloo that drops the last tensor while the interpreter ends aborts the process
        group.destroy_process_group()
    """
    module = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    processes = served(program, cwd=tmp_path, module=module)
    trained = [process for process in processes if process["steps_by"] == "marks"]
    assert [process["steps"] for process in trained] == [30, 30]
    assert all(process["planned_from_step"] for process in trained), trained
    assert trained[0]["large"]["peak_live_bytes"] != trained[1]["large"]["peak_live_bytes"]


INFERENCE = """
    import numpy as np, onnx_file
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((512, 512), dtype=np.float32) / 16 for _ in range(4)]
    model = onnx_file.chain(weights, 256)
    infer = prepare(model)
    for _ in range(20):
        x = rng.standard_normal((256, 512), dtype=np.float32)
        assert np.allclose(infer(x), onnx_file.expected(weights, x), rtol=1e-3, atol=1e-3)
"""

ONNX_RUNTIME = """
    import onnxruntime

    def prepare(model):
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        return lambda x: session.run(None, {"x": x})[0]
"""

OPENVINO = """
    import openvino

    def prepare(model):
        core = openvino.Core()
        hint = {"INFERENCE_PRECISION_HINT": "f32"}
        compiled = core.compile_model(core.read_model(model), "CPU", hint)
        return lambda x: compiled(x)[0]
"""


@needs("numpy")
@needs("onnxruntime")
def test_onnx_runtime_infers(tmp_path: Path) -> None:
    served(ONNX_RUNTIME + INFERENCE, cwd=tmp_path)


@needs("numpy")
@needs("openvino")
@pytest.mark.parametrize("below", ["glibc", "jemalloc", "tcmalloc", "mimalloc"])
def test_openvino_infers_whoever_is_below(below: str, tmp_path: Path) -> None:
    library = "tcmalloc_minimal" if below == "tcmalloc" else below
    if below != "glibc" and find_library(library) is None:
        pytest.skip(f"needs the library {below}")
    processes = served(OPENVINO + INFERENCE, "--below", below, cwd=tmp_path)
    assert processes[0]["below"] == below
