"""Mirostat, version 2: keeps the surprise of the text near a target by cutting off what is too surprising.

Source: Basu et al. 2021, "Mirostat: A Neural Text Decoding Algorithm that Directly Controls Perplexity",
algorithm 2.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from engine.sampling.numbers import Indices


class Mirostat:
    """The running limit of one reply.

    tau, limit: in bits.  eta: share of the error that is corrected at each token.
    """

    def __init__(self, tau: float, eta: float) -> None:
        self._tau = tau
        self._eta = eta
        self.limit = 2 * tau

    def keep(self, probabilities: NDArray[np.float32]) -> Indices:
        """Indices of tokens that surprise by no more than the limit; the likeliest where all do."""
        kept = np.flatnonzero(probabilities >= 2.0 ** -min(max(self.limit, 0.0), 1000.0))
        return kept if len(kept) else np.array([np.argmax(probabilities)])

    def observe(self, probability: float) -> None:
        """Takes the probability, among those kept, of the token that was drawn."""
        surprise = -math.log2(max(probability, 1e-300))
        self.limit -= self._eta * (surprise - self._tau)
