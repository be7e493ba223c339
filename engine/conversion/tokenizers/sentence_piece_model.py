"""Reads SentencePiece models (``tokenizer.model``): pieces with scores, and how text is prepared.

The file is a protocol buffer; fields and defaults are those of the public ``sentencepiece_model.proto``.  Its
few rules (varints, lengths, four kinds of fields) are read here: a library would need a compiled schema.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.conversion.tokenizers.token_table import MAX_TOKENS, SPACE, TokenTable
from engine.errors import TokenizerError
from engine.tokenizers.vocabulary import TokenKind

MAX_BYTES = 256 << 20

PIECES, TRAINER, NORMALIZER = 1, 2, 3
PIECE_TEXT, PIECE_SCORE, PIECE_KIND = 1, 2, 3
TRAINER_KIND = 3
CHARSMAP, DUMMY_PREFIX, EXTRA_SPACES = 2, 3, 4
UNIGRAM, BYTE_PAIRS = 1, 2

Field = int | bytes


@dataclass
class _Model:
    pieces: list[tuple[str, float, int]] = field(default_factory=list)
    kind: int = UNIGRAM
    charsmap: bytes = b""
    dummy_prefix: bool = True
    remove_extra_spaces: bool = True


def read_sentence_piece(path: Path) -> TokenTable:
    """Byte pairs become the kind "llama", unigrams "t5".

    Raises `TokenizerError` for what is no such file, and for kinds of models that no reader knows.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise TokenizerError(f"{path.name} has more than {MAX_BYTES:,} bytes.")
        raw = path.read_bytes()
    except OSError as error:
        raise TokenizerError(f"{path.name} cannot be read: {error.strerror or error}.") from error
    try:
        model = _parse(raw)
    except (ValueError, struct.error) as error:
        raise TokenizerError(f"{path.name} is no SentencePiece model ({error}).") from error
    if not model.pieces or model.kind not in (UNIGRAM, BYTE_PAIRS):
        raise TokenizerError(f"{path.name} holds no byte pairs and no unigrams.")
    return _table(model)


def _table(model: _Model) -> TokenTable:
    kinds = [TokenKind(kind) for _, _, kind in model.pieces]
    texts = [
        text.replace(SPACE, " ") if kind is TokenKind.USER_DEFINED else text
        for (text, _, _), kind in zip(model.pieces, kinds, strict=True)
    ]
    table = TokenTable("llama", texts, kinds, [score for _, score, _ in model.pieces])
    table.others["tokenizer.ggml.add_space_prefix"] = model.dummy_prefix
    if model.kind == UNIGRAM:
        table.model = "t5"
        table.others["tokenizer.ggml.remove_extra_whitespaces"] = model.remove_extra_spaces
        if model.charsmap:
            table.others["tokenizer.ggml.precompiled_charsmap"] = charsmap_array(model.charsmap)
    else:
        table.others["tokenizer.ggml.pre"] = "default"
    return table


def charsmap_array(raw: bytes) -> NDArray[np.uint8]:
    """uint8[bytes], as the metadata holds it."""
    return np.frombuffer(raw, np.uint8)


def _parse(raw: bytes) -> _Model:
    model = _Model()
    for number, value in _fields(raw):
        if number == PIECES and isinstance(value, bytes):
            if len(model.pieces) >= MAX_TOKENS:
                raise ValueError("too many pieces")
            model.pieces.append(_piece(value))
        elif number == TRAINER and isinstance(value, bytes):
            model.kind = next(
                (v for n, v in _fields(value) if n == TRAINER_KIND and isinstance(v, int)), UNIGRAM
            )
        elif number == NORMALIZER and isinstance(value, bytes):
            for part, setting in _fields(value):
                if part == CHARSMAP and isinstance(setting, bytes):
                    model.charsmap = setting
                elif part == DUMMY_PREFIX:
                    model.dummy_prefix = bool(setting)
                elif part == EXTRA_SPACES:
                    model.remove_extra_spaces = bool(setting)
    return model


def _piece(raw: bytes) -> tuple[str, float, int]:
    text, score, kind = "", 0.0, int(TokenKind.NORMAL)
    for number, value in _fields(raw):
        if number == PIECE_TEXT and isinstance(value, bytes):
            text = value.decode("utf-8")
        elif number == PIECE_SCORE and isinstance(value, bytes):
            (score,) = struct.unpack("<f", value)
        elif number == PIECE_KIND and isinstance(value, int):
            kind = value
    TokenKind(kind)  # the numbers are the same; another is a ValueError
    return text, score, kind


def _fields(raw: bytes) -> Iterator[tuple[int, Field]]:
    """Number and value of each field: an integer, or bytes for texts, messages and fixed sizes."""
    position = 0
    while position < len(raw):
        key, position = _varint(raw, position)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise ValueError("a field without a number")
        if wire == 0:
            value, position = _varint(raw, position)
            yield number, value
            continue
        if wire == 2:
            length, position = _varint(raw, position)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise ValueError(f"a field of kind {wire}")
        if length > len(raw) - position:
            raise ValueError("a field reaches beyond the end")
        yield number, raw[position : position + length]
        position += length


def _varint(raw: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(raw):
            raise ValueError("it ends within a number")
        byte = raw[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError("a number of more than 64 bits")
