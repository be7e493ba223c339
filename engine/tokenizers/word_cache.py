"""Ids of words that come again: most words of a text do, and a look-up is far quicker than encoding."""

from __future__ import annotations

from collections.abc import Callable, Iterable

_CAPACITY = 50_000
_LONGEST_WORD = 64


class WordCache:
    """Remembers what encode_word gave for words that are encoded each by itself.

    At most 50,000 words of at most 64 characters; a full cache starts anew.
    """

    def __init__(self, encode_word: Callable[[str], list[int]]) -> None:
        self._encode_word = encode_word
        self._known: dict[str, list[int]] = {}

    def encode(self, words: Iterable[str]) -> list[int]:
        """The ids of words, one word's after the other's."""
        ids: list[int] = []
        known = self._known.get
        for word in words:
            found = known(word)
            ids += self._add(word) if found is None else found
        return ids

    def _add(self, word: str) -> list[int]:
        ids = self._encode_word(word)
        if len(word) <= _LONGEST_WORD:
            if len(self._known) >= _CAPACITY:
                self._known.clear()
            self._known[word] = ids
        return ids
