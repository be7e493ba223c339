"""Ranges of code points as sequences of byte ranges, which is how UTF-8 writes them (RFC 3629)."""

from __future__ import annotations

from collections.abc import Iterator

from engine.grammar.expressions import SURROGATES, Range

_LAST_OF_LENGTH = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)


def byte_ranges(first: int, last: int) -> Iterator[tuple[Range, ...]]:
    """Sequences of byte ranges: together exactly the code points first to last, surrogates left out."""
    for low, high in _without_surrogates(first, last):
        for border in _LAST_OF_LENGTH:
            if low > high:
                break
            if low <= border:
                yield from _of_equal_length(low, min(high, border))
                low = border + 1


def _without_surrogates(first: int, last: int) -> Iterator[Range]:
    before, after = (first, min(last, SURROGATES[0] - 1)), (max(first, SURROGATES[1] + 1), last)
    yield from (part for part in (before, after) if part[0] <= part[1])


def _of_equal_length(first: int, last: int) -> Iterator[tuple[Range, ...]]:
    """For code points whose forms have the same number of bytes."""
    low, high = chr(first).encode(), chr(last).encode()
    # The last bytes that vary freely below a common beginning make one sequence; else split there.
    for n_free in range(len(low) - 1, 0, -1):
        step = 1 << 6 * n_free
        if first // step != last // step:
            if first % step:
                border = first - first % step + step - 1
                yield from _of_equal_length(first, border)
                yield from _of_equal_length(border + 1, last)
                return
            if (last + 1) % step:
                border = last - last % step - 1
                yield from _of_equal_length(first, border)
                yield from _of_equal_length(border + 1, last)
                return
    yield tuple(zip(low, high, strict=True))
