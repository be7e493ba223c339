"""Unigram language model (`tokenizer.ggml.model` = t5; T. Kudo, 2018).

Of all ways to cut a normalised text into tokens, the one with the best sum of scores is taken: Viterbi's
algorithm, forward over the text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from engine.errors import TokenizerError
from engine.tokenizers.character_map import CharacterMap
from engine.tokenizers.spaces import (
    SPACE,
    piece_with_spaces,
    read_byte_ids,
    spelt_in_bytes,
    with_spaces,
    word_starts,
)
from engine.tokenizers.substrings import SubstringIndex
from engine.tokenizers.tokenizer import Tokenizer
from engine.tokenizers.vocabulary import TokenKind, Vocabulary
from engine.tokenizers.word_cache import WordCache

_UNKNOWN_PENALTY = 10.0  # below the worst score; SentencePiece's number


class UnigramTokenizer(Tokenizer):
    """Vocabulary with scores, float32[n_tokens]: the logarithms of probabilities.

    character_map: how a text is normalised first.
    add_space_prefix: a space is put before the text.  remove_extra_whitespace: runs of spaces become one, and
    none is kept at either end.
    """

    kind = "unigram"

    def __init__(
        self,
        vocabulary: Vocabulary,
        scores: NDArray[np.float32],
        character_map: CharacterMap,
        *,
        pre: str,
        add_bos: bool,
        add_eos: bool,
        add_space_prefix: bool,
        remove_extra_whitespace: bool,
        warnings: Iterable[str] = (),
    ) -> None:
        super().__init__(vocabulary, pre=pre, add_bos=add_bos, add_eos=add_eos, warnings=warnings)
        if len(scores) != vocabulary.n_tokens or not np.isfinite(scores).all():
            raise TokenizerError(
                "The scores of the vocabulary (tokenizer.ggml.scores) are incomplete or no finite numbers."
            )
        if self.unk_id is None:
            raise TokenizerError("The Unigram vocabulary has no token for unknown characters.")
        self._unknown = self.unk_id
        self._character_map = character_map
        self._add_space_prefix = add_space_prefix
        self._remove_extra_whitespace = remove_extra_whitespace
        self._byte_ids = read_byte_ids(vocabulary)
        self._scores: list[float] = scores.tolist()
        normal = vocabulary.ids_of_kind(TokenKind.NORMAL)
        worst = float(scores[normal].min()) if normal else 0.0
        self._unknown_score = worst - _UNKNOWN_PENALTY
        texts = vocabulary.texts
        spellable = vocabulary.ids_of_kind(TokenKind.NORMAL, TokenKind.UNUSED)
        self._tokens = SubstringIndex({texts[token]: token for token in spellable})
        self._word_start = word_starts(self._tokens.ids)
        self._words = WordCache(self._encode_word)

    @property
    def strips_leading_space(self) -> bool:
        return self._add_space_prefix

    def _encode_plain(self, text: str) -> list[int]:
        ids = self._words.encode(self._word_start.split(self._normalise(text)))
        return self._join_unknown(ids)

    def _normalise(self, text: str) -> str:
        text = self._character_map.normalise(text)
        if self._remove_extra_whitespace:
            text = " ".join(filter(None, text.split(" ")))
        if text and self._add_space_prefix:
            text = " " + text
        return text.replace(" ", SPACE)

    def _encode_word(self, word: str) -> list[int]:
        if not word:
            return []
        n = len(word)
        best = [-math.inf] * (n + 1)
        best[0] = 0.0
        # How the best way to each position got there: the token and where it began.
        came_by = [(self._unknown, 0)] * (n + 1)
        for start in range(n):
            length = 0
            for token, length in self._tokens.beginning_at(word, start):
                score = best[start] + self._scores[token]
                if score > best[start + length]:
                    best[start + length] = score
                    came_by[start + length] = (token, start)
            if length != 1:  # no token for this character alone
                score = best[start] + self._unknown_score
                if score > best[start + 1]:
                    best[start + 1] = score
                    came_by[start + 1] = (self._unknown, start)
        ids: list[int] = []
        end = n
        while end:
            token, start = came_by[end]
            ids += reversed(self._spell(word[start:end])) if token == self._unknown else [token]
            end = start
        return ids[::-1]

    def _spell(self, text: str) -> list[int]:
        """What stands for a character without a token: its bytes where the vocabulary has them."""
        return spelt_in_bytes(text, self._byte_ids, self._unknown)

    def _join_unknown(self, ids: list[int]) -> list[int]:
        """Neighbouring unknown characters are one unknown token."""
        unknown = self._unknown
        if unknown not in ids:
            return ids
        return [
            token for at, token in enumerate(ids) if not (token == unknown and at and ids[at - 1] == unknown)
        ]

    def _plain_piece(self, token: int) -> bytes:
        return piece_with_spaces(self.vocabulary, token)

    def _user_defined_text(self, token: int) -> str:
        return with_spaces(self.vocabulary.texts[token])
