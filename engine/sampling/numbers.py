"""Logits that are no numbers, and probabilities of those that are.

NaN counts as minus infinity, one plus infinity is certain, and where nothing is left an error says so.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from engine.errors import InvalidNumbersError, NoAllowedTokenError

Logits = NDArray[np.float32]
Indices = NDArray[np.intp]

GREEDY_BELOW = 1e-4
"""Temperatures up to this are greedy: the likeliest token, the lowest id on ties."""


def sound_logits(logits: Logits) -> Logits:
    """The logits of a model themselves where sound, else a copy without NaN whose largest is finite.

    Raises `InvalidNumbersError` where no logit is a number, or several are plus infinity.
    """
    if np.isfinite(logits.max()):
        return logits
    if np.count_nonzero(logits == np.inf) > 1:
        raise InvalidNumbersError("The model produced invalid numbers.")
    numbers = _infinity_certain(logits)
    if numbers is None:
        raise InvalidNumbersError("The model produced invalid numbers.")
    return numbers


def possible_logits(logits: Logits) -> Logits:
    """The same for logits to which settings were applied.

    Raises `NoAllowedTokenError` where none is possible.
    """
    if np.isfinite(logits.max()):
        return logits
    numbers = _infinity_certain(logits)
    if numbers is None:
        raise NoAllowedTokenError("No token may follow: everything is ruled out.")
    return numbers


def _infinity_certain(logits: Logits) -> Logits | None:
    """Plus infinity becomes 0 and all else minus infinity, as NaN does anyway; None where nothing is left."""
    numbers = np.where(np.isnan(logits), np.float32(-np.inf), logits)
    largest = numbers.max()
    if largest == -np.inf:
        return None
    if largest == np.inf:
        return np.where(numbers == np.inf, np.float32(0), np.float32(-np.inf))
    return numbers


def softmax(logits: Logits) -> NDArray[np.float32]:
    """float32[n] probabilities of float32[n] logits, of which the largest is finite."""
    return at_temperature(logits, 1.0)


def at_temperature(logits: Logits, temperature: float) -> NDArray[np.float32]:
    """float32[n] probabilities at a temperature; `GREEDY_BELOW` and less: 1 for the first of the largest."""
    if temperature <= GREEDY_BELOW:
        probabilities = np.zeros(len(logits), np.float32)
        probabilities[np.argmax(logits)] = 1
        return probabilities
    weights: NDArray[np.float32] = logits - logits.max()
    if temperature != 1:
        # A huge temperature makes all alike, but must not become infinity in single precision.
        weights /= np.float32(min(temperature, 1e30))
    np.exp(weights, out=weights)
    weights /= np.float32(weights.sum(dtype=np.float64))
    return weights


def log_probability(logits: Logits, token: int) -> float:
    """Natural logarithm of the probability of one token at temperature 1."""
    largest = logits.max()
    total = float(np.exp(logits - largest).sum(dtype=np.float64))
    return float(logits[token] - largest) - math.log(total)
