"""The sampler chain against hand-worked tables and the faults of other programs (S-01 to S-05)."""

import math
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InvalidNumbersError, SettingsError
from engine.requests import SamplingSettings
from engine.sampling import (
    Sampler,
    add_logit_bias,
    at_temperature,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    penalise_repetition,
    softmax,
)

TENTHS = np.log(np.array([0.1, 0.2, 0.3, 0.4])).astype(np.float32)
FIFTHS = np.log(np.full(5, 0.2)).astype(np.float32)
NEUTRAL = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0}


def settings(**changes):
    return SamplingSettings(**{**NEUTRAL, "seed": 7, **changes})


def choose(logits, history=(), **changes):
    sampler = Sampler(settings(**changes), len(logits))
    return sampler.sample(np.array(logits, np.float32), history)


def expanded(kept):
    """Probabilities of the four tenths after a filter, 0 for those it dropped."""
    probabilities = np.zeros(4)
    probabilities[kept] = softmax(TENTHS[kept])
    return probabilities


def shares(*parts):
    return np.array(parts) / sum(parts)


@pytest.mark.parametrize(
    ("k", "expected"),
    [(1, shares(0, 0, 0, 1)), (3, shares(0, 2, 3, 4)), (0, shares(1, 2, 3, 4)), (-1, shares(1, 2, 3, 4))],
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


def test_temperature_table():
    np.testing.assert_allclose(at_temperature(TENTHS, 0), [0, 0, 0, 1], atol=1e-5)
    np.testing.assert_allclose(at_temperature(TENTHS, 1), [0.1, 0.2, 0.3, 0.4], atol=1e-5)
    # At one half every probability is squared: 1, 4, 9, 16 of 30.
    np.testing.assert_allclose(at_temperature(TENTHS, 0.5), shares(1, 4, 9, 16), atol=1e-5)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [({0}, [0, 0.25, 0.25, 0.25, 0.25]), ({0, 1, 2}, [0, 0, 0, 0.5, 0.5])],
)
def test_repetition_penalty_table(tokens, expected):
    np.testing.assert_allclose(softmax(penalise_repetition(FIFTHS, tokens, 50)), expected, atol=1e-5)


@pytest.mark.parametrize("k", [0, -1, 5])
def test_top_k_off_leaves_every_token_possible(k):
    sampler = Sampler(settings(top_k=k), 4)
    drawn = Counter(sampler.sample(np.zeros(4, np.float32), ()).token for _ in range(1000))
    assert set(drawn) == {0, 1, 2, 3}
    assert min(drawn.values()) > 180


def test_draws_follow_the_probabilities():
    sampler = Sampler(settings(), 4)
    drawn = Counter(sampler.sample(TENTHS, ()).token for _ in range(20_000))
    for token, probability in enumerate([0.1, 0.2, 0.3, 0.4]):
        assert drawn[token] / 20_000 == pytest.approx(probability, abs=0.015)


@pytest.mark.parametrize("temperature", [0, -1, -math.inf, 1e-30, 1e-4])
def test_no_temperature_is_greedy_and_the_lowest_id_wins_ties(temperature):
    logits = [-1e4, 3, 1e4, 1e4, 0, 1e4]
    assert {choose(logits, temperature=temperature, seed=seed).token for seed in range(20)} == {2}


@pytest.mark.parametrize("temperature", [1e-3, 0.01, 5, 1e30])
def test_extreme_temperatures_stay_numbers(temperature):
    probabilities = at_temperature(np.array([-1e4, 1e4, 9999], np.float32), temperature)
    assert np.isfinite(probabilities).all()
    assert probabilities.sum() == pytest.approx(1)
    assert probabilities.argmax() in (0, 1)


@pytest.mark.parametrize("temperature", [math.nan, math.inf])
def test_temperatures_that_mean_nothing_are_refused(temperature):
    with pytest.raises(SettingsError):
        SamplingSettings(temperature=temperature)


@pytest.mark.parametrize("temperature", [0, 1])
@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_logits_without_any_number_are_an_error(value, temperature):
    with pytest.raises(InvalidNumbersError) as caught:
        choose([value] * 6, temperature=temperature)
    assert "invalid numbers" in caught.value.title


def test_overflowed_logits_are_an_error():
    with pytest.raises(InvalidNumbersError):
        choose([math.inf, math.inf, 0])


@pytest.mark.parametrize("temperature", [0, 1])
def test_one_infinite_logit_is_certain(temperature):
    choice = choose([0, 1e4, math.inf, math.nan], temperature=temperature)
    assert (choice.token, choice.logprob) == (2, 0.0)


@pytest.mark.parametrize("temperature", [0, 1])
def test_a_stray_nan_never_wins(temperature):
    sampler = Sampler(settings(temperature=temperature), 4)
    logits = np.array([0, math.nan, 0, 0], np.float32)
    choices = [sampler.sample(logits, ()) for _ in range(300)]
    assert 1 not in {choice.token for choice in choices}
    assert choices[0].logprob == pytest.approx(math.log(1 / 3))
    assert np.isnan(logits[1]), "the caller's logits were changed"


def test_a_bias_that_masks_everything_is_an_error():
    with pytest.raises(InvalidNumbersError):
        choose([1, 2], logit_bias={0: -math.inf, 1: -math.inf})


def test_penalty_values():
    penalised = penalise_repetition(np.array([2, -2, 0], np.float32), {0, 1}, 2)
    assert penalised.tolist() == [1, -4, 0]


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (2, {5, 6}),  # 7 and 8 are penalised
        (0, {5, 6, 7, 8}),
        (-1, set()),
        (100, set()),
    ],
)
def test_the_window_takes_the_last_tokens(window, expected):
    logits = np.zeros(10, np.float32)
    logits[[5, 6, 7, 8]] = 30
    logits[[1, 2]] = 29.5
    sampler = Sampler(settings(repetition_penalty=1000.0, repetition_window=window), 10)
    drawn = {sampler.sample(logits, [5, 6, 7, 8]).token for _ in range(300)}
    assert drawn & {5, 6, 7, 8} == expected


def test_no_penalty_changes_nothing_and_zero_is_refused():
    assert choose([2, 2.5], [1, 1, 1], temperature=0).token == 1
    with pytest.raises(SettingsError):
        SamplingSettings(repetition_penalty=0)


def test_a_repeated_token_counts_once():
    assert choose([3, 2], [0] * 50, temperature=0, repetition_penalty=1.4).token == 0


def test_end_of_generation_can_be_spared():
    sampler = Sampler(settings(temperature=0, repetition_penalty=2.0), 3, never_penalised=[2])
    assert sampler.sample(np.array([0, 2.9, 3], np.float32), [1, 2]).token == 2


def test_bias_is_added_and_leaves_the_logprob_raw():
    assert add_logit_bias(np.array([1, 2], np.float32), {0: 3.5}).tolist() == [4.5, 2]
    choice = choose([1, 2], temperature=0, logit_bias={0: 3.5})
    assert choice.token == 0
    assert choice.logprob == pytest.approx(math.log(1 / (1 + math.e)), abs=1e-6)
    assert choose([1, 2, 3], logit_bias={0: math.inf}, temperature=1).token == 0


@pytest.mark.parametrize("token", [-1, 3])
def test_bias_outside_the_vocabulary_is_refused_by_number(token):
    with pytest.raises(SettingsError, match=str(token)):
        Sampler(settings(logit_bias={token: 1.0}), 3)


def test_same_seed_same_tokens_and_no_seed_differs():
    logits = np.zeros(1000, np.float32)

    def draw(seed):
        sampler = Sampler(settings(seed=seed), 1000)
        return [sampler.sample(logits, ()).token for _ in range(10)]

    assert draw(3) == draw(3)
    assert draw(3) != draw(4)
    assert draw(None) != draw(None)


@pytest.mark.parametrize("drawn", [0.0, np.nextafter(1, 0)])
def test_the_ends_of_the_draw_pick_no_impossible_token(drawn):
    sampler = Sampler(settings(), 4)
    sampler._random = SimpleNamespace(random=lambda: drawn)
    logits = np.array([-math.inf, 0, 0.3, -math.inf], np.float32)
    assert sampler.sample(logits, ()).token == (1 if drawn == 0 else 2)


def test_top_k_prefers_lower_ids_on_ties():
    assert keep_top_k(np.array([1, 5, 1, 1, 0], np.float32), 3).tolist() == [0, 1, 2]


def test_top_p_over_a_flat_large_vocabulary():
    kept = keep_top_p(np.zeros(20_000, np.float32), 0.5)
    assert len(kept) == pytest.approx(10_000, abs=1)
    assert len(keep_top_p(np.zeros(3000, np.float32), 0.9999)) == pytest.approx(3000, abs=1)


def test_top_p_means_the_share_of_what_top_k_left():
    # top-k leaves .4 and .3, of which .4 is 57 %: enough for top-p .55.
    sampler = Sampler(settings(top_k=2, top_p=0.55), 4)
    assert {sampler.sample(TENTHS, ()).token for _ in range(100)} == {3}


logit_lists = st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=60)


@given(logit_lists, st.integers(-3, 70), st.floats(0, 1), st.floats(0, 2), st.floats(0, 3), st.just(3))
def test_any_settings_leave_a_token_of_positive_probability(values, k, p, share, temperature, seed):
    logits = np.array(values, np.float32)
    choice = choose(values, top_k=k, top_p=p, min_p=share, temperature=temperature, seed=seed)
    assert choice.token in keep_top_k(logits, k)
    assert logits[choice.token] >= logits.max() + math.log(max(min(share, 1), 1e-300)) - 1e-3
    assert choice.logprob <= 1e-6


@given(logit_lists, st.integers(1, 70))
def test_top_k_equals_a_stable_sort(values, k):
    logits = np.array(values, np.float32)
    assert keep_top_k(logits, k).tolist() == sorted(np.argsort(-logits, kind="stable")[:k].tolist())
