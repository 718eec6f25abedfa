"""Writes PyTorch memory snapshots of small runs, one for each thing that such a file can hold.

    python benches/gpu/snapshots.py FOLDER          all of them
    python benches/gpu/snapshots.py FOLDER large    one of hundreds of megabytes, to measure a reader with

Needs a CUDA device. Each file is what `torch.cuda.memory._dump_snapshot` writes, compressed; beside it lies a
.json with what PyTorch's own counters said, to compare a reader with.
"""

import gzip
import json
import os
import pathlib
import subprocess
import sys


def small_model():
    import torch

    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1),
        torch.nn.BatchNorm2d(16),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(16 * 32 * 32, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 10),
    ).cuda()


def train(model, steps, batch=32):
    import torch

    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        images = torch.randn(batch, 3, 32, 32, device="cuda")
        loss = model(images).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def plain():
    """Python frames, everything recorded from the start."""
    record(stacks="python")
    train(small_model(), 4)


def all_frames():
    """C++ frames beside Python's."""
    record(stacks="all")
    train(small_model(), 2)


def no_frames():
    """No frames at all."""
    record(context=None)
    train(small_model(), 3)


def late():
    """The recording begins when the model is there, so blocks are known only from the segments."""
    model = small_model()
    train(model, 2)
    record(stacks="python")
    train(model, 2)


def ring():
    """More events than the recording keeps."""
    record(stacks="python", max_entries=200)
    train(small_model(), 6)


def state_only():
    """Segments and blocks without any history."""
    import torch

    model = small_model()
    train(model, 2)
    torch.cuda.memory._record_memory_history(None)


def two_streams():
    """Blocks that are used on a second stream, so that the device finishes later than the program."""
    import torch

    record(stacks="python")
    model = small_model()
    side = torch.cuda.Stream()
    for _ in range(3):
        images = torch.randn(32, 3, 32, 32, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            copy = images * 2
            torch.cuda._sleep(20_000_000)
        images.record_stream(side)
        del images
        torch.cuda.current_stream().wait_stream(side)
        model(copy).sum().backward()
        copy.record_stream(torch.cuda.current_stream())
        del copy


def graph():
    """A captured graph with a memory pool of its own."""
    import torch

    record(stacks="python")
    model = small_model()
    images = torch.randn(32, 3, 32, 32, device="cuda")
    model(images)
    captured = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(captured):
        output = model(images)
    captured.replay()
    globals()["kept"] = (captured, output)


def out_of_memory():
    """An allocation that fails."""
    import torch

    record(stacks="python")
    model = small_model()
    try:
        torch.empty(1 << 42, device="cuda", dtype=torch.uint8)
    except torch.OutOfMemoryError:
        pass
    train(model, 1)


def emptied():
    """Segments that are given back while the recording runs."""
    import torch

    record(stacks="python")
    model = small_model()
    train(model, 2)
    torch.cuda.empty_cache()
    train(model, 1, batch=128)
    torch.cuda.empty_cache()


def compiled():
    """A compiled model: compile contexts in the events."""
    import torch

    record(stacks="python")
    model = small_model()
    train(torch.compile(model), 3)


def large():
    """Hundreds of megabytes, with all frames."""
    record(stacks="all", max_entries=10_000_000)
    train(small_model(), 33_000)


RUNS = [plain, all_frames, no_frames, late, ring, state_only, two_streams, graph, out_of_memory, emptied, compiled]
EXPANDABLE = [plain, emptied, ring]


def record(**options):
    import torch

    torch.cuda.memory._record_memory_history(**options)


def write(name, run, folder):
    import torch

    torch.manual_seed(0)
    run()
    torch.cuda.synchronize()
    plain_file = folder / f"{name}.pickle"
    torch.cuda.memory._dump_snapshot(str(plain_file))
    statistics = torch.cuda.memory_stats()
    wanted = ["allocated_bytes.all", "reserved_bytes.all", "requested_bytes.all", "active_bytes.all"]
    counters = {f"{key}.{when}": statistics[f"{key}.{when}"] for key in wanted for when in ("current", "peak")}
    counters["torch"] = torch.__version__
    (folder / f"{name}.json").write_text(json.dumps(counters, indent=1) + "\n")
    with gzip.GzipFile(folder / f"{name}.pickle.gz", "wb", mtime=0) as out:
        out.write(plain_file.read_bytes())
    plain_file.unlink()


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    if len(sys.argv) == 3:
        name = sys.argv[2]
        run = {run.__name__: run for run in [*RUNS, large]}[name.removeprefix("expandable_")]
        return write(name, run, folder)
    jobs = [(run.__name__, "") for run in RUNS]
    jobs += [(f"expandable_{run.__name__}", "expandable_segments:True") for run in EXPANDABLE]
    for name, settings in jobs:
        environment = {**os.environ, "PYTORCH_ALLOC_CONF": settings} if settings else os.environ
        done = subprocess.run([sys.executable, __file__, str(folder), name], env=environment)
        print(name, "failed" if done.returncode else (folder / f"{name}.pickle.gz").stat().st_size, flush=True)


if __name__ == "__main__":
    main()
