"""Cutting tokens out of a text that are never spelt by the vocabulary's own rules."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence


class SpecialTokenMatcher:
    """Finds given texts in a longer text: leftmost first, the longest of those that begin there."""

    def __init__(self, ids: Mapping[str, int]) -> None:
        self.ids = {text: token for text, token in ids.items() if text}
        lengths: dict[str, set[int]] = {}
        for text in self.ids:
            lengths.setdefault(text[0], set()).add(len(text))
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}
        firsts = "".join(re.escape(first) for first in sorted(lengths))
        self._first = re.compile(f"[{firsts}]") if firsts else None

    def find(self, text: str, barred: Sequence[tuple[int, int]] = ()) -> Iterator[tuple[int, int, int]]:
        """(start, end, id) of every match, in order; a match that touches a barred span is passed over.

        barred: non-overlapping (start, end) spans in order.
        """
        if self._first is None:
            return
        starts = [start for start, _ in barred]
        position = 0
        while candidate := self._first.search(text, position):
            start = candidate.start()
            position = start + 1
            for length in self._lengths[text[start]]:
                end = start + length
                token = self.ids.get(text[start:end])
                if token is not None and end <= len(text):
                    index = bisect_right(starts, end - 1) - 1
                    if index >= 0 and barred[index][1] > start:
                        continue
                    yield start, end, token
                    position = end
                    break
