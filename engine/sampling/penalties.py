"""Penalties and biases: changes to the logits of single tokens, before any filter.

Each changes float32[vocabulary] logits in place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from engine.sampling.numbers import Logits

Tokens = NDArray[np.int64]

LONGEST_MATCH = 256
"""Tokens; DRY counts a longer repetition as one of this length, which no token survives anyway."""

_LARGEST_EXPONENT = 60.0


def add_logit_bias(logits: Logits, bias: Mapping[int, float]) -> None:
    """Adds each bias to the logit of its token id."""
    for token, value in bias.items():
        logits[token] += np.float32(value)


def penalise_repetition(
    logits: Logits,
    recent: Tokens,
    *,
    repetition: float = 1.0,
    presence: float = 0.0,
    frequency: float = 0.0,
    spared: Collection[int] = (),
) -> None:
    """Makes recent tokens less likely.

    repetition: positive logits are divided by it and negative multiplied, once however often a token occurs.
    presence is taken off once, frequency for each time it occurs.
    Sources: Keskar et al. 2019 (CTRL), section 4.1, with the multiplication of negative logits that makes a
    repeated token less likely there too; presence and frequency as in OpenAI's API reference.
    """
    ids, counts = np.unique(recent, return_counts=True)
    if spared:
        penalised = ~np.isin(ids, list(spared))
        ids, counts = ids[penalised], counts[penalised]
    values = logits[ids]
    if repetition != 1:
        values = np.where(values > 0, values / repetition, values * repetition)
    logits[ids] = values - presence - frequency * counts


def penalise_repeated_sequences(
    logits: Logits,
    recent: Tokens,
    *,
    multiplier: float,
    base: float,
    allowed_length: int,
    breaks: Callable[[int], bool],
    spared: Collection[int] = (),
) -> None:
    """DRY: takes multiplier * base ** (length - allowed_length) off a token that would repeat a sequence.

    multiplier > 0, base >= 1, allowed_length >= 1.
    length: of the longest end of recent that stands earlier in it too, followed by that token; one shorter
    than allowed_length is free.  No sequence reaches over a token for which breaks() is true.
    Source: the proposal of its author, https://github.com/oobabooga/text-generation-webui/pull/5677
    """
    n = len(recent)
    lengths: dict[int, int] = {}
    followers = np.arange(1, n)
    for length in range(1, min(n, LONGEST_MATCH + 1)):
        token = recent[n - length]
        if breaks(int(token)):
            break
        followers = followers[followers >= length]
        followers = followers[recent[followers - length] == token]
        if not len(followers):
            break
        if length >= allowed_length:
            lengths.update(dict.fromkeys(recent[followers].tolist(), length))
    for token, length in lengths.items():
        if token not in spared:
            # By logarithms, since the power itself may be larger than any number.
            exponent = math.log(multiplier) + (length - allowed_length) * math.log(base)
            logits[token] -= np.float32(math.exp(min(exponent, _LARGEST_EXPONENT)))
