"""Where a grammar allows some tokens only: which of them a sampler has to look at.

A grammar tells quickly whether one token may come, but not all that may: there are tens of thousands inside a
text.  A sampler that draws from the k likeliest needs no more than these, so it asks from the likeliest on.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.sampling.filters import keep_top_k
from engine.sampling.numbers import Indices, Logits

MOST_ASKED = 256
"""Tokens: asking for more takes longer than working out all that may come."""

MOST_REFUSED = 24
"""Of the likeliest: where as many may not come, few others may, and all of them are found quickly."""


class AllowedTokens(Protocol):
    """allows: whether a token may come.  allowed: bool[vocabulary], the same for all."""

    def allows(self, token: int) -> bool: ...
    def allowed(self) -> NDArray[np.bool_]: ...


def allowed_places(logits: Logits, allowed: AllowedTokens | NDArray[np.bool_], k: int) -> Indices:
    """The tokens that are allowed, ascending; if k > 0, only the k likeliest where that is quicker.

    logits: float32[vocabulary] without NaN.  The k likeliest are what `keep_top_k` keeps of all allowed.
    """
    if isinstance(allowed, np.ndarray):
        return np.flatnonzero(allowed)
    likeliest = _likeliest(logits, allowed, k) if k > 0 else None
    return np.flatnonzero(allowed.allowed()) if likeliest is None else likeliest


def _likeliest(logits: Logits, allowed: AllowedTokens, k: int) -> Indices | None:
    """None where they are not among the first that are asked for."""
    n_asked = 2 * k + 16
    if n_asked > min(MOST_ASKED, len(logits) - 1):
        return None
    asked = keep_top_k(logits, n_asked)
    order = asked[np.argsort(-logits[asked], kind="stable")]
    # Others may be as likely as the last: which of those come first is not known here.
    last = logits[order[-1]]
    found: list[int] = []
    n_refused = 0
    for token in order.tolist():
        if logits[token] <= last:
            return None
        if allowed.allows(token):
            found.append(token)
            if len(found) == k:
                return np.sort(np.array(found, np.intp))
        else:
            n_refused += 1
            if n_refused > MOST_REFUSED:
                return None
    return None
