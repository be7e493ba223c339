"""Routing and summing of experts against float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.kernels import activation
from engine.kernels.experts import (
    bind_add_weighted_rows,
    bind_choose_experts,
    bind_weigh_experts,
    gate_tokens,
)
from tests.engine.kernels.guarded import guarded
from tests.helpers.cpu_levels import COMPILED_LEVELS, NATIVE_LEVELS, at_level

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]

LEVELS = [*COMPILED_LEVELS, "python"]


def normal(*shape: int, seed: int = 0, size: float = 1.0) -> Floats:
    return np.random.default_rng(seed).normal(0, size, shape).astype(np.float32)


def choose(scores: Floats, n_used: int, threads: int = 1) -> Ints:
    chosen = np.full((len(scores), n_used), -1, np.int32)
    bind_choose_experts(scores, chosen, threads)()
    return chosen


def weigh(scores: Floats, chosen: Ints, *, sigmoid: bool, normalised: bool, scale: float = 1.0) -> Floats:
    weights = np.empty(chosen.shape, np.float32)
    bind_weigh_experts(
        scores, chosen, weights, sigmoid=sigmoid, normalised=normalised, scale=scale, threads=2
    )()
    return weights


# ---- choosing


def slow_choice(scores: Floats, n_used: int) -> Ints:
    """A stable sort keeps equal ones in the order of their numbers."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :n_used].astype(np.int32)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("n", "n_experts", "n_used"), [(1, 1, 1), (3, 8, 2), (40, 60, 4), (17, 128, 8)])
def test_the_best_are_chosen(level: str, n: int, n_experts: int, n_used: int) -> None:
    scores = normal(n, n_experts)
    with at_level(level):
        assert (choose(scores, n_used, threads=3) == slow_choice(scores, n_used)).all()


@pytest.mark.parametrize("level", LEVELS)
def test_of_equal_scores_the_lower_number_is_chosen(level: str) -> None:
    scores = np.array([[1, 2, 2, 0, 2, 1], [0, 0, 0, 0, 0, 0], [-0.0, 0.0, -1, 0.0, -0.0, 5]], np.float32)
    with at_level(level):
        assert choose(scores, 4).tolist() == [[1, 2, 4, 0], [0, 1, 2, 3], [5, 0, 1, 3]]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 3.0]), min_size=5, max_size=5), min_size=1),
    st.integers(1, 5),
)
def test_any_ties(rows: list[list[float]], n_used: int) -> None:
    scores = np.array(rows, np.float32)
    assert (choose(scores, n_used) == slow_choice(scores, n_used)).all()


@pytest.mark.parametrize("level", NATIVE_LEVELS)
@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
def test_scores_that_are_infinite_are_ranked_too(level: str, infinity: float) -> None:
    scores = np.array([[1, infinity, 0, infinity]], np.float32)
    with at_level(level):
        assert (choose(scores, 3) == slow_choice(scores, 3)).all()


@pytest.mark.parametrize("level", NATIVE_LEVELS)
@pytest.mark.parametrize("place", [0, 2, 5])
@pytest.mark.parametrize("normalised", [True, False])
def test_scores_that_are_no_numbers_give_weights_that_are_none(
    level: str, place: int, normalised: bool
) -> None:
    """Damage has to show; and whatever is chosen must be experts that exist, each once."""
    scores = normal(2, 6)
    scores[1, place] = np.nan
    with at_level(level):
        chosen = choose(scores, 3)
        weights = weigh(scores, chosen, sigmoid=False, normalised=normalised)
    assert len(set(chosen[1].tolist())) == 3
    assert chosen.min() >= 0
    assert chosen.max() < 6
    assert np.isfinite(weights[0]).all()
    assert np.isnan(weights[1]).all()


# ---- weights


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_softmax(level: str, normalised: bool, scale: float) -> None:
    scores = normal(20, 9, size=4.0)
    chosen = slow_choice(scores, 3)
    shares = np.exp(scores.astype(np.float64))
    wanted = np.take_along_axis(shares / shares.sum(axis=1, keepdims=True), chosen, axis=1)
    if normalised:
        wanted /= wanted.sum(axis=1, keepdims=True)
    with at_level(level):
        ours = weigh(scores, chosen, sigmoid=False, normalised=normalised, scale=scale)
    np.testing.assert_allclose(ours, wanted * scale, rtol=1e-6)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("normalised", [True, False])
def test_sigmoid(level: str, normalised: bool) -> None:
    scores = normal(20, 9, size=4.0)
    chosen = slow_choice(scores, 3)
    wanted = np.take_along_axis(1 / (1 + np.exp(-scores.astype(np.float64))), chosen, axis=1)
    if normalised:
        wanted /= wanted.sum(axis=1, keepdims=True)
    with at_level(level):
        ours = weigh(scores, chosen, sigmoid=True, normalised=normalised)
    np.testing.assert_allclose(ours, wanted, rtol=1e-6)


@pytest.mark.parametrize("level", COMPILED_LEVELS)
@pytest.mark.parametrize("sigmoid", [True, False])
def test_large_scores_neither_overflow_nor_divide_by_zero(level: str, sigmoid: bool) -> None:
    scores = np.array([[3e4, -3e4, 2e4], [-3e4, -3e4, -3e4]], np.float32)
    with at_level(level):
        weights = weigh(scores, choose(scores, 2), sigmoid=sigmoid, normalised=True)
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()
    assert (weights.sum(axis=1) <= 1.000001).all()


# ---- sums


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("n", "m", "width"), [(1, 1, 1), (1, 8, 100), (30, 11, 64), (70, 70, 577)])
def test_weighted_rows_are_added(level: str, n: int, m: int, width: int) -> None:
    rows, weights, before = normal(m, width), normal(m, seed=1), normal(n, width, seed=2)
    tokens = np.random.default_rng(3).integers(0, n, m).astype(np.int32)
    wanted = before.astype(np.float64)
    np.add.at(wanted, tokens, weights[:, None].astype(np.float64) * rows)
    with at_level(level), guarded(before.shape) as out:
        out[:] = before
        bind_add_weighted_rows(rows, tokens, weights, out, 3)()
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-5)


def test_threads_change_nothing() -> None:
    rows, weights = normal(50, 640), normal(50, seed=1)
    tokens = (np.arange(50) % 7).astype(np.int32)
    results = []
    for threads in (1, 2, 5):
        out = np.zeros((7, 640), np.float32)
        bind_add_weighted_rows(rows, tokens, weights, out, threads)()
        results.append(out)
    assert all((result == results[0]).all() for result in results)


@pytest.mark.parametrize("tokens", [[-1, 0], [0, 3]])
def test_rows_outside_are_refused(tokens: list[int]) -> None:
    out, rows = np.zeros((3, 4), np.float32), normal(2, 4)
    with pytest.raises(ValueError, match="outside"):
        bind_add_weighted_rows(rows, np.array(tokens, np.int32), normal(2), out, 1)


@pytest.mark.parametrize(("n_used", "n_experts"), [(0, 4), (5, 4)])
def test_more_experts_than_there_are_cannot_be_chosen(n_used: int, n_experts: int) -> None:
    with pytest.raises(ValueError, match="cannot be chosen"):
        bind_choose_experts(normal(2, n_experts), np.empty((2, n_used), np.int32), 1)


# ---- gates


def slow_clamped_swiglu(gate: Floats, up: Floats) -> NDArray[np.float64]:
    g = np.minimum(gate.astype(np.float64), 7)
    with np.errstate(over="ignore"):
        return g / (1 + np.exp(-1.702 * g)) * (np.clip(up.astype(np.float64), -7, 7) + 1)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("size", [1, 63, 64, 1000])
def test_clamped_swiglu(level: str, size: int) -> None:
    gate, up = normal(size, size=6.0), normal(size, seed=1, size=6.0)
    with at_level(level), guarded((size,)) as out:
        activation.bind_clamped_swiglu(gate, up, out, 2)()
    np.testing.assert_allclose(out, slow_clamped_swiglu(gate, up), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("level", COMPILED_LEVELS)
def test_clamped_swiglu_far_outside(level: str) -> None:
    gate = np.array([1e30, -1e30, 1e30, -200.0], np.float32)
    up = np.array([1e30, 1e30, -1e30, 3.0], np.float32)
    with at_level(level):
        wanted = slow_clamped_swiglu(gate, up)
        activation.bind_clamped_swiglu(gate, up, gate, 1)()
    assert wanted[0] == pytest.approx(7 * 8, rel=1e-4)
    np.testing.assert_allclose(gate, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("level", NATIVE_LEVELS)
def test_clamped_swiglu_of_no_number(level: str) -> None:
    gate, up = np.array([np.nan, 1.0], np.float32), np.array([1.0, np.nan], np.float32)
    with at_level(level):
        activation.bind_clamped_swiglu(gate, up, gate, 1)()
    assert np.isnan(gate).all()


def test_gate_of_tokens() -> None:
    x, weight, y = normal(5, 40), normal(40, seed=1), normal(5, 30, seed=2)
    wanted = y / (1 + np.exp(-(x.astype(np.float64) @ weight)))[:, None]
    gate_tokens(x, weight, y, y)
    np.testing.assert_allclose(y, wanted, rtol=1e-5)


def test_gate_of_tokens_far_outside() -> None:
    y = normal(2, 3)
    wanted = [[0.0] * 3, y[1].tolist()]
    x = np.array([[-1e5], [1e5]], np.float32)
    gate_tokens(x, np.ones(1, np.float32), y, y)
    assert y.tolist() == wanted


# ---- what wrappers refuse


def routing_arguments() -> dict[str, np.ndarray]:
    return {
        "scores": normal(3, 6),
        "chosen": np.zeros((3, 2), np.int32),
        "weights": np.empty((3, 2), np.float32),
    }


def bind_weights(**arrays: np.ndarray) -> None:
    bind_weigh_experts(**arrays, sigmoid=False, normalised=True, scale=1.0, threads=1)


@pytest.mark.parametrize("name", ["scores", "chosen", "weights"])
def test_arrays_of_another_type_or_shape_are_refused(name: str) -> None:
    bind_weights(**routing_arguments())
    arguments = routing_arguments()
    with pytest.raises(TypeError, match=name):
        bind_weights(**arguments | {name: arguments[name].astype(np.float64)})
    with pytest.raises(ValueError, match="shape"):
        bind_weights(**arguments | {name: arguments[name][:2]})
    with pytest.raises(ValueError, match=name):
        bind_weights(**arguments | {name: np.asfortranarray(arguments[name])})


def test_results_are_not_written_to_what_is_read_only() -> None:
    arguments = routing_arguments()
    for name in ("chosen", "weights"):
        arguments[name].flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        bind_weights(**arguments)
    with pytest.raises(ValueError, match="read-only"):
        bind_choose_experts(arguments["scores"], arguments["chosen"], 1)
    out = np.zeros((3, 4), np.float32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        bind_add_weighted_rows(normal(2, 4), np.zeros(2, np.int32), normal(2), out, 1)


@pytest.mark.parametrize("threads", [0, 1025])
def test_threads_are_checked(threads: int) -> None:
    scores, chosen = normal(3, 6), np.zeros((3, 2), np.int32)
    with pytest.raises(ValueError, match="threads"):
        bind_choose_experts(scores, chosen, threads)
    with pytest.raises(ValueError, match="threads"):
        bind_add_weighted_rows(normal(2, 4), np.zeros(2, np.int32), normal(2), normal(3, 4), threads)


def test_rows_that_are_part_of_the_sum_are_refused() -> None:
    out = normal(3, 4)
    with pytest.raises(ValueError, match="share memory"):
        bind_add_weighted_rows(out[:2], np.zeros(2, np.int32), normal(2), out, 1)
