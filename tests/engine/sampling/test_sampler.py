"""The sampler chain as a whole, and the faults of other programs (S-02 to S-05)."""

import math
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InvalidNumbersError, NoAllowedTokenError, SettingsError
from engine.sampling.filters import keep_top_k
from engine.sampling.sampler import Sampler, dynamic_temperature
from engine.sampling.settings import SamplingSettings

TENTHS = np.log(np.array([0.1, 0.2, 0.3, 0.4])).astype(np.float32)
NEUTRAL = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0}


def settings(**changes):
    return SamplingSettings(**{**NEUTRAL, "seed": 7, **changes})


def choose(logits, history=(), allowed=None, **changes):
    sampler = Sampler(settings(**changes), len(logits))
    return sampler.sample(np.array(logits, np.float32), history, allowed)


def drawn_tokens(logits, count=300, history=(), **changes):
    sampler = Sampler(settings(**changes), len(logits))
    logits = np.array(logits, np.float32)
    return Counter(sampler.sample(logits, history).token for _ in range(count))


# The draw


@pytest.mark.parametrize("k", [0, -1, 5])
def test_top_k_off_leaves_every_token_possible(k):
    drawn = drawn_tokens(np.zeros(4), 1000, top_k=k)
    assert set(drawn) == {0, 1, 2, 3}
    assert min(drawn.values()) > 180


def test_draws_follow_the_probabilities():
    drawn = drawn_tokens(TENTHS, 20_000)
    for token, probability in enumerate([0.1, 0.2, 0.3, 0.4]):
        assert drawn[token] / 20_000 == pytest.approx(probability, abs=0.015)


@pytest.mark.parametrize("temperature", [0, -1, -math.inf, 1e-30, 1e-4])
def test_no_temperature_is_greedy_and_the_lowest_id_wins_ties(temperature):
    logits = [-1e4, 3, 1e4, 1e4, 0, 1e4]
    assert {choose(logits, temperature=temperature, seed=seed).token for seed in range(20)} == {2}


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


# Logits that are no numbers


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


# Biases, bans and what a grammar allows


def test_bias_leaves_the_logprob_raw():
    choice = choose([1, 2], temperature=0, logit_bias={0: 3.5})
    assert choice.token == 0
    assert choice.logprob == pytest.approx(math.log(1 / (1 + math.e)), abs=1e-6)
    assert choose([1, 2, 3], logit_bias={0: math.inf}, temperature=1).token == 0


@pytest.mark.parametrize("temperature", [0, 1])
def test_a_banned_token_is_never_chosen(temperature):
    drawn = drawn_tokens([0, 50, 0], banned_tokens=frozenset([1]), temperature=temperature)
    assert 1 not in drawn
    assert 1 not in drawn_tokens([0, 1, 0], banned_tokens=frozenset([1]), logit_bias={1: 1e30})


@pytest.mark.parametrize("token", [-1, 3])
@pytest.mark.parametrize("name", ["logit_bias", "banned_tokens"])
def test_tokens_outside_the_vocabulary_are_refused_by_number(token, name):
    value = {token: 1.0} if name == "logit_bias" else frozenset([token])
    with pytest.raises(SettingsError, match=str(token)):
        Sampler(settings(**{name: value}), 3)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"temperature": 0},
        {"mirostat": True},
        {"top_k": 1},
        {"top_p": 0.1},
        {"typical_p": 0.1},
        {"xtc_probability": 1.0, "xtc_threshold": 0.0},
        {"logit_bias": {0: 100.0}},
        {"repetition_penalty": 5.0, "presence_penalty": -50.0},
    ],
)
def test_only_allowed_tokens_are_chosen(changes):
    sampler = Sampler(settings(**changes), 4)
    logits = np.array([9, 1, 2, 9], np.float32)
    allowed = np.array([False, True, True, False])
    assert {sampler.sample(logits, [0, 3], allowed).token for _ in range(100)} <= {1, 2}


def test_the_mask_leaves_logits_and_logprobs_alone():
    logits = np.array([3, 1], np.float32)
    choice = Sampler(settings(), 2).sample(logits, (), np.array([False, True]))
    assert choice.token == 1
    assert choice.logprob == pytest.approx(-math.log(1 + math.exp(2)), abs=1e-6)
    assert logits.tolist() == [3, 1]


@pytest.mark.parametrize("temperature", [0, 1])
def test_nothing_left_is_an_error_of_its_own(temperature):
    nothing = np.zeros(2, bool)
    for options in (
        {"allowed": nothing},
        {"banned_tokens": frozenset([0, 1])},
        {"logit_bias": {0: -math.inf, 1: -math.inf}},
        {"banned_tokens": frozenset([0]), "allowed": np.array([True, False])},
    ):
        with pytest.raises(NoAllowedTokenError) as caught:
            choose([1, 2], temperature=temperature, **options)
        assert caught.value.advice


# Penalties in their place


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
    logits = np.zeros(10)
    logits[[5, 6, 7, 8]] = 30
    logits[[1, 2]] = 29.5
    for penalty in ({"repetition_penalty": 1000.0}, {"presence_penalty": 20.0}, {"frequency_penalty": 20.0}):
        drawn = drawn_tokens(logits, history=[5, 6, 7, 8], repetition_window=window, **penalty)
        assert set(drawn) & {5, 6, 7, 8} == expected


def test_no_penalty_changes_nothing():
    assert choose([2, 2.5], [1, 1, 1], temperature=0).token == 1


def test_end_of_generation_can_be_spared():
    sampler = Sampler(settings(temperature=0, repetition_penalty=2.0), 3, never_penalised=[2])
    assert sampler.sample(np.array([0, 2.9, 3], np.float32), [1, 2]).token == 2


def test_the_history_grows_and_may_begin_anew():
    sampler = Sampler(settings(temperature=0, repetition_penalty=2.0, repetition_window=-1), 2000)
    history: list[int] = []
    logits = np.linspace(2, 1.5, 2000, dtype=np.float32)
    for expected in range(1500):  # each token once, the likeliest first
        token = sampler.sample(logits, history).token
        assert token == expected
        history.append(token)
    assert sampler.sample(logits, [5]).token == 0


def test_dry_keeps_a_sequence_from_coming_again():
    changes = {"temperature": 0, "dry_multiplier": 5.0}
    history = [0, 1, 2, 3, 0, 1, 2]
    logits = np.array([0, 0, 0, 2, 1], np.float32)
    assert choose(logits, history, **changes).token == 4
    assert choose(logits, history, **changes, dry_window=5).token == 3
    assert choose(logits, history, **changes, dry_allowed_length=4).token == 3
    assert Sampler(settings(**changes), 5, (), lambda token: token == 2).sample(logits, history).token == 3


# Filters in their order


def test_top_p_means_the_share_of_what_top_k_left():
    # top-k leaves .4 and .3, of which .4 is 57 %: enough for top-p .55.
    assert set(drawn_tokens(TENTHS, top_k=2, top_p=0.55)) == {3}


def test_every_filter_is_in_the_chain():
    assert set(drawn_tokens(TENTHS, top_n_sigma=1.0)) == {2, 3}
    assert set(drawn_tokens(np.log([0.4, 0.2, 0.2, 0.2]), typical_p=0.5)) == {1, 2, 3}
    assert set(drawn_tokens(TENTHS, min_p=0.6)) == {2, 3}


def test_xtc_is_a_matter_of_chance():
    logits = np.log([0.4, 0.3, 0.2, 0.1])
    drawn = drawn_tokens(logits, 4000, xtc_probability=0.99, xtc_threshold=0.09)
    assert drawn[3] / 4000 == pytest.approx(0.99 + 0.01 * 0.1, abs=0.01)
    half = drawn_tokens(logits, 4000, xtc_probability=0.5, xtc_threshold=0.09)
    assert half[3] / 4000 == pytest.approx(0.5 + 0.5 * 0.1, abs=0.04)
    assert drawn_tokens(logits, 300, xtc_probability=1.0, xtc_threshold=0.39).keys() == {0, 1, 2, 3}


# Temperature and Mirostat


def test_dynamic_temperature_follows_the_entropy():
    flat, sure = np.zeros(10, np.float32), np.array([50, 0, 0], np.float32)
    assert dynamic_temperature(flat, 1.0, 0.5, 1.0) == pytest.approx(1.5)
    assert dynamic_temperature(sure, 1.0, 0.5, 1.0) == pytest.approx(0.5, abs=1e-6)
    assert dynamic_temperature(sure, 0.3, 0.5, 1.0) == pytest.approx(0.0, abs=1e-6)
    assert dynamic_temperature(flat[:1], 1.0, 0.5, 1.0) == 1.0
    # Entropy of the four tenths: 1.279854 nats of ln 4 = 1.386294, which is 0.923220.
    assert dynamic_temperature(TENTHS, 1.0, 0.5, 2.0) == pytest.approx(0.5 + 0.923220**2, abs=1e-4)


def test_a_sure_model_gets_the_low_temperature():
    logits = np.log([0.9, 0.1])
    assert drawn_tokens(logits, 3000)[1] / 3000 == pytest.approx(0.1, abs=0.02)
    # Entropy: 0.468996 of 1 bit.  Temperature: twice that share, from 0 to 2.
    odds = (0.1 / 0.9) ** (1 / (2 * 0.468996))
    drawn = drawn_tokens(logits, 3000, dynamic_temperature_range=1.0)
    assert drawn[1] / 3000 == pytest.approx(odds / (1 + odds), abs=0.02)


def test_mirostat_holds_the_surprise():
    logits = -np.log(np.arange(1, 20_001)).astype(np.float32)  # Zipf's law, as in natural texts
    means = []
    for tau in (1.0, 3.0, 5.0):
        sampler = Sampler(settings(mirostat=True, mirostat_tau=tau), len(logits))
        logprobs = [sampler.sample(logits, ()).logprob for _ in range(2000)]
        means.append(-np.mean(logprobs[200:]) / math.log(2))
    # Of the whole vocabulary; among the tokens that are kept each surprises less, by what they lack of 1.
    assert means[0] < means[1] < means[2]
    for mean, tau in zip(means, (1.0, 3.0, 5.0), strict=True):
        assert tau < mean < tau + 3


@pytest.mark.parametrize("eta", [0.0, 0.1, 1e6])
@pytest.mark.parametrize("tau", [0.0, 3.0, 1e6])
def test_mirostat_never_breaks_down(tau, eta):
    drawn = drawn_tokens(TENTHS, 200, mirostat=True, mirostat_tau=tau, mirostat_eta=eta)
    assert set(drawn) <= {0, 1, 2, 3}
    if tau == 0:
        assert set(drawn) == {3}


# Everything together

logit_lists = st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=60)


@given(logit_lists, st.integers(-3, 70), st.floats(0, 1), st.floats(0, 2), st.floats(0, 3), st.just(3))
def test_any_settings_leave_a_token_of_positive_probability(values, k, p, share, temperature, seed):
    logits = np.array(values, np.float32)
    choice = choose(values, top_k=k, top_p=p, min_p=share, temperature=temperature, seed=seed)
    assert choice.token in keep_top_k(logits, k)
    assert logits[choice.token] >= logits.max() + math.log(max(min(share, 1), 1e-300)) - 1e-3
    assert choice.logprob <= 1e-6


@given(
    logit_lists,
    st.fixed_dictionaries(
        {},
        optional={
            "temperature": st.floats(-1, 1e30),
            "top_k": st.integers(-2, 80),
            "top_p": st.floats(0, 1),
            "min_p": st.floats(0, 5),
            "typical_p": st.floats(0, 1),
            "top_n_sigma": st.floats(0, 5),
            "xtc_probability": st.floats(0, 1),
            "xtc_threshold": st.floats(0, 1),
            "dynamic_temperature_range": st.floats(0, 1e30),
            "dynamic_temperature_exponent": st.floats(0, 1e30),
            "repetition_penalty": st.floats(1e-30, 1e30),
            "presence_penalty": st.floats(-1e30, 1e30),
            "frequency_penalty": st.floats(-1e30, 1e30),
            "dry_multiplier": st.floats(0, 1e30),
            "dry_base": st.floats(1, 1e30),
            "mirostat": st.booleans(),
            "mirostat_tau": st.floats(0, 1e30),
            "mirostat_eta": st.floats(0, 1e30),
        },
    ),
    st.data(),
)
def test_no_settings_break_the_chain(values, changes, data):
    n = len(values)
    history = data.draw(st.lists(st.integers(0, n - 1), max_size=20))
    allowed = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    allowed[data.draw(st.integers(0, n - 1))] = True
    sampler = Sampler(settings(**changes), n)
    for _ in range(3):
        token = sampler.sample(np.array(values, np.float32), history, allowed).token
        assert allowed[token]
        history.append(token)
