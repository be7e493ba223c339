"""Pairs of measurements, one of each program, made right after one another; and what they say together.

A machine's speed changes by the minute: neighbours, heat, other programs.  Two numbers of one pair saw the
same minute, so their ratio says more than either; of the ratios the median is taken, so that a disturbed pair
does not count, and the lowest and highest tell how far to trust it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Pair:
    """Two measurements of the same thing, ours and theirs, in the same unit."""

    ours: float
    theirs: float


@dataclass(frozen=True)
class Comparison:
    """Medians of both sides; median, lowest and highest of the pairs' ratios: above 1, ours is better."""

    ours: float
    theirs: float
    ratio: float
    lowest: float
    highest: float
    n_pairs: int


def compare(pairs: Sequence[Pair], *, less_is_better: bool = False) -> Comparison:
    """Raises ValueError for no pairs."""
    if not pairs:
        raise ValueError("nothing was measured")
    ratios = [pair.theirs / pair.ours if less_is_better else pair.ours / pair.theirs for pair in pairs]
    return Comparison(
        ours=statistics.median(pair.ours for pair in pairs),
        theirs=statistics.median(pair.theirs for pair in pairs),
        ratio=statistics.median(ratios),
        lowest=min(ratios),
        highest=max(ratios),
        n_pairs=len(pairs),
    )
