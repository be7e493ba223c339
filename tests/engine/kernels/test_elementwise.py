"""Norms, rope, gates, activations, sum, scale and soft cap against float64."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.kernels import activation
from engine.kernels.normalise import bind_layer_norm, bind_rms_norm, layer_norm, rms_norm
from engine.kernels.rotary import bind_rope, rope
from tests.engine.kernels.guarded import guarded
from tests.helpers.cpu_levels import COMPILED_LEVELS, NATIVE_LEVELS, at_level

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

LEVELS = [*COMPILED_LEVELS, "python"]


def normal(*shape: int, seed: int = 0, size: float = 1.0) -> Floats:
    return np.random.default_rng(seed).normal(0, size, shape).astype(np.float32)


def relative_l2(result: Floats, truth: Doubles) -> float:
    return float(np.linalg.norm(result - truth) / np.linalg.norm(truth))


# ---- RMS norm


def slow_rms_norm(x: Floats, weight: Floats, eps: float) -> Doubles:
    wide = x.astype(np.float64)
    return wide / np.sqrt((wide * wide).mean(axis=1, keepdims=True) + eps) * weight


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("rows", "width"), [(1, 1), (2, 15), (3, 16), (1, 17), (15, 33), (40, 64), (2, 577)])
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e12])
def test_rms_norm(level: str, rows: int, width: int, size: float) -> None:
    x, weight = normal(rows, width, size=size), normal(width, seed=1)
    with at_level(level), guarded(x.shape) as out:
        bind_rms_norm(x, weight, out, 1e-5, threads=2)()
    truth = slow_rms_norm(x, weight, 1e-5)
    assert np.abs(out - truth).max() <= 1e-6 * np.abs(truth).max()
    assert relative_l2(out, truth) <= 1e-6


@pytest.mark.parametrize("level", LEVELS)
def test_rms_norm_in_place_and_of_zeros(level: str) -> None:
    x, weight = normal(20, 40), normal(40, seed=1)
    x[3] = 0
    truth = slow_rms_norm(x, weight, 1e-6)
    with at_level(level):
        bind_rms_norm(x, weight, x, 1e-6, threads=3)()
    assert relative_l2(x, truth) <= 1e-6
    assert (x[3] == 0).all()


# ---- layer norm


def slow_layer_norm(x: Floats, weight: Floats, bias: Floats | None, eps: float) -> Doubles:
    """Rows of x take the rows of weight and bias in turn."""
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    normed = centred / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + eps)
    by_head = normed.reshape(-1, *np.atleast_2d(weight).shape) * weight
    return (by_head + (0 if bias is None else bias)).reshape(x.shape)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("rows", "width"), [(1, 2), (2, 15), (3, 16), (1, 17), (15, 33), (40, 64), (2, 577)])
@pytest.mark.parametrize(("size", "middle"), [(1e-4, 0.0), (1.0, 0.0), (1.0, 300.0), (1e12, 0.0)])
@pytest.mark.parametrize("has_bias", [False, True])
def test_layer_norm(level: str, rows: int, width: int, size: float, middle: float, has_bias: bool) -> None:
    """Also of rows far from zero, whose mean is rounded by more than numbers near zero are."""
    x = (normal(rows, width, size=size) + np.float32(middle)).astype(np.float32)
    weight, bias = normal(width, seed=1), normal(width, seed=2) if has_bias else None
    with at_level(level), guarded(x.shape) as out:
        bind_layer_norm(x, weight, bias, out, 1e-5, threads=2)()
    truth = slow_layer_norm(x, weight, bias, 1e-5)
    allowed = 2e-6 + 3e-7 * middle / x.astype(np.float64).std(axis=1).min()
    assert np.abs(out - truth).max() <= allowed * np.abs(truth).max()
    assert relative_l2(out, truth) <= allowed


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize(("n", "heads", "head_size"), [(1, 3, 8), (7, 5, 20), (2, 1, 16)])
def test_layer_norm_of_heads(level: str, has_bias: bool, n: int, heads: int, head_size: int) -> None:
    x, weight = normal(n * heads, head_size), normal(heads, head_size, seed=1)
    bias = normal(heads, head_size, seed=2) if has_bias else None
    with at_level(level), guarded(x.shape) as out:
        bind_layer_norm(x, weight, bias, out, 1e-5, threads=2)()
    assert relative_l2(out, slow_layer_norm(x, weight, bias, 1e-5)) <= 2e-6


@pytest.mark.parametrize("level", LEVELS)
def test_layer_norm_in_place_and_of_equal_numbers(level: str) -> None:
    """Of equal numbers nothing is left but the bias, for every width."""
    x, weight, bias = normal(20, 40), normal(40, seed=1), normal(40, seed=2)
    x[3], x[4] = 0, 2.5
    truth = slow_layer_norm(x, weight, bias, 1e-6)
    with at_level(level):
        bind_layer_norm(x, weight, bias, x, 1e-6, threads=3)()
    assert relative_l2(x, truth) <= 2e-6
    assert np.array_equal(x[3], bias)
    assert np.array_equal(x[4], bias)


# ---- rope


def table(positions: int, pairs: int) -> tuple[Floats, Floats]:
    angles = np.arange(positions)[:, None] * 10000.0 ** (-np.arange(pairs) / pairs)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def slow_rope(
    x: Floats, positions: NDArray[np.int32], cos: Floats, sin: Floats, head_size: int, interleaved: bool
) -> Doubles:
    """Each pair is a complex number, turned by one of absolute value 1."""
    heads = x.astype(np.float64).reshape(len(x), -1, head_size)
    pairs = cos.shape[1]
    turned = heads[..., : 2 * pairs]
    turn = (cos.astype(np.float64) + 1j * sin)[positions][:, None, :]
    out = heads.copy()
    if interleaved:
        z = (turned[..., 0::2] + 1j * turned[..., 1::2]) * turn
        out[..., 0 : 2 * pairs : 2], out[..., 1 : 2 * pairs : 2] = z.real, z.imag
    else:
        z = (turned[..., :pairs] + 1j * turned[..., pairs:]) * turn
        out[..., :pairs], out[..., pairs : 2 * pairs] = z.real, z.imag
    return out.reshape(x.shape)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize(
    ("n", "heads", "head_size", "pairs"),
    [(1, 1, 2, 1), (3, 9, 64, 32), (20, 2, 80, 16), (2, 1, 256, 128), (5, 3, 6, 0)],
)
def test_rope(level: str, interleaved: bool, n: int, heads: int, head_size: int, pairs: int) -> None:
    """Also of a part of the dimensions (80 with 16 pairs), the rest of which is copied, and of none."""
    x = normal(n, heads * head_size)
    cos, sin = table(50, pairs)
    positions = np.random.default_rng(1).integers(0, 50, n, np.int32)
    with at_level(level), guarded(x.shape) as out:
        bind_rope(x, out, positions, cos, sin, head_size, interleaved, threads=2)()
    truth = slow_rope(x, positions, cos, sin, head_size, interleaved)
    assert np.abs(out - truth).max() <= 1e-6 * np.abs(truth).max()
    rest = np.s_[..., 2 * pairs :]
    by_head = (n, heads, head_size)
    assert np.array_equal(out.reshape(by_head)[rest], x.reshape(by_head)[rest])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("interleaved", [False, True])
def test_rope_in_place_reads_positions_anew(level: str, interleaved: bool) -> None:
    x = normal(2, 24)
    cos, sin = table(9, 3)
    positions = np.array([0, 3], np.int32)
    truth = slow_rope(x, positions, cos, sin, 8, interleaved)
    with at_level(level):
        call = bind_rope(x, x, positions, cos, sin, 8, interleaved, threads=1)
        call()
        assert relative_l2(x, truth) <= 1e-6
        positions[:] = [8, 7]
        truth = slow_rope(x, positions, cos, sin, 8, interleaved)
        call()
        assert relative_l2(x, truth) <= 1e-6


@pytest.mark.parametrize("position", [-1, 9])
def test_rope_refuses_positions_outside_its_table(position: int) -> None:
    cos, sin = table(9, 3)
    with pytest.raises(ValueError, match="positions"):
        rope(normal(1, 8), np.array([position], np.int32), cos, sin, 8, False)


# ---- gates and soft cap


def slow_silu(x: Doubles) -> Doubles:
    return x / (1 + np.exp(-x))


def slow_gelu(x: Doubles) -> Doubles:
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


GATES = {
    "silu": (activation.bind_silu_multiply, slow_silu),
    "gelu": (activation.bind_gelu_multiply, slow_gelu),
}
Bind = Callable[[Floats, Floats, Floats, int], Callable[[], None]]

GATE_INPUTS = np.concatenate(
    [
        np.linspace(-100, 100, 4001),
        np.linspace(-8, 8, 3000),
        [0.0, -0.0, 1e-30, -1e-30, 1e-6, -1e-6, 3e4, -3e4],
    ]
).astype(np.float32)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", GATES)
def test_gates(level: str, name: str) -> None:
    bind, slow = GATES[name]
    x = GATE_INPUTS
    up = normal(x.size, seed=4)
    with at_level(level), guarded(x.shape) as out:
        bind(x, up, out, 2)()
    with np.errstate(over="ignore"):
        truth = slow(x.astype(np.float64)) * up
    # Where the gate all but closes, the error is an exponent's: small against x, not against the result.
    assert (np.abs(out - truth) <= 1e-6 * np.abs(truth) + 1e-8 * np.abs(x * up)).all()
    assert (out[x == 0] == 0).all()
    opened = x > -1
    assert (np.abs(out - truth)[opened] <= 1e-6 * np.abs(truth)[opened]).all()


@pytest.mark.parametrize("level", COMPILED_LEVELS)
@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize(("size", "threads"), [(1, 1), (63, 9), (64, 2), (65, 3), (16384, 2), (20001, 3)])
def test_gates_of_any_length_in_place(level: str, name: str, size: int, threads: int) -> None:
    bind, slow = GATES[name]
    gate, up = normal(size), normal(size, seed=1)
    truth = slow(gate.astype(np.float64)) * up
    with at_level(level):
        into_gate, into_up = gate.copy(), up.copy()
        bind(into_gate, up, into_gate, threads)()
        bind(gate, into_up, into_up, threads)()
    assert relative_l2(into_gate, truth) <= 1e-6
    assert np.array_equal(into_gate, into_up)


def slow_gelu_erf(x: Doubles) -> Doubles:
    return x / 2 * np.array([math.erfc(-number / math.sqrt(2)) for number in x.ravel()]).reshape(x.shape)


ACTIVATIONS = {
    "gelu": (activation.bind_gelu, slow_gelu),
    "gelu_erf": (activation.bind_gelu_erf, slow_gelu_erf),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(level: str, name: str) -> None:
    bind, slow = ACTIVATIONS[name]
    x = GATE_INPUTS
    with at_level(level), guarded(x.shape) as out:
        bind(x, out, 2)()
    truth = slow(x.astype(np.float64))
    # The published formula of the error function is good to 1.5e-7, beside what float32 rounds.
    assert (np.abs(out - truth) <= 1e-6 * np.abs(truth) + 2e-7 * np.minimum(np.abs(x), 10)).all()
    assert (out[x == 0] == 0).all()
    opened = x > -0.5
    assert (np.abs(out - truth)[opened] <= 2e-6 * np.abs(truth)[opened]).all()


@pytest.mark.parametrize("level", COMPILED_LEVELS)
@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize(("size", "threads"), [(1, 1), (63, 9), (64, 2), (65, 3), (16384, 2), (20001, 3)])
def test_activations_of_any_length_in_place(level: str, name: str, size: int, threads: int) -> None:
    bind, slow = ACTIVATIONS[name]
    x = normal(size, size=2)
    truth = slow(x.astype(np.float64))
    with at_level(level):
        bind(x, x, threads)()
    assert relative_l2(x, truth) <= 1e-6


def test_the_two_forms_of_gelu_differ() -> None:
    """By at most 5e-4, which is far more than either is wrong: a mix-up would show."""
    x = np.linspace(-4, 4, 801).astype(np.float32)
    apart = np.abs(activation.gelu(x) - activation.gelu_erf(x)).max()
    assert 3e-4 < apart < 5e-4


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("cap", [0.5, 30.0])
def test_soft_cap(level: str, cap: float) -> None:
    x = GATE_INPUTS
    with at_level(level), guarded(x.shape) as out:
        activation.bind_soft_cap(x, out, cap, 2)()
    truth = cap * np.tanh(x.astype(np.float64) / cap)
    assert np.abs(out - truth).max() <= 1e-6 * cap
    assert np.abs(out).max() <= np.float32(cap)


@pytest.mark.parametrize("level", LEVELS)
def test_add_and_scale_are_exact(level: str) -> None:
    a, b = normal(3, 67), normal(3, 67, seed=1)
    with at_level(level):
        with guarded(a.shape) as out:
            activation.bind_add(a, b, out)()
            assert np.array_equal(out, a + b)
        with guarded(a.shape) as out:
            activation.bind_scale(a, out, 0.3)()
            assert np.array_equal(out, a * np.float32(0.3))


@pytest.mark.parametrize("level", COMPILED_LEVELS)
def test_operations_in_place(level: str) -> None:
    a, b = normal(300), normal(300, seed=1)
    total, scaled, capped = a + b, a * np.float32(2.5), 3 * np.tanh(a.astype(np.float64) / 3)
    with at_level(level):
        into_a, into_b, into_x, into_capped = a.copy(), b.copy(), a.copy(), a.copy()
        activation.bind_add(into_a, b, into_a)()
        activation.bind_add(a, into_b, into_b)()
        activation.bind_scale(into_x, into_x, 2.5)()
        activation.bind_soft_cap(into_capped, into_capped, 3.0, 1)()
    assert np.array_equal(into_a, total)
    assert np.array_equal(into_b, total)
    assert np.array_equal(into_x, scaled)
    assert np.abs(into_capped - capped).max() <= 3e-6


@pytest.mark.parametrize("level", NATIVE_LEVELS)
def test_nan_is_not_lost(level: str) -> None:
    """A broken model must show; flags of the compiler that assume numbers would hide it."""
    x = np.full((1, 20), np.nan, np.float32)
    ones = np.ones((1, 20), np.float32)
    with at_level(level):
        results = {
            "silu": activation.silu_multiply(x, ones),
            "gelu": activation.gelu_multiply(x, ones),
            "add": activation.add(x, ones),
            "scale": activation.scale(x, 2.0),
            "soft cap": activation.soft_cap(x, 30.0),
            "gelu without a gate": activation.gelu(x),
            "gelu with the error function": activation.gelu_erf(x),
            "norm": rms_norm(x, ones[0], 1e-5),
            "layer norm": layer_norm(x, ones[0], None, 1e-5),
        }
    assert {name for name, result in results.items() if not np.isnan(result).all()} == set()


def test_operations_that_allocate() -> None:
    a, b = normal(2, 33), normal(2, 33, seed=1)
    wide = a.astype(np.float64)
    assert relative_l2(activation.silu_multiply(a, b), slow_silu(wide) * b) <= 1e-6
    assert relative_l2(activation.gelu_multiply(a, b), slow_gelu(wide) * b) <= 1e-6
    assert relative_l2(activation.soft_cap(a, 2.0), 2 * np.tanh(wide / 2)) <= 1e-6
    assert relative_l2(activation.gelu(a), slow_gelu(wide)) <= 1e-6
    assert relative_l2(activation.gelu_erf(a), slow_gelu_erf(wide)) <= 1e-6
    assert relative_l2(layer_norm(a, b[0], b[1], 1e-5), slow_layer_norm(a, b[0], b[1], 1e-5)) <= 2e-6
    assert np.array_equal(activation.add(a, b), a + b)
    assert np.array_equal(activation.scale(a, 4.0), a * 4)
    assert relative_l2(rms_norm(a, b[0], 1e-5), slow_rms_norm(a, b[0], 1e-5)) <= 1e-6
