"""Writes small ONNX models without the package `onnx`: the few fields of its format that a chain of layers needs."""

from __future__ import annotations

import numpy

FLOAT = 1


def chain(weights: list[numpy.ndarray], rows: int) -> bytes:
    """A model that multiplies its input by each weight in turn, and lets nothing below zero pass in between."""
    nodes, name = b"", "x"
    for index in range(len(weights)):
        nodes += field(1, node("MatMul", [name, f"w{index}"], f"m{index}"))
        nodes += field(1, node("Relu", [f"m{index}"], name := f"r{index}"))
    kept = b"".join(field(5, tensor(f"w{index}", weight)) for index, weight in enumerate(weights))
    ends = field(11, value("x", [rows, weights[0].shape[0]])) + field(12, value(name, [rows, weights[-1].shape[1]]))
    graph = nodes + field(2, b"chain") + kept + ends
    return field(1, 8) + field(8, field(1, b"") + field(2, 13)) + field(7, graph)


def expected(weights: list[numpy.ndarray], x: numpy.ndarray) -> numpy.ndarray:
    """What the model makes of `x`."""
    for weight in weights:
        x = numpy.maximum(x @ weight, 0)
    return x


def node(operator: str, inputs: list[str], output: str) -> bytes:
    names = b"".join(field(1, name.encode()) for name in inputs)
    return names + field(2, output.encode()) + field(4, operator.encode())


def tensor(name: str, array: numpy.ndarray) -> bytes:
    dims = b"".join(field(1, size) for size in array.shape)
    return dims + field(2, FLOAT) + field(8, name.encode()) + field(9, array.astype("<f4").tobytes())


def value(name: str, shape: list[int]) -> bytes:
    dims = b"".join(field(1, field(1, size)) for size in shape)
    return field(1, name.encode()) + field(2, field(1, field(1, FLOAT) + field(2, dims)))


def field(number: int, content: int | bytes) -> bytes:
    """A field of a protocol buffer."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number: int) -> bytes:
    rest, low = number >> 7, number & 127
    return bytes([low]) if rest == 0 else bytes([low | 128]) + varint(rest)
