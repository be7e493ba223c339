"""The tokens before the next one as an array, which grows with the text instead of being made anew."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class TokenHistory:
    """Follows one growing list of tokens."""

    def __init__(self) -> None:
        self._tokens = np.empty(1024, np.int64)
        self._length = 0

    def follow(self, history: Sequence[int]) -> NDArray[np.int64]:
        """int64[len(history)] with the same tokens; only what is new since the last call is copied.

        A history that does not end as the last one did at that place is taken as another text.
        """
        known = self._length
        if known > len(history) or (known and history[known - 1] != self._tokens[known - 1]):
            known = 0
        if len(history) > len(self._tokens):
            self._tokens = np.concatenate(
                [self._tokens[:known], np.empty(2 * len(history) - known, np.int64)]
            )
        self._tokens[known : len(history)] = history[known:]
        self._length = len(history)
        return self._tokens[: self._length]
