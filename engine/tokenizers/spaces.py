"""What SentencePiece-style vocabularies share: spaces written as U+2581, and bytes as `<0xNN>`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from engine.errors import TokenizerError
from engine.tokenizers.vocabulary import TokenKind, Vocabulary

SPACE = "\u2581"
_BYTE_TEXT = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def read_byte_ids(vocabulary: Vocabulary) -> dict[int, int]:
    """The id of the token of each byte that has one.  TokenizerError: a byte token whose text names none."""
    ids: dict[int, int] = {}
    for token in vocabulary.ids_of_kind(TokenKind.BYTE):
        match = _BYTE_TEXT.fullmatch(vocabulary.texts[token])
        if match is None:
            raise TokenizerError(f"Token {token} is marked as a byte, but its text names none.")
        ids[int(match[1], 16)] = token
    return ids


def spelt_in_bytes(text: str, byte_ids: dict[int, int], unk_id: int | None) -> list[int]:
    """A text without a token, in bytes; where the file lacks one of those, as the unknown token."""
    raw = text.encode()
    if all(byte in byte_ids for byte in raw):
        return [byte_ids[byte] for byte in raw]
    return [unk_id] if unk_id is not None else []


def piece_with_spaces(vocabulary: Vocabulary, token: int) -> bytes:
    """The bytes of an ordinary token or of a byte token."""
    text = vocabulary.texts[token]
    if vocabulary.kinds[token] == TokenKind.BYTE and (match := _BYTE_TEXT.fullmatch(text)):
        return bytes([int(match[1], 16)])
    return with_spaces(text).encode("utf-8", "surrogateescape")


def with_spaces(text: str) -> str:
    return text.replace(SPACE, " ")


def word_starts(joined: Iterable[str]) -> re.Pattern[str]:
    """Where a text may be cut without changing its ids: before a space that no token has there.

    joined: every text that can come about by joining and may hold a space behind another character.
    Words can then be encoded one by one and remembered.
    """
    spaced = [text for text in joined if text.rfind(SPACE) > 0]
    before = {text[i - 1] for text in spaced for i in range(1, len(text)) if text[i] == SPACE}
    inside = "".join(map(re.escape, sorted(before | {SPACE})))
    return re.compile(f"(?<=[^{inside}])(?={SPACE})")
