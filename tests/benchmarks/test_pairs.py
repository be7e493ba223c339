"""What pairs of measurements say together."""

from __future__ import annotations

import pytest

from benchmarks.pairs import Comparison, Pair, compare


def test_the_ratio_is_the_median_of_the_pairs_ratios_and_not_the_ratio_of_medians() -> None:
    pairs = [Pair(10, 10), Pair(30, 10), Pair(8, 2)]
    assert compare(pairs) == Comparison(ours=10, theirs=10, ratio=3, lowest=1, highest=4, n_pairs=3)


def test_of_times_less_is_better() -> None:
    result = compare([Pair(2, 1), Pair(1, 4)], less_is_better=True)
    assert (result.lowest, result.ratio, result.highest) == (0.5, 2.25, 4)


def test_nothing_measured() -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        compare([])
