"""Which tokens begin at a place of a text, without trying every length."""

from __future__ import annotations

from collections.abc import Mapping


class SubstringIndex:
    """Looks up the tokens that begin at a position.

    Those of one and two characters are tried; of the others, only the lengths that tokens with the same three
    first characters have.
    ids: text to token id; empty texts are passed over.
    """

    def __init__(self, ids: Mapping[str, int]) -> None:
        self.ids = ids
        lengths: dict[str, set[int]] = {}
        for text in ids:
            if len(text) > 2:
                lengths.setdefault(text[:3], set()).add(len(text))
        self._lengths = {start: sorted(found, reverse=True) for start, found in lengths.items()}

    def longest(self, text: str, position: int) -> tuple[int, int] | None:
        """(id, length) of the longest token that begins there."""
        found = self.beginning_at(text, position)
        return found[0] if found else None

    def beginning_at(self, text: str, position: int) -> list[tuple[int, int]]:
        """(id, length) of every token that begins there, the longest first."""
        find = self.ids.get
        left = len(text) - position
        found: list[tuple[int, int]] = []
        for length in self._lengths.get(text[position : position + 3], ()):
            # Behind the end a slice is shorter, and would be found as another token.
            if length <= left and (token := find(text[position : position + length])) is not None:
                found.append((token, length))
        if left > 1 and (token := find(text[position : position + 2])) is not None:
            found.append((token, 2))
        if (token := find(text[position])) is not None:
            found.append((token, 1))
        return found
