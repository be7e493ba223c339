"""Choosing from what a grammar allows: asking for the likeliest gives what working out all of them gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import NoAllowedTokenError
from engine.requests import SamplingSettings
from engine.sampling.sampler import Sampler

N = 300


class Mask:
    """Counts what it is asked for."""

    def __init__(self, mask):
        self.mask = mask
        self.n_asked = self.n_worked_out = 0

    def allows(self, token):
        self.n_asked += 1
        return bool(self.mask[token])

    def allowed(self):
        self.n_worked_out += 1
        return self.mask


SETTINGS = [
    {},
    {"temperature": 0},
    {"top_k": 0},
    {"top_k": 1, "temperature": 2},
    {"top_k": 200},
    {"top_k": 5, "xtc_probability": 0.5, "min_p": 0},
    {"top_k": 5, "top_n_sigma": 1.5},
    {"top_k": 5, "mirostat": True},
    {"top_k": 3, "logit_bias": {7: np.inf, 8: -np.inf}, "banned_tokens": frozenset([9])},
    {"top_k": 10, "repetition_penalty": 1.7, "dynamic_temperature_range": 0.5},
]


@pytest.mark.parametrize("changes", SETTINGS, ids=str)
@given(
    seed=st.integers(0, 2**32),
    share=st.sampled_from([0.004, 0.05, 0.3, 0.9, 1]),
    steps=st.sampled_from([1, 30, 10_000]),
)
def test_the_same_tokens_are_chosen(changes, seed, share, steps):
    """steps: how many different logits there are; with few of them, many tokens are equally likely."""
    chance = np.random.default_rng(seed)
    logits = (chance.integers(0, steps, N) * (20 / steps)).astype(np.float32)
    mask = chance.random(N) < share
    mask[chance.integers(N)] = True
    first, second = (
        Sampler(SamplingSettings(**{"temperature": 1.0, "seed": 3} | changes), N) for _ in range(2)
    )
    history = [1, 2, 3]
    for _ in range(5):
        try:
            expected = first.sample(logits, history, mask)
        except NoAllowedTokenError:
            with pytest.raises(NoAllowedTokenError):
                second.sample(logits, history, Mask(mask))
            return
        assert second.sample(logits, history, Mask(mask)) == expected
        history.append(expected.token)


@pytest.mark.parametrize(("share", "worked_out"), [(0.9, 0), (0.01, 1)])
def test_all_are_worked_out_only_where_few_are_allowed(share, worked_out):
    chance = np.random.default_rng(2)
    logits = chance.standard_normal(50_000).astype(np.float32)
    mask = Mask(chance.random(50_000) < share)
    Sampler(SamplingSettings(seed=1, top_k=40), 50_000).sample(logits, [], mask)
    assert mask.n_worked_out == worked_out
    assert mask.n_asked <= 100
