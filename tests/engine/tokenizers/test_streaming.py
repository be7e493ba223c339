"""Streaming equals decoding, never shows half a character, and never stalls."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.tokenizers import StreamingDetokenizer, Tokenizer, load_tokenizer
from tests.helpers.vocabularies import byte_pair_metadata, published, sentence_piece_metadata


def stream(tokenizer: Tokenizer, ids: list[int], *, continues_text: bool = False) -> list[str]:
    detokenizer = StreamingDetokenizer(tokenizer, continues_text=continues_text)
    return [*(detokenizer.push(token) for token in ids), detokenizer.finish()]


@pytest.mark.parametrize(
    "name", ["gpt-2", "llama-bpe", "llama-spm", "phi-3", "gemma-4", "bert-bge", "unigram"]
)
@pytest.mark.parametrize("continues_text", [False, True])
@given(data=st.data())
def test_joined_chunks_are_the_decoded_text(name: str, continues_text: bool, data: st.DataObject) -> None:
    tokenizer = published(name)
    ids = data.draw(st.lists(st.integers(0, tokenizer.n_tokens - 1) | st.integers(0, 260), max_size=30))
    chunks = stream(tokenizer, ids, continues_text=continues_text)
    assert "".join(chunks) == tokenizer.decode(ids, continues_text=continues_text)


@given(st.text())
def test_whole_texts_come_in_whole_characters(text: str) -> None:
    tokenizer = published("llama-spm")
    # This vocabulary writes a space as U+2581, and cannot tell the two apart.
    text = text.replace("\u2581", "")
    chunks = stream(tokenizer, tokenizer.encode(text, parse_special=False))
    assert "".join(chunks) == text
    assert chunks[-1] == ""


def test_an_unfinished_character_is_held_back() -> None:
    assert stream(published("llama-bpe"), [15722, 103]) == ["", "歪", ""]
    assert stream(published("gpt-2"), [128, 237]) == ["", "ď", ""]


def byte_ids(raw: bytes) -> list[int]:
    return [3 + byte for byte in raw]


@pytest.mark.parametrize(
    ("raw", "chunks"),
    [
        (b"\xe7\xa7\x81", ["", "", "私", ""]),
        (b"\xf0\x9f\x98\xb6", ["", "", "", "😶", ""]),
        (b"\x81a", ["\ufffd", "a", ""]),
        (b"\xf0\x9fa", ["", "", "\ufffda", ""]),
        (b"\xf0\x9f", ["", "", "\ufffd"]),
        (b"\xff\xfe", ["\ufffd", "\ufffd", ""]),
        (b"\xe6\xe6\xad\xaa", ["", "\ufffd", "", "歪", ""]),
    ],
)
def test_bytes(raw: bytes, chunks: list[str]) -> None:
    tokenizer = load_tokenizer(sentence_piece_metadata([("▁", -1.0)]))
    assert stream(tokenizer, byte_ids(raw)) == chunks
    assert "".join(chunks) == raw.decode("utf-8", "replace")


def test_spaces_of_sentence_piece() -> None:
    pieces = [("▁", -1.0), ("▁leading", -1.0), ("▁x", -1.0)]
    tokenizer = load_tokenizer(sentence_piece_metadata(pieces))
    assert stream(tokenizer, [1, 259, 260, 261]) == ["", "", " leading", " x", ""]
    assert stream(tokenizer, [260, 261]) == ["leading", " x", ""]
    assert stream(tokenizer, [260, 261], continues_text=True) == [" leading", " x", ""]


def test_byte_level_pieces_are_readable() -> None:
    tokenizer = load_tokenizer(byte_pair_metadata(["Ġ y", "Ġy o", "Ġyo u"]))
    assert stream(tokenizer, [258, 10]) == [" you", "\n", ""]
    assert stream(tokenizer, tokenizer.encode("H you\n", parse_special=False)) == ["H", " you", "\n", ""]
