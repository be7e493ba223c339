"""Filters: pure functions of float32[n] logits that return the indices they keep, ascending, at least one.

The largest logit is finite; minus infinity is a token that is ruled out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from engine.sampling.numbers import Indices, Logits, softmax

SLACK = 1e-6
"""Sums of rounded probabilities miss a round p such as 0.7 by about this much."""


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
    """The smallest set of the likeliest whose probabilities sum to at least p; all where p >= 1.

    Source: Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration" (nucleus sampling).
    """
    if p >= 1:
        return np.arange(len(logits))
    return _first_of_sum(logits, softmax(logits), p)


def keep_min_p(logits: Logits, share: float) -> Indices:
    """Those at least share times as likely as the likeliest; a share above 1 counts as 1."""
    if share <= 0:
        return np.arange(len(logits))
    return np.flatnonzero(logits >= float(logits.max()) + math.log(min(share, 1.0)))


def keep_typical(logits: Logits, p: float) -> Indices:
    """Those whose surprise is nearest to the expected one, until they sum to at least p; all where p >= 1.

    Source: Meister et al. 2023, "Locally Typical Sampling".
    """
    if p >= 1:
        return np.arange(len(logits))
    probabilities = softmax(logits)
    with np.errstate(divide="ignore"):
        surprise = -np.log(probabilities)
    preference = -np.abs(surprise - np.float32(entropy(probabilities)))
    return _first_of_sum(preference, probabilities, p)


def keep_top_n_sigma(logits: Logits, n_sigma: float) -> Indices:
    """Logits at most n_sigma standard deviations below the largest; all where n_sigma <= 0.

    Source: Tang et al. 2024, "Top-n-sigma: Not All Logits Are You Need".
    """
    if n_sigma <= 0:
        return np.arange(len(logits))
    possible = logits if np.isfinite(logits.min()) else logits[np.isfinite(logits)]
    spread = float(possible.std(dtype=np.float64))
    return np.flatnonzero(logits >= float(logits.max()) - n_sigma * spread)


def keep_xtc(logits: Logits, threshold: float) -> Indices:
    """Exclude top choices: leaves out all tokens of at least this probability but the least likely of them.

    Nothing is left out where fewer than two are so likely.  Source: the proposal of its author,
    https://github.com/oobabooga/text-generation-webui/pull/6335
    """
    probabilities = softmax(logits)
    top = np.flatnonzero((probabilities >= threshold) & (probabilities > 0))
    if len(top) < 2:
        return np.arange(len(logits))
    least = top[np.argmin(probabilities[top])]
    return np.flatnonzero((probabilities < threshold) | (np.arange(len(logits)) == least))


def entropy(probabilities: NDArray[np.float32]) -> float:
    """Expected surprise in nats."""
    possible = probabilities[probabilities > 0]
    return -float((possible * np.log(possible)).sum(dtype=np.float64))


def _first_of_sum(preference: Logits, probabilities: NDArray[np.float32], p: float) -> Indices:
    """The smallest set of the most preferred whose probabilities sum to at least p."""
    n = len(preference)
    # A full sort of a large vocabulary costs tens of milliseconds, and the set is nearly always small.
    size = min(n, 1024)
    while True:
        first = keep_top_k(preference, size)
        order = first[np.argsort(-preference[first], kind="stable")]
        sums = np.cumsum(probabilities[order], dtype=np.float64)
        if size == n or sums[-1] >= p:
            count = 1 + int(np.searchsorted(sums, p - SLACK))
            return np.sort(order[:count])
        size = min(n, size * 8)
