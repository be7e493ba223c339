"""The heap against the definition, and how its work grows."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.tokenizers.merging import merge_symbols


def slow_merge(symbols: list[str], priority: Callable[[str, str], float | None]) -> list[str]:
    symbols = list(symbols)
    while True:
        candidates = [
            (rank, at)
            for at in range(len(symbols) - 1)
            if (rank := priority(symbols[at], symbols[at + 1])) is not None
        ]
        if not candidates:
            return symbols
        _, at = min(candidates)
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]


@given(
    text=st.text(alphabet="abc", max_size=40),
    ranks=st.dictionaries(
        st.tuples(st.text("abc", min_size=1, max_size=3), st.text("abc", min_size=1, max_size=3)),
        st.integers(0, 5),
        max_size=40,
    ),
)
def test_equals_the_definition(text: str, ranks: dict[tuple[str, str], int]) -> None:
    def priority(left: str, right: str) -> int | None:
        return ranks.get((left, right))

    assert merge_symbols(text, priority) == slow_merge(list(text), priority)


@pytest.mark.parametrize("alphabet", ["x", "us", "abcdefgh"])
def test_work_grows_hardly_faster_than_the_text(alphabet: str) -> None:
    """Counted in looks at a pair, not in seconds."""

    def looks(n: int) -> int:
        count = 0

        def priority(left: str, right: str) -> int | None:
            nonlocal count
            count += 1
            return len(left) + len(right) if len(left) + len(right) <= 16 else None

        rng = random.Random(1)
        merge_symbols(rng.choices(alphabet, k=n), priority)
        return count

    assert looks(20_000) < 2.1 * looks(10_000)
    assert looks(20_000) < 10 * 20_000
