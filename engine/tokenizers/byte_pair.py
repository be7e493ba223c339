"""Byte-pair encoding with merges in order of rank (R. Sennrich et al., 2016; A. Radford et al., 2019).

A text is split into words; in each, pairs of symbols are joined in the order in which they were learnt.  Most
models begin with the bytes of a word, each written as one visible character (`tokenizer.ggml.model` = gpt2);
Gemma 4 begins with its characters, spaces written as U+2581 (= gemma4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from engine.tokenizers.merging import merge_symbols
from engine.tokenizers.pretokenize import PreTokenizer, Splitter
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


def visible(text: str) -> str:
    """The UTF-8 bytes of text, each as its visible character."""
    return text.encode().decode("latin-1").translate(_TO_VISIBLE)


class BytePairTokenizer(Tokenizer):
    """Byte-level vocabulary with merges, each "left right", in order of rank."""

    kind = "byte-pair"
    _spellable: tuple[TokenKind, ...] = (TokenKind.NORMAL, TokenKind.UNUSED, TokenKind.BYTE)

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
        self._rule = rule
        # No symbol holds a space, so "left right" names a pair without doubt; of equal ones the first counts.
        ranks = range(len(merges) - 1, -1, -1)
        self._ranks = dict(zip(reversed(merges), ranks, strict=True))
        texts = vocabulary.texts
        self._ids = {texts[token]: token for token in vocabulary.ids_of_kind(*self._spellable)}
        self._encode_plain_text = self._encoder_by_steps()

    def _encoder_by_steps(self) -> Callable[[str], list[int]]:
        """From a text to its ids, remembering after every step what became of a fragment.

        A fragment that comes again then costs one look-up, whatever steps are still to be done to it.
        """
        encode: Callable[[str], list[int]] = self._encode_word
        for splitter in reversed(self._splitters()):
            encode = _after(splitter, WordCache(encode))
        return encode

    def _splitters(self) -> tuple[Splitter, ...]:
        return self._rule.splitters

    def _encode_plain(self, text: str) -> list[int]:
        return self._encode_plain_text(text)

    def _encode_word(self, word: str) -> list[int]:
        symbols = visible(word)
        if self._rule.ignore_merges and symbols in self._ids:
            return [self._ids[symbols]]
        ids: list[int] = []
        for symbol in merge_symbols(symbols, self._ranks, " "):
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


class SpacedBytePairTokenizer(BytePairTokenizer):
    """Vocabulary of text as it is, with spaces as U+2581 and bytes `<0xNN>` for what has no token."""

    _spellable = (TokenKind.NORMAL, TokenKind.UNUSED)

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
        self._byte_ids = read_byte_ids(vocabulary)
        # A merge "left \u2581..." is the only way for a space to get behind another character.
        crossing = [merge for merge in merges if f" {SPACE}" in merge]
        self._word_start = word_starts(merge.replace(" ", "") for merge in crossing)
        super().__init__(
            vocabulary, merges, rule, pre=pre, add_bos=add_bos, add_eos=add_eos, warnings=warnings
        )

    def _splitters(self) -> tuple[Splitter, ...]:
        return (*self._rule.splitters, self._word_start.split)

    def _encode_plain(self, text: str) -> list[int]:
        return self._encode_plain_text(text.replace(" ", SPACE))

    def _encode_word(self, word: str) -> list[int]:
        # A run of line breaks that is a token is taken whole: the merges do not lead to all of them.
        if word in self._ids and not word.strip("\n"):
            return [self._ids[word]]
        ids: list[int] = []
        for symbol in merge_symbols(word, self._ranks, " "):
            token = self._ids.get(symbol)
            ids += [token] if token is not None else spelt_in_bytes(symbol, self._byte_ids, self.unk_id)
        return ids

    def _plain_piece(self, token: int) -> bytes:
        return piece_with_spaces(self.vocabulary, token)

    def _user_defined_text(self, token: int) -> str:
        return with_spaces(self.vocabulary.texts[token])


def _after(splitter: Splitter, words: WordCache) -> Callable[[str], list[int]]:
    return lambda text: words.encode(splitter(text))
