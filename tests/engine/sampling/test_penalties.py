"""Penalties against tables worked out by hand (S-01, S-05) and, for DRY, the plain definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.sampling.numbers import softmax
from engine.sampling.penalties import (
    LONGEST_MATCH,
    add_logit_bias,
    penalise_repeated_sequences,
    penalise_repetition,
)


def penalised(logits, recent, **settings):
    changed = np.array(logits, np.float32)
    penalise_repetition(changed, np.array(recent, np.int64), **settings)
    return changed


FIFTHS = np.log(np.full(5, 0.2))


@pytest.mark.parametrize(
    ("recent", "expected"),
    [
        ([0], [0, 0.25, 0.25, 0.25, 0.25]),
        ([0, 1, 2], [0, 0, 0, 0.5, 0.5]),
        ([0, 1, 2, 0, 0], [0, 0, 0, 0.5, 0.5]),
    ],
)
def test_repetition_table(recent, expected):
    np.testing.assert_allclose(softmax(penalised(FIFTHS, recent, repetition=50)), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("recent", "expected"),
    [
        ([0], [0.000011, 0.249997, 0.249997, 0.249997, 0.249997]),
        ([0, 1, 2], [0.000023, 0.000023, 0.000023, 0.499966, 0.499966]),
        ([0, 1, 2, 0, 0], [0.0, 0.000023, 0.000023, 0.499977, 0.499977]),
    ],
)
def test_frequency_and_presence_table(recent, expected):
    changed = penalised(FIFTHS, recent, frequency=5, presence=5)
    np.testing.assert_allclose(softmax(changed), expected, atol=1e-6)


def test_a_penalty_never_makes_a_token_likelier():
    assert penalised([2, -2, 0], [0, 1], repetition=2).tolist() == [1, -4, 0]


def test_repetition_counts_once_and_frequency_each_time():
    assert penalised([8, 8], [0, 0, 0], repetition=2).tolist() == [4, 8]
    assert penalised([8, 8], [0, 0, 0], frequency=2).tolist() == [2, 8]
    assert penalised([8, 8], [0, 0, 0], presence=2).tolist() == [6, 8]


def test_spared_tokens_keep_their_logits():
    changed = penalised([8, 8, 8], [0, 1], repetition=2, presence=1, frequency=1, spared=[1])
    assert changed.tolist() == [2, 8, 8]


def test_bias_is_added():
    logits = np.array([1, 2], np.float32)
    add_logit_bias(logits, {0: 3.5})
    assert logits.tolist() == [4.5, 2]


def repelled(logits, recent, *, multiplier=1.0, base=1.1, allowed_length=2, breakers=(), spared=()):
    changed = np.array(logits, np.float32)
    penalise_repeated_sequences(
        changed,
        np.array(recent, np.int64),
        multiplier=multiplier,
        base=base,
        allowed_length=allowed_length,
        breaks=lambda token: token in breakers,
        spared=spared,
    )
    return changed


@pytest.mark.parametrize(
    ("recent", "expected"),
    [
        ([0, 1, 2, 0, 1], [0.296923, 0.296923, 0.109232, 0.296923]),
        ([0, 1], [0.25, 0.25, 0.25, 0.25]),
        ([0], [0.25, 0.25, 0.25, 0.25]),
        ([], [0.25, 0.25, 0.25, 0.25]),
    ],
)
def test_dry_table(recent, expected):
    np.testing.assert_allclose(softmax(repelled(np.log(np.full(4, 0.25)), recent)), expected, atol=1e-5)


def test_dry_grows_with_the_repeated_length():
    # "1 2 3" stands before 4, and "2 3" before 5.
    changed = repelled(np.zeros(6), [1, 2, 3, 4, 0, 2, 3, 5, 1, 2, 3], multiplier=2, base=3)
    assert changed.tolist() == [0, 0, 0, 0, -6, -2]


def test_dry_sees_nothing_across_a_breaker():
    recent = [1, 2, 3, 4, 1, 2, 3]
    assert repelled(np.zeros(5), recent, breakers=[1]).tolist() == [0, 0, 0, 0, -1]
    assert repelled(np.zeros(5), recent, breakers=[2]).tolist() == [0, 0, 0, 0, 0]
    assert repelled(np.zeros(5), recent, breakers=[3]).tolist() == [0, 0, 0, 0, 0]


def test_dry_spares_what_it_must():
    assert repelled(np.zeros(4), [0, 1, 2, 0, 1], spared=[2]).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("base", [1.0, 1.75, 1e30])
def test_an_endless_repetition_stays_a_number(base):
    changed = repelled(np.zeros(2), [0] * 5000, base=base, multiplier=3)
    assert np.isfinite(changed).all()
    assert changed[0] < 0 and changed[1] == 0


@given(
    st.lists(st.integers(0, 3), max_size=40),
    st.integers(1, 4),
    st.sets(st.integers(0, 3), max_size=2),
)
def test_dry_against_its_definition(recent, allowed_length, breakers):
    n = len(recent)
    longest = np.zeros(4, int)
    for follower in range(1, n):
        length = 0
        while (
            length < follower
            and length < LONGEST_MATCH
            and recent[follower - 1 - length] == recent[n - 1 - length]
            and recent[n - 1 - length] not in breakers
        ):
            length += 1
        longest[recent[follower]] = max(longest[recent[follower]], length)
    expected = [
        -(2.0 ** (length - allowed_length)) if length >= allowed_length else 0.0 for length in longest
    ]
    changed = repelled(np.zeros(4), recent, base=2, allowed_length=allowed_length, breakers=breakers)
    np.testing.assert_allclose(changed, expected, rtol=1e-5)
