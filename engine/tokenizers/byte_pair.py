"""Byte-level byte-pair encoding, as in GPT-2 and most models since (`tokenizer.ggml.model` = gpt2).

A text is split into words, each word into its UTF-8 bytes, every byte written as one visible character; then
pairs are joined in the order in which they were learnt (R. Sennrich et al., 2016; A. Radford et al., 2019).
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.errors import TokenizerError
from engine.tokenizers.merging import merge_symbols
from engine.tokenizers.pretokenize import PreTokenizer
from engine.tokenizers.tokenizer import Tokenizer
from engine.tokenizers.vocabulary import TokenKind, Vocabulary


def _visible_bytes() -> list[str]:
    """The character that stands for each byte: itself where it prints, else one from U+0100 on."""
    printing = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(256) if byte not in printing)
    shifted = {byte: 0x100 + index for index, byte in enumerate(others)}
    return [chr(shifted.get(byte, byte)) for byte in range(256)]


_CHARACTER_OF_BYTE = _visible_bytes()
# For str.translate on a text read as Latin-1, where code point and byte are the same number.
_TO_VISIBLE = dict(enumerate(_CHARACTER_OF_BYTE))
_BYTE_OF_CHARACTER = {character: bytes([byte]) for byte, character in enumerate(_CHARACTER_OF_BYTE)}


class BytePairTokenizer(Tokenizer):
    """Byte-level vocabulary with merges, each "left right", in order of rank."""

    kind = "byte-pair"

    def __init__(
        self,
        vocabulary: Vocabulary,
        merges: list[str],
        rule: PreTokenizer,
        *,
        pre: str,
        add_bos: bool,
        add_eos: bool,
        warnings: Iterable[str] = (),
    ) -> None:
        super().__init__(vocabulary, pre=pre, add_bos=add_bos, add_eos=add_eos, warnings=warnings)
        if not merges:
            raise TokenizerError(
                "The file lists no merges (tokenizer.ggml.merges), so words cannot be put together."
            )
        self._rule = rule
        # No symbol holds a space, so "left right" names a pair without doubt.
        self._ranks = {merge: rank for rank, merge in enumerate(merges)}
        spellable = (TokenKind.NORMAL, TokenKind.UNUSED, TokenKind.BYTE)
        texts = vocabulary.texts
        self._ids = {texts[token]: token for token in vocabulary.ids_of_kind(*spellable)}

    def _priority(self, left: str, right: str) -> int | None:
        return self._ranks.get(f"{left} {right}")

    def _encode_plain(self, text: str) -> list[int]:
        return self._encode_words(self._rule.split(text))

    def _encode_word(self, word: str) -> list[int]:
        visible = word.encode().decode("latin-1").translate(_TO_VISIBLE)
        if self._rule.ignore_merges and visible in self._ids:
            return [self._ids[visible]]
        ids: list[int] = []
        for symbol in merge_symbols(visible, self._priority):
            token = self._ids.get(symbol)
            # A joined symbol that is no token is spelt byte by byte.  A byte without a token is left out, as
            # llama.cpp does: it was not in the training text, and the unknown token may be a control token.
            ids += [token] if token is not None else [self._ids[c] for c in symbol if c in self._ids]
        return ids

    def _plain_piece(self, token: int) -> bytes:
        text = self.vocabulary.texts[token]
        return b"".join(
            _BYTE_OF_CHARACTER.get(character) or character.encode("utf-8", "surrogateescape")
            for character in text
        )
