"""Both ways of merging against the definition, and how the work for long runs grows."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.tokenizers import merging
from engine.tokenizers.merging import merge_symbols


def slow_merge(symbols: list[str], ranks: Mapping[tuple[str, str], float]) -> list[str]:
    symbols = list(symbols)
    while True:
        candidates = [
            (rank, at)
            for at in range(len(symbols) - 1)
            if (rank := ranks.get((symbols[at], symbols[at + 1]))) is not None
        ]
        if not candidates:
            return symbols
        _, at = min(candidates)
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]


@pytest.mark.parametrize("short", [0, 1000])
@given(
    text=st.text(alphabet="abc", max_size=40),
    ranks=st.dictionaries(
        st.tuples(st.text("abc", min_size=1, max_size=3), st.text("abc", min_size=1, max_size=3)),
        st.integers(0, 5),
        max_size=40,
    ),
)
def test_equals_the_definition(short: int, text: str, ranks: dict[tuple[str, str], int]) -> None:
    expected = slow_merge(list(text), ranks)
    priorities = {f"{left} {right}": float(rank) for (left, right), rank in ranks.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "_SHORT", short)
        assert merge_symbols(text, priorities, " ") == expected


@pytest.mark.parametrize("short", [0, 1000])
def test_joined_texts_as_keys(short: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "_SHORT", short)
    assert merge_symbols("abcab", {"bc": 1.0, "ab": 2.0, "abc": 3.0}) == ["abc", "ab"]
    assert merge_symbols("aaa", {"aa": 1.0}) == ["aa", "a"]
    assert merge_symbols("", {}) == []
    assert merge_symbols("a", {"a": 1.0}) == ["a"]


class CountingPriorities(dict[str, float]):
    """Joins up to 16 characters; counts the looks at a pair."""

    def __init__(self, join: Callable[[str], bool]) -> None:
        super().__init__()
        self.looks = 0
        self._join = join

    def get(self, key: str, default: float = math.inf) -> float:  # type: ignore[override]
        self.looks += 1
        return float(len(key)) if self._join(key) else default


@pytest.mark.parametrize("alphabet", ["x", "us", "abcdefgh"])
def test_work_grows_hardly_faster_than_the_text(alphabet: str) -> None:
    """Counted in looks at a pair, not in seconds."""

    def looks(n: int) -> int:
        priorities = CountingPriorities(lambda key: len(key) <= 16)
        merge_symbols(random.Random(1).choices(alphabet, k=n), priorities)
        return priorities.looks

    assert looks(20_000) < 2.1 * looks(10_000)
    assert looks(20_000) < 10 * 20_000
