"""SentencePiece-style byte-pair encoding with scores (`tokenizer.ggml.model` = llama).

Spaces are written as U+2581; characters are joined, best score first; what is no token is spelt in bytes
(T. Kudo and J. Richardson, 2018).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from engine.errors import TokenizerError
from engine.tokenizers.merging import merge_symbols
from engine.tokenizers.spaces import (
    SPACE,
    piece_with_spaces,
    read_byte_ids,
    spelt_in_bytes,
    with_spaces,
    word_starts,
)
from engine.tokenizers.tokenizer import Tokenizer
from engine.tokenizers.vocabulary import TokenKind, Vocabulary
from engine.tokenizers.word_cache import WordCache


class SentencePieceTokenizer(Tokenizer):
    """Vocabulary with scores, float32[n_tokens].

    add_space_prefix: a space is put before the text, and before each text that follows a special token.
    """

    kind = "sentence-piece"

    def __init__(
        self,
        vocabulary: Vocabulary,
        scores: NDArray[np.float32],
        *,
        pre: str,
        add_bos: bool,
        add_eos: bool,
        add_space_prefix: bool,
        warnings: Iterable[str] = (),
    ) -> None:
        super().__init__(vocabulary, pre=pre, add_bos=add_bos, add_eos=add_eos, warnings=warnings)
        if len(scores) != vocabulary.n_tokens or np.isnan(scores).any():
            raise TokenizerError(
                "The scores of the vocabulary (tokenizer.ggml.scores) are incomplete or no numbers."
            )
        self._add_space_prefix = add_space_prefix
        self._byte_ids = read_byte_ids(vocabulary)
        normal = vocabulary.ids_of_kind(TokenKind.NORMAL, TokenKind.UNUSED)
        texts = vocabulary.texts
        self._ids = {texts[token]: token for token in normal}
        costs: list[float] = (-scores).tolist()
        self._costs = {text: costs[token] for text, token in self._ids.items()}
        self._word_start = word_starts(self._ids)
        self._words = WordCache(self._encode_word)

    @property
    def strips_leading_space(self) -> bool:
        return self._add_space_prefix

    def _encode_plain(self, text: str) -> list[int]:
        prefix = SPACE if self._add_space_prefix else ""
        return self._words.encode(self._word_start.split(prefix + text.replace(" ", SPACE)))

    def _encode_word(self, word: str) -> list[int]:
        ids: list[int] = []
        for symbol in merge_symbols(word, self._costs):
            token = self._ids.get(symbol)
            ids += [token] if token is not None else spelt_in_bytes(symbol, self._byte_ids, self.unk_id)
        return ids

    def _plain_piece(self, token: int) -> bytes:
        return piece_with_spaces(self.vocabulary, token)

    def _user_defined_text(self, token: int) -> str:
        return with_spaces(self.vocabulary.texts[token])
