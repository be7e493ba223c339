"""SentencePiece-style byte-pair encoding with scores (`tokenizer.ggml.model` = llama).

Spaces are written as U+2581; characters are joined, best score first; what is no token is spelt in bytes
(T. Kudo and J. Richardson, 2018).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from engine.errors import TokenizerError
from engine.tokenizers.merging import merge_symbols
from engine.tokenizers.tokenizer import Tokenizer
from engine.tokenizers.vocabulary import TokenKind, Vocabulary

_SPACE = "\u2581"
_BYTE_TEXT = re.compile(r"<0x([0-9A-Fa-f]{2})>")


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
        self._byte_ids = self._read_byte_ids()
        normal = vocabulary.ids_of_kind(TokenKind.NORMAL, TokenKind.UNUSED)
        texts = vocabulary.texts
        self._ids = {texts[token]: token for token in normal}
        self._costs: list[float] = (-scores).tolist()
        self._word_start = self._find_word_start()

    @property
    def strips_leading_space(self) -> bool:
        return self._add_space_prefix

    def _read_byte_ids(self) -> dict[int, int]:
        ids: dict[int, int] = {}
        for token in self.vocabulary.ids_of_kind(TokenKind.BYTE):
            match = _BYTE_TEXT.fullmatch(self.vocabulary.texts[token])
            if match is None:
                raise TokenizerError(f"Token {token} is marked as a byte, but its text names none.")
            ids[int(match[1], 16)] = token
        return ids

    def _find_word_start(self) -> re.Pattern[str]:
        """Where a text may be cut without changing its ids: before a space that no token has there.

        Words can then be encoded one by one and remembered.
        """
        spaced = [text for text in self._ids if text.rfind(_SPACE) > 0]
        joined = {text[i - 1] for text in spaced for i in range(1, len(text)) if text[i] == _SPACE}
        inside = "".join(map(re.escape, sorted(joined | {_SPACE})))
        return re.compile(f"(?<=[^{inside}])(?={_SPACE})")

    def _priority(self, left: str, right: str) -> float | None:
        token = self._ids.get(left + right)
        return None if token is None else self._costs[token]

    def _encode_plain(self, text: str) -> list[int]:
        prefix = _SPACE if self._add_space_prefix else ""
        return self._encode_words(self._word_start.split(prefix + text.replace(" ", _SPACE)))

    def _encode_word(self, word: str) -> list[int]:
        ids: list[int] = []
        for symbol in merge_symbols(word, self._priority):
            token = self._ids.get(symbol)
            ids += [token] if token is not None else self._spell(symbol)
        return ids

    def _spell(self, character: str) -> list[int]:
        """A character without a token, in bytes; where the file lacks those, as the unknown token."""
        raw = character.encode()
        if all(byte in self._byte_ids for byte in raw):
            return [self._byte_ids[byte] for byte in raw]
        return [self.unk_id] if self.unk_id is not None else []

    def _plain_piece(self, token: int) -> bytes:
        text = self.vocabulary.texts[token]
        if self.vocabulary.kinds[token] == TokenKind.BYTE and (match := _BYTE_TEXT.fullmatch(text)):
            return bytes([int(match[1], 16)])
        return text.replace(_SPACE, " ").encode("utf-8", "surrogateescape")

    def _user_defined_text(self, token: int) -> str:
        return self.vocabulary.texts[token].replace(_SPACE, " ")
