"""The sampler chain: from the logits of one position to the next token.

Order: logit bias, repetition penalty, top-k, top-p, min-p, temperature, draw.  Each filter is a pure
function that returns the indices it keeps, ascending, and always keeps at least one.  Filters see the
logits before the temperature, so their meaning does not change with it.

Numbers that are no numbers: NaN counts as minus infinity, one plus infinity is certain, and logits of
which nothing is left raise `InvalidNumbersError`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.errors import InvalidNumbersError, SettingsError
from engine.requests import SamplingSettings

GREEDY_BELOW = 1e-4
"""Temperatures up to this are greedy: the likeliest token, the lowest id on ties."""

TOP_P_SLACK = 1e-6
"""Sums of rounded probabilities miss a round top_p such as 0.7 by about this much."""

Logits = NDArray[np.float32]
Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Choice:
    """token: the id chosen.  logprob: natural logarithm of its probability at temperature 1, unfiltered."""

    token: int
    logprob: float


def softmax(logits: Logits) -> NDArray[np.float64]:
    """float64[n] probabilities of float32[n] logits, of which the largest is finite."""
    return at_temperature(logits, 1.0)


def add_logit_bias(logits: Logits, bias: Mapping[int, float]) -> Logits:
    """A copy of float32[vocabulary] logits with each bias added to the logit of its token id."""
    biased = logits.copy()
    for token, value in bias.items():
        biased[token] += np.float32(value)
    return biased


def penalise_repetition(logits: Logits, tokens: Collection[int], penalty: float) -> Logits:
    """A copy in which the logits of these tokens are divided by penalty where positive, else multiplied.

    A token counts once, however often it occurs.  Source: Keskar et al. 2019 (CTRL), section 4.1, with the
    multiplication of negative logits that makes a repeated token less likely there too.
    """
    penalised = logits.copy()
    ids = np.fromiter(set(tokens), np.intp)
    values = logits[ids]
    penalised[ids] = np.where(values > 0, values / penalty, values * penalty)
    return penalised


def keep_top_k(logits: Logits, k: int) -> Indices:
    """The k largest, lower indices first on ties; all where k <= 0 or k >= n."""
    n = len(logits)
    if k <= 0 or k >= n:
        return np.arange(n)
    threshold = np.partition(logits, n - k)[n - k]
    candidates = np.flatnonzero(logits >= threshold)
    surplus = len(candidates) - k
    if surplus:
        tied = np.flatnonzero(logits[candidates] == threshold)
        candidates = np.delete(candidates, tied[-surplus:])
    return candidates


def keep_top_p(logits: Logits, p: float) -> Indices:
    """The smallest set of the likeliest whose probabilities sum to at least p; all where p >= 1."""
    n = len(logits)
    if p >= 1:
        return np.arange(n)
    probabilities = softmax(logits)
    # A full sort of a large vocabulary costs tens of milliseconds, and the set is nearly always small.
    size = min(n, 1024)
    while True:
        likely = keep_top_k(logits, size)
        order = likely[np.argsort(-probabilities[likely], kind="stable")]
        sums = np.cumsum(probabilities[order])
        if size == n or sums[-1] >= p:
            count = 1 + int(np.searchsorted(sums, p - TOP_P_SLACK))
            return np.sort(order[:count])
        size = min(n, size * 8)


def keep_min_p(logits: Logits, share: float) -> Indices:
    """Those at least share times as likely as the likeliest; a share above 1 counts as 1."""
    if share <= 0:
        return np.arange(len(logits))
    return np.flatnonzero(logits >= float(logits.max()) + math.log(min(share, 1.0)))


def at_temperature(logits: Logits, temperature: float) -> NDArray[np.float64]:
    """float64[n] probabilities at a temperature; `GREEDY_BELOW` and less: 1 for the first of the largest."""
    if temperature <= GREEDY_BELOW:
        probabilities = np.zeros(len(logits))
        probabilities[np.argmax(logits)] = 1
        return probabilities
    weights = np.exp((logits.astype(np.float64) - float(logits.max())) / temperature)
    return np.asarray(weights / weights.sum(), np.float64)


class Sampler:
    """Chooses tokens for one reply.

    never_penalised: ids that the repetition penalty leaves alone.  End-of-generation ids and line breaks
    stand in nearly every window; penalising them lets a reply run on without an end.
    Raises `SettingsError` where a logit bias names a token outside the vocabulary.
    """

    def __init__(
        self, settings: SamplingSettings, n_vocab: int, never_penalised: Collection[int] = ()
    ) -> None:
        for token in settings.logit_bias:
            if not 0 <= token < n_vocab:
                raise SettingsError(f"logit_bias names token {token}, but the model has {n_vocab} tokens.")
        self.settings = settings
        self.n_vocab = n_vocab
        self._never_penalised = frozenset(never_penalised)
        self._random = np.random.Generator(np.random.PCG64(settings.seed))

    def sample(self, logits: Logits, history: Sequence[int]) -> Choice:
        """The next token after history (prompt and reply so far), from float32[vocabulary] logits.

        The logits are left as they are.  Raises `InvalidNumbersError` where no token is possible.
        """
        raw = _without_invalid_numbers(logits)
        adjusted = self._adjusted(raw, history)
        if self.settings.temperature <= GREEDY_BELOW:
            token = int(np.argmax(adjusted))
        else:
            token = self._draw(adjusted)
        return Choice(token, _logprob(raw, token))

    def _adjusted(self, logits: Logits, history: Sequence[int]) -> Logits:
        settings = self.settings
        adjusted = logits
        with np.errstate(over="ignore", invalid="ignore"):
            if settings.logit_bias:
                adjusted = add_logit_bias(adjusted, settings.logit_bias)
            if settings.repetition_penalty != 1 and settings.repetition_window != 0:
                window = settings.repetition_window
                recent = history[-window:] if window > 0 else history
                tokens = set(recent) - self._never_penalised
                if tokens:
                    adjusted = penalise_repetition(adjusted, tokens, settings.repetition_penalty)
        if adjusted is logits:
            return logits
        return _with_infinity_certain(adjusted)

    def _draw(self, logits: Logits) -> int:
        settings = self.settings
        kept = keep_top_k(logits, settings.top_k)
        if settings.top_p < 1:
            kept = kept[keep_top_p(logits[kept], settings.top_p)]
        if settings.min_p > 0:
            kept = kept[keep_min_p(logits[kept], settings.min_p)]
        sums = np.cumsum(at_temperature(logits[kept], settings.temperature))
        # side="right" passes over tokens of probability 0; sums[-1] is 1 but for rounding.
        place = int(np.searchsorted(sums, self._random.random() * sums[-1], side="right"))
        return int(kept[min(place, len(kept) - 1)])


def _without_invalid_numbers(logits: Logits) -> Logits:
    """The logits themselves where sound; else NaN is minus infinity and one plus infinity is certain."""
    largest = logits.max()
    if np.isfinite(largest):
        return logits
    if np.count_nonzero(logits == np.inf) > 1:
        raise InvalidNumbersError("The model produced invalid numbers.")
    return _with_infinity_certain(logits)


def _with_infinity_certain(logits: Logits) -> Logits:
    """Makes the largest logit finite: plus infinity becomes 0 and all else, NaN too, minus infinity."""
    largest = logits.max()
    if np.isfinite(largest):
        return logits
    numbers = np.where(np.isnan(logits), np.float32(-np.inf), logits)
    largest = numbers.max()
    if largest == -np.inf:
        raise InvalidNumbersError("The model produced invalid numbers.")
    if largest == np.inf:
        numbers = np.where(numbers == np.inf, np.float32(0), np.float32(-np.inf))
    return numbers


def _logprob(logits: Logits, token: int) -> float:
    largest = logits.max()
    total = float(np.exp(logits - largest).sum())
    return float(logits[token] - largest) - math.log(total)
