"""Captured graphs on a real device: their memory is theirs as long as they live, and no longer."""

from __future__ import annotations

from device import INSTALL, NATIVE, run

try:
    import pytest
except ImportError:
    pass
else:
    pytestmark = pytest.mark.gpu


GRAPH = """
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
given = torch.zeros(256, 512, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side), torch.no_grad():
    for _ in range(3):
        model(given)
torch.cuda.current_stream().wait_stream(side)

def capture(**options):
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph, **options):
        result = model(given) + 1
    return graph, result

def right(graph, result, seed):
    data = torch.randn(256, 512, device="cuda", generator=torch.Generator("cuda").manual_seed(seed))
    given.copy_(data)
    graph.replay()
    with torch.no_grad():
        return torch.allclose(result, model(data) + 1, atol=1e-4)
"""


def test_a_graph_keeps_its_memory_as_long_as_it_lives() -> None:
    run(
        INSTALL,
        GRAPH
        + """
def reserved():
    # A workspace that was made in a capture belongs to its pool.
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return torch.cuda.memory_reserved()

before = reserved()
graph, result = capture()
with_graph = torch.cuda.memory_reserved()
assert with_graph > before
for number in range(50):
    others = [torch.full((random.Random(number).randrange(1, 4 * MIB),), -7.0, device="cuda") for _ in range(20)]
    if number % 10 == 0:
        torch.cuda.empty_cache()
    assert right(graph, result, number), number
    del others
    lowtide.step()
second, other = capture(pool=graph.pool())
for number in range(5):
    assert right(graph, result, number) and right(second, other, number), number
del graph, result
gc.collect()
junk = [torch.full((MIB,), -7.0, device="cuda") for _ in range(20)]
assert right(second, other, 77), "one graph less, and the pool of the other is gone"
del second, other, junk
gc.collect()
after = reserved()
assert after <= before + 4 * MIB, (before, with_graph, after)
""",
    )


def test_memory_may_be_freed_and_a_step_may_end_during_a_capture() -> None:
    """As under PyTorch's own allocator."""
    program = (
        GRAPH
        + """
old, gone = capture()
with torch.cuda.stream(side):
    outside = [torch.full((MIB,), 3.0, device="cuda") for _ in range(8)]
    shared = torch.full((MIB,), 5.0, device="cuda")
    shared.record_stream(torch.cuda.default_stream())
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.no_grad(), torch.cuda.graph(graph, stream=side):
    half = model(given)
    del outside[::2], shared
    # Lowtide closes its step with the next allocation, which is one of the capture.
    if "lowtide" in sys.modules:
        lowtide.step()
    result = half + 1
for number in range(10):
    more = [torch.full((MIB,), -7.0, device="cuda") for _ in range(20)]
    assert right(graph, result, number), number
    assert all(bool((tensor == 3).all()) for tensor in outside)
    del more
torch.cuda.empty_cache()
del old, gone
gc.collect()
assert right(graph, result, 99)
"""
    )
    run(NATIVE, program)
    run(INSTALL, program)
