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
        seconds: dict[str, set[str]] = {}
        for text in self.ids:
            lengths.setdefault(text[0], set()).add(len(text))
            seconds.setdefault(text[0], set()).add(text[1:2])
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}
        self._start = _beginnings(seconds) if seconds else None

    def find(self, text: str, barred: Sequence[tuple[int, int]] = ()) -> Iterator[tuple[int, int, int]]:
        """(start, end, id) of every match, in order; a match that touches a barred span is passed over.

        barred: non-overlapping (start, end) spans in order.
        """
        if self._start is None:
            return
        starts = [start for start, _ in barred]
        position = 0
        while candidate := self._start.search(text, position):
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


def _beginnings(seconds: Mapping[str, set[str]]) -> re.Pattern[str]:
    """Matches where a text may begin, by its first two characters: a space alone begins too many.

    seconds: for each first character those that may follow it; "" where nothing has to.
    """
    alone = "".join(re.escape(first) for first, found in seconds.items() if "" in found)
    followed: dict[str, str] = {}
    for first, found in seconds.items():
        if "" not in found:
            behind = "".join(map(re.escape, sorted(found)))
            followed[behind] = followed.get(behind, "") + re.escape(first)
    ways = [f"[{alone}]"] if alone else []
    ways += [f"[{firsts}](?=[{behind}])" for behind, firsts in followed.items()]
    return re.compile("|".join(ways))
