"""Rotations by position on the cpu backend, against complex numbers in float64."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.errors import ModelFileError
from engine.graph.operations import BatchShape, Graph, Node
from tests.backends.test_cpu_operations import close, normal, run, tensors_of

HEADS, SIZE = 2, 24
Mode = Literal["interleaved", "halves"]


def turned(
    x: NDArray[np.float64], mode: Mode, n_dims: int, angles: NDArray[np.float64], length: float = 1.0
) -> NDArray[np.float64]:
    """x: [n, heads, size]; angles: [n, n_dims / 2].  The rest of each head stays as it is."""
    part = x[..., :n_dims]
    first, second = (part[..., ::2], part[..., 1::2]) if mode == "interleaved" else np.split(part, 2, axis=-1)
    pairs = (first + 1j * second) * length * np.exp(1j * angles[:, None])
    result = x.copy()
    if mode == "interleaved":
        result[..., :n_dims:2], result[..., 1:n_dims:2] = pairs.real, pairs.imag
    else:
        result[..., : n_dims // 2], result[..., n_dims // 2 : n_dims] = pairs.real, pairs.imag
    return result


@pytest.mark.parametrize("mode", ["interleaved", "halves"])
@pytest.mark.parametrize("n_dims", [SIZE, 8])
@pytest.mark.parametrize("with_factors", [False, True])
def test_linear_scaling_factors_and_length(mode: Mode, n_dims: int, with_factors: bool) -> None:
    x = normal(31, HEADS * SIZE)
    factors = np.linspace(1, 4, n_dims // 2).astype(np.float32).astype(np.float64)
    pairs = np.arange(n_dims // 2)
    frequencies = 0.25 * 500.0 ** (-2 * pairs / n_dims) / (factors if with_factors else 1)

    def build(graph: Graph, h: Node) -> Node:
        heads = graph.view(h, 31, HEADS, SIZE)
        name = "factors" if with_factors else None
        y = graph.rope(
            heads, "rope", mode=mode, base=500.0, n_dims=n_dims, scale=0.25, length=1.5, factors=name
        )
        return graph.view(y, 31, HEADS * SIZE)

    result = run(build, tensors_of({"factors": factors}), x)
    angles = np.arange(31)[:, None] * frequencies
    truth = turned(x.reshape(31, HEADS, SIZE), mode, n_dims, angles, 1.5)
    assert close(result, truth.reshape(31, -1))


@pytest.mark.parametrize("ramp", [(2.0, 7.0), (3.5, 3.5), (0.0, 11.0), (-3.0, -1.0), (11.0, 11.0)])
def test_between_the_ends_of_a_ramp_frequencies_are_mixed(ramp: tuple[float, float]) -> None:
    """Fast pairs turn as if nothing were scaled, slow ones slower, those between by both in proportion."""
    x = normal(31, HEADS * SIZE)
    start, end = ramp

    def build(graph: Graph, h: Node) -> Node:
        heads = graph.view(h, 31, HEADS, SIZE)
        y = graph.rope(heads, "rope", mode="halves", base=100.0, n_dims=SIZE, scale=0.125, ramp=ramp)
        return graph.view(y, 31, HEADS * SIZE)

    frequencies = np.empty(SIZE // 2)
    for pair in range(SIZE // 2):
        plain = 100.0 ** (-2 * pair / SIZE)
        if pair <= start:
            share = 0.0
        elif pair >= end:
            share = 1.0
        else:
            share = (pair - start) / (end - start)
        frequencies[pair] = plain * 0.125 * share + plain * (1 - share)
    angles = np.arange(31)[:, None] * frequencies
    truth = turned(x.reshape(31, HEADS, SIZE), "halves", SIZE, angles).reshape(31, -1)
    assert close(run(build, {}, x), truth)


@pytest.mark.parametrize("n", [1, 37])
def test_queries_grow_in_steps_of_positions(n: int) -> None:
    x = normal(n, HEADS * SIZE)

    def build(graph: Graph, h: Node) -> Node:
        y = graph.grow_with_position(graph.view(h, n, HEADS, SIZE), 0.3, 16)
        return graph.view(y, n, HEADS * SIZE)

    factors = [1 + 0.3 * np.log(1 + position // 16) for position in range(n)]
    assert close(run(build, {}, x), x * np.array(factors)[:, None])


def test_factors_of_another_number_of_pairs_are_refused() -> None:
    graph = Graph(tensors_of({"factors": np.ones(7)}), BatchShape(1, 1))
    heads = graph.view(graph.hidden(HEADS * SIZE), 1, HEADS, SIZE)
    with pytest.raises(ModelFileError, match="factors"):
        graph.rope(heads, "rope", mode="halves", base=1e4, n_dims=SIZE, factors="factors")
