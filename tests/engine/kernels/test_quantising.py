"""The compiled quantisers on every level: plain types to the byte, searches by the error that they leave."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels.quantising import (
    StepValues,
    fit_ranges,
    fit_steps,
    round_blocks,
    round_to_ranges,
    round_to_steps,
)
from engine.quantisation.quantise import quantise
from engine.quantisation.table_types import IQ4_VALUES
from tests.helpers.cpu_levels import COMPILED_LEVELS, NATIVE_LEVELS, at_level
from tests.helpers.plain_quantisers import PLAIN_QUANTISERS

LEVELS = [*COMPILED_LEVELS, "python"]
VALUES = {"3 bits": StepValues.whole_numbers(-4, 3), "uneven": StepValues.of(IQ4_VALUES)}


def awkward_blocks(seed):
    """float32[200, 32]: random ones of all sizes, halves between steps, zeros, denormals, single weights."""
    random = np.random.default_rng(seed)
    blocks = random.standard_normal((200, 32)) * 10.0 ** random.integers(-6, 4, (200, 1))
    blocks[:20] = random.integers(-16, 17, (20, 32)) / 2
    blocks[20:30] = 0
    blocks[30:40] *= 1e-38
    blocks[40:50] = 0
    blocks[40:50, 7] = random.standard_normal(10)
    blocks[50:60] = np.abs(blocks[50:60])
    blocks[60:70] = 3.0
    return blocks.astype(np.float32)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("type_name", PLAIN_QUANTISERS)
def test_plain_types_are_the_same_bytes_on_every_level(level, type_name):
    for seed in range(2 if level == "python" else 10):
        blocks = awkward_blocks(seed)
        with at_level(level):
            raw = quantise(blocks, type_name, threads=3).reshape(len(blocks), -1)
        assert (raw == PLAIN_QUANTISERS[type_name](blocks)).all()


def least_error_of_range(part, most):
    """Of float64 weights as step * q - minimum, by trying many steps and minimums."""
    low, high = min(part.min(), 0), part.max()
    best = np.inf
    for bottom in np.linspace(low, 0, 60):
        for step in np.linspace((high - bottom) / most * 0.6, (high - bottom) / most * 1.2, 60):
            quants = np.clip(np.rint((part - bottom) / step), 0, most)
            best = min(best, np.square(step * quants + bottom - part).sum())
    return best


@pytest.mark.parametrize("level", LEVELS)
def test_ranges_are_near_the_best(level):
    parts = np.random.default_rng(4).standard_normal((12, 16)).astype(np.float32)
    parts[6:] += 1.5
    with at_level(level):
        fitted = fit_ranges(parts, 15, 2).astype(np.float64)
    assert (fitted[:, 1] >= 0).all()
    for part, (step, minimum) in zip(parts.astype(np.float64), fitted, strict=True):
        quants = np.clip(np.floor((part + minimum) / step + 0.5), 0, 15)
        error = np.square(step * quants - minimum - part).sum()
        assert error <= 1.15 * least_error_of_range(part, 15)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_steps_are_near_the_best(level, values):
    parts = np.random.default_rng(5).standard_normal((12, 32)).astype(np.float32)
    with at_level(level):
        fitted = fit_steps(parts, values, 2).astype(np.float64)
    for part, step in zip(parts.astype(np.float64), fitted, strict=True):

        def error(step, part=part):
            distance = np.abs(part[:, None] - step * values.values.astype(np.float64))
            return np.square(distance.min(axis=1)).sum()

        largest = np.abs(part).max()
        tried = [sign * largest / end for end in np.linspace(1.5, 160, 4000) for sign in (1, -1)]
        assert error(step) <= 1.1 * min(map(error, tried))


@pytest.mark.parametrize("level", LEVELS)
def test_rounding_is_the_nearest_quant(level):
    random = np.random.default_rng(6)
    parts = random.standard_normal((9, 16)).astype(np.float32)
    with at_level(level):
        fitted = fit_ranges(parts, 15, 1)
        units = np.repeat(fitted.max(axis=0, keepdims=True) / np.float32(63), 9, axis=0)
        codes, quants = round_to_ranges(parts, fitted, units, 15, 63, 2)
        steps = fit_steps(parts, VALUES["uneven"], 1)
        step_units = np.full(9, np.abs(steps).max() / 31, np.float32)
        scales, table_quants = round_to_steps(parts, steps, step_units, VALUES["uneven"], (-32, 31), 2)
    step, bottom = (units * codes).astype(np.float64).T
    nearest = np.clip(np.floor((parts + bottom[:, None]) / step[:, None] + 0.5), 0, 15)
    assert (quants == nearest).all()
    values = step_units[:, None, None] * scales[:, None, None] * VALUES["uneven"].values
    chosen = np.take_along_axis(values[:, 0], table_quants.astype(int), axis=1)
    best = np.abs(parts[..., None] - values).min(axis=2)
    # The nearest value is looked up by a whole number, half of one off at the most.
    assert (np.abs(parts - chosen) <= best + np.abs(step_units * scales)[:, None]).all()


@pytest.mark.parametrize("level", NATIVE_LEVELS)
@pytest.mark.parametrize("type_name", ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"])
def test_levels_differ_by_ties_at_most(level, type_name):
    weights = np.random.default_rng(7).standard_normal((8, 512)).astype(np.float32)
    with at_level(NATIVE_LEVELS[0]):
        first = quantise(weights, type_name, threads=1)
    with at_level(level):
        assert np.count_nonzero(quantise(weights, type_name, threads=3) != first) <= len(first) // 200


def test_wrong_arrays_are_refused():
    parts = np.ones((4, 16), np.float32)
    values = VALUES["uneven"]
    with pytest.raises(TypeError):
        fit_ranges(parts.astype(np.float64), 15, 1)
    with pytest.raises(ValueError, match="empty"):
        fit_steps(parts[:, :0], values, 1)
    with pytest.raises(ValueError, match="threads"):
        fit_steps(parts, values, 0)
    with pytest.raises(ValueError, match="shape"):
        round_to_ranges(parts, np.ones((3, 2), np.float32), np.ones((4, 2), np.float32), 15, 63, 1)
    with pytest.raises(ValueError, match="bytes"):
        round_to_steps(parts, np.ones(4, np.float32), np.ones(4, np.float32), values, (-200, 5), 1)
    with pytest.raises(ValueError, match="shape"):
        round_blocks(parts, np.ones((4, 1), np.float32), np.ones((3, 1), np.float32), 0.5, False, (0, 15), 1)
    with pytest.raises(ValueError, match="ascend"):
        StepValues.of(np.array([1, 1]))
    with pytest.raises(ValueError, match="bytes"):
        StepValues.of(np.array([-300, 1]))
