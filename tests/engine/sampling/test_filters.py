"""Filters of the sampler chain against tables worked out by hand (S-01) and slow, plain definitions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.sampling.filters import (
    entropy,
    keep_min_p,
    keep_top_k,
    keep_top_n_sigma,
    keep_top_p,
    keep_typical,
    keep_xtc,
)
from engine.sampling.numbers import at_temperature, softmax


def logits_of(*probabilities):
    return np.log(np.array(probabilities)).astype(np.float32)


TENTHS = logits_of(0.1, 0.2, 0.3, 0.4)


def expanded(kept):
    """Probabilities of the four tenths after a filter, 0 for those it dropped."""
    probabilities = np.zeros(4)
    probabilities[kept] = softmax(TENTHS[kept])
    return probabilities


def shares(*parts):
    return np.array(parts) / sum(parts)


@pytest.mark.parametrize(
    ("k", "expected"),
    [
        (1, shares(0, 0, 0, 1)),
        (3, shares(0, 2, 3, 4)),
        (0, shares(1, 2, 3, 4)),
        (-1, shares(1, 2, 3, 4)),
        (4, shares(1, 2, 3, 4)),
        (99, shares(1, 2, 3, 4)),
    ],
)
def test_top_k_table(k, expected):
    np.testing.assert_allclose(expanded(keep_top_k(TENTHS, k)), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        (0, shares(0, 0, 0, 1)),
        (0.7, shares(0, 0, 3, 4)),
        (0.8, shares(0, 2, 3, 4)),
        (1, shares(1, 2, 3, 4)),
    ],
)
def test_top_p_table(p, expected):
    np.testing.assert_allclose(expanded(keep_top_p(TENTHS, p)), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0, [0, 1, 2, 3]),
        (0.24, [0, 1, 2, 3]),
        (0.26, [1, 2, 3]),
        (0.49, [1, 2, 3]),
        (0.51, [2, 3]),
        (0.74, [2, 3]),
        (0.76, [3]),
        (1.0, [3]),
        (1.05, [3]),
    ],
)
def test_min_p_table(share, expected):
    kept = keep_min_p(TENTHS, share)
    assert kept.tolist() == expected
    weights = np.array([1, 2, 3, 4])[expected]
    np.testing.assert_allclose(softmax(TENTHS[kept]), weights / weights.sum(), atol=1e-5)


@pytest.mark.parametrize(
    ("probabilities", "kept"),
    [((0.97, 0.01, 0.01, 0.01), [0]), ((0.4, 0.2, 0.2, 0.2), [1, 2, 3])],
)
def test_typical_table(probabilities, kept):
    assert keep_typical(logits_of(*probabilities), 0.5).tolist() == kept


@pytest.mark.parametrize(("threshold", "kept"), [(0.09, [3]), (0.19, [2, 3]), (0.39, [0, 1, 2, 3])])
def test_xtc_table(threshold, kept):
    assert keep_xtc(logits_of(0.4, 0.3, 0.2, 0.1), threshold).tolist() == kept


@pytest.mark.parametrize(
    ("n_sigma", "expected"),
    [(1, (0, 0, 0.428571, 0.571429)), (0, (0.1, 0.2, 0.3, 0.4)), (3, (0.1, 0.2, 0.3, 0.4))],
)
def test_top_n_sigma_table(n_sigma, expected):
    np.testing.assert_allclose(expanded(keep_top_n_sigma(TENTHS, n_sigma)), expected, atol=1e-5)


def test_top_n_sigma_overlooks_what_is_ruled_out():
    ruled_out = np.concatenate([TENTHS, np.full(4, -np.inf, np.float32)])
    assert keep_top_n_sigma(ruled_out, 1).tolist() == [2, 3]


def test_temperature_table():
    np.testing.assert_allclose(at_temperature(TENTHS, 0), [0, 0, 0, 1], atol=1e-5)
    np.testing.assert_allclose(at_temperature(TENTHS, 1), [0.1, 0.2, 0.3, 0.4], atol=1e-5)
    # At one half every probability is squared: 1, 4, 9, 16 of 30.
    np.testing.assert_allclose(at_temperature(TENTHS, 0.5), shares(1, 4, 9, 16), atol=1e-5)


@pytest.mark.parametrize("temperature", [1e-3, 0.01, 5, 1e30, 1e300])
def test_extreme_temperatures_stay_numbers(temperature):
    probabilities = at_temperature(np.array([-1e4, 1e4, 9999], np.float32), temperature)
    assert np.isfinite(probabilities).all()
    assert probabilities.sum() == pytest.approx(1)
    assert probabilities.argmax() in (0, 1)


def test_entropy_of_known_distributions():
    assert entropy(np.full(8, 1 / 8, np.float32)) == pytest.approx(math.log(8))
    assert entropy(np.array([1, 0, 0], np.float32)) == 0


def test_top_k_prefers_lower_ids_on_ties():
    assert keep_top_k(np.array([1, 5, 1, 1, 0], np.float32), 3).tolist() == [0, 1, 2]


def test_top_p_over_a_flat_large_vocabulary():
    kept = keep_top_p(np.zeros(20_000, np.float32), 0.5)
    assert len(kept) == pytest.approx(10_000, abs=1)
    assert len(keep_top_p(np.zeros(3000, np.float32), 0.9999)) == pytest.approx(3000, abs=1)


logit_lists = st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=60)


@given(logit_lists, st.integers(1, 70))
def test_top_k_equals_a_stable_sort(values, k):
    logits = np.array(values, np.float32)
    assert keep_top_k(logits, k).tolist() == sorted(np.argsort(-logits, kind="stable")[:k].tolist())


@given(logit_lists, st.floats(0, 1), st.booleans())
def test_every_filter_keeps_something_possible(values, amount, last_is_ruled_out):
    logits = np.array([*values, -math.inf if last_is_ruled_out else 0], np.float32)
    filters = [keep_top_p, keep_min_p, keep_typical, keep_top_n_sigma, keep_xtc]
    for keep in filters:
        kept = keep(logits, amount)
        assert np.isfinite(logits[kept]).any(), keep
        assert (np.diff(kept) > 0).all(), keep


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=40), st.floats(0.01, 0.99))
def test_typical_against_its_definition(weights, p):
    probabilities = softmax(np.log(np.array(weights, np.float32))).astype(np.float64)
    expected = -float((probabilities * np.log(probabilities)).sum())
    deviations = np.abs(-np.log(probabilities) - expected)
    kept = keep_typical(np.log(np.array(weights, np.float32)), p)
    left_out = np.setdiff1d(np.arange(len(weights)), kept)
    if len(left_out):
        assert deviations[kept].max() <= deviations[left_out].min() + 1e-5
    assert probabilities[kept].sum() >= p - 1e-5
    least_typical = kept[deviations[kept].argmax()]
    ties = np.isclose(deviations, deviations[least_typical], atol=1e-5)
    assert probabilities[kept][~ties[kept]].sum() <= p + 1e-5
