"""Single operations on the cpu backend, from a node to its numbers, against NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import erf

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.backends.cpu.backend import CpuBackend
from engine.backends.interface import Batch, CacheSpec
from engine.errors import ModelFileError
from engine.graph.operations import BatchShape, Graph, Node
from engine.graph.plan import make_plan
from engine.quantisation.quantise import make_tensor
from engine.tensor import Tensor

WIDTH = 48
POSITIONS = 40

Arrays = Mapping[str, NDArray[np.float64]]


def normal(*shape: int, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=shape)


def tensors_of(arrays: Arrays, type_name: str = "F32") -> dict[str, Tensor]:
    return {name: make_tensor(name, array, type_name) for name, array in arrays.items()}


def run(
    build: Callable[[Graph, Node], Node],
    tensors: dict[str, Tensor],
    x: NDArray[np.float64],
    repack: bool = True,
) -> NDArray[np.float32]:
    """The result of the graph that build makes of hidden states x, float64[n, WIDTH]."""
    n = len(x)
    batch = BatchShape(n, n)
    graph = Graph(tensors, batch)
    plan = make_plan(build(graph, graph.hidden(x.shape[1])), batch)
    backend = CpuBackend(threads=2, repack=repack)
    weights = backend.load_weights({name: tensors[name] for name in plan.weights}, lambda share: None)
    context = weights.new_context(CacheSpec((), POSITIONS, n))
    nothing, numbers = np.zeros(n, np.int32), np.arange(n, dtype=np.int32)
    return context.run(plan, Batch(nothing, numbers, nothing, numbers, x.astype(np.float32))).copy()


def close(result: NDArray[np.float32], truth: NDArray[np.float64], allowed: float = 1e-6) -> bool:
    return bool(np.linalg.norm(result - truth) <= allowed * np.linalg.norm(truth))


def slow_layer_norm(
    x: NDArray[np.float64], weight: NDArray[np.float64], bias: NDArray[np.float64] | float, epsilon: float
) -> NDArray[np.float64]:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon) * weight + bias


@pytest.mark.parametrize("repack", [True, False])
@pytest.mark.parametrize(("type_name", "allowed"), [("F32", 1e-6), ("F16", 1e-3), ("BF16", 1e-2)])
@pytest.mark.parametrize("n", [1, 5])
def test_layer_norm_with_a_bias_of_any_plain_type(
    n: int, type_name: str, allowed: float, repack: bool
) -> None:
    arrays = {"attn_norm.weight": normal(WIDTH, seed=1), "attn_norm.bias": normal(WIDTH, seed=2)}
    x = normal(n, WIDTH)
    result = run(
        lambda graph, h: graph.layer_norm(h, "attn_norm.weight", 1e-5),
        tensors_of(arrays, type_name),
        x,
        repack=repack,
    )
    assert close(result, slow_layer_norm(x, *arrays.values(), 1e-5), allowed)


@pytest.mark.parametrize("repack", [True, False])
@pytest.mark.parametrize("n", [1, 5])
def test_each_head_has_its_own_layer_norm(n: int, repack: bool) -> None:
    weight = normal(3, WIDTH // 3, seed=1)
    x = normal(n, WIDTH)

    def build(graph: Graph, h: Node) -> Node:
        h = graph.scale(h, 2.0)
        heads = graph.view(h, n, 3, WIDTH // 3)
        return graph.view(graph.layer_norm(heads, "attn_q_norm.weight", 1e-5), n, WIDTH)

    result = run(build, tensors_of({"attn_q_norm.weight": weight}), x, repack=repack)
    truth = slow_layer_norm(2 * x.reshape(n, 3, -1), weight, 0.0, 1e-5)
    assert close(result, truth.reshape(n, WIDTH))


@pytest.mark.parametrize("n", [1, 5])
def test_columns_of_a_product_of_fused_weights(n: int) -> None:
    """Of one token they are seen where they lie; several are copied."""
    weight, bias = normal(7 * WIDTH, WIDTH, seed=1), normal(7 * WIDTH, seed=2)
    x = normal(n, WIDTH)

    def build(graph: Graph, h: Node) -> Node:
        together = graph.linear(h, "attn_qkv.weight")
        a = graph.columns(together, 5, 5 + WIDTH)
        b = graph.columns(together, 3 * WIDTH, 4 * WIDTH)
        a = graph.scale(a, 3.0)
        return graph.add(graph.add(a, b, "two"), graph.columns(together, 6 * WIDTH, 7 * WIDTH), "three")

    result = run(build, tensors_of({"attn_qkv.weight": weight, "attn_qkv.bias": bias}), x)
    y = x @ weight.T + bias
    truth = 3 * y[:, 5 : 5 + WIDTH] + y[:, 3 * WIDTH : 4 * WIDTH] + y[:, 6 * WIDTH :]
    assert close(result, truth)


@pytest.mark.parametrize("repack", [True, False])
@pytest.mark.parametrize("type_name", ["F32", "F16"])
@pytest.mark.parametrize("n", [1, 5])
def test_learned_positions(n: int, type_name: str, repack: bool) -> None:
    table = normal(POSITIONS, WIDTH, seed=1).astype(np.float16).astype(np.float64)
    x = normal(n, WIDTH)

    def build(graph: Graph, h: Node) -> Node:
        return graph.add(h, graph.embed_positions("position_embd.weight", POSITIONS, WIDTH), "sum")

    result = run(build, tensors_of({"position_embd.weight": table}, type_name), x, repack=repack)
    assert close(result, x + table[:n])


@pytest.mark.parametrize("activation", ["gelu", "gelu_erf"])
def test_activations_without_a_gate(activation: str) -> None:
    x = normal(3, WIDTH) * 2
    result = run(lambda graph, h: graph.activate(h, activation), {}, x)  # type: ignore[arg-type]
    forms = {
        "gelu": np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)),
        "gelu_erf": np.vectorize(erf)(x / np.sqrt(2)),
    }
    assert close(result, x / 2 * (1 + forms[activation]))


@pytest.mark.parametrize(
    ("weight", "bias"), [((47,), (48,)), ((48,), (47,)), ((1, 48), (48,)), ((48,), (1, 48))]
)
def test_layer_norms_of_another_shape_are_named(weight: tuple[int, ...], bias: tuple[int, ...]) -> None:
    tensors = tensors_of({"blk.0.ffn_norm.weight": normal(*weight), "blk.0.ffn_norm.bias": normal(*bias)})
    graph = Graph(tensors, BatchShape(2, 1))
    with pytest.raises(
        ModelFileError, match=r"blk\.0\.ffn_norm\." + ("bias" if weight == (48,) else "weight")
    ):
        graph.layer_norm(graph.hidden(48), "blk.0.ffn_norm.weight", 1e-5)


@pytest.mark.parametrize("shape", [(16,), (4, 8), (3, 16), (4, 16, 1)])
def test_layer_norms_of_heads_of_another_shape_are_named(shape: tuple[int, ...]) -> None:
    graph = Graph(tensors_of({"blk.0.attn_q_norm.weight": normal(*shape)}), BatchShape(2, 1))
    heads = graph.view(graph.hidden(64), 2, 4, 16)
    with pytest.raises(ModelFileError, match=r"blk\.0\.attn_q_norm\.weight"):
        graph.layer_norm(heads, "blk.0.attn_q_norm.weight", 1e-5)


def test_positions_that_a_table_lacks_are_refused() -> None:
    graph = Graph(tensors_of({"position_embd.weight": normal(30, WIDTH)}), BatchShape(2, 1))
    with pytest.raises(ModelFileError, match=r"position_embd\.weight has the shape 30 x 48; 31 x 48"):
        graph.embed_positions("position_embd.weight", 31, WIDTH)


@pytest.mark.parametrize(("start", "stop"), [(-1, 4), (0, 65), (4, 4), (5, 4)])
def test_columns_that_are_not_there(start: int, stop: int) -> None:
    graph = Graph({}, BatchShape(2, 1))
    with pytest.raises(ValueError, match="columns"):
        graph.columns(graph.hidden(64), start, stop)
