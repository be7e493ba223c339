"""SentencePiece's table of characters: a published one, one built here, and damaged ones."""

from __future__ import annotations

import struct
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import TokenizerError
from engine.tokenizers.character_map import CharacterMap
from tests.helpers.vocabularies import published_metadata


def published_bytes() -> bytes:
    """The table that goes with NFKC, from the vocabulary trained for these tests."""
    raw: bytes = published_metadata("unigram").values["tokenizer.ggml.precompiled_charsmap"].value.tobytes()
    return raw


NFKC = CharacterMap(published_bytes())


def built(replacements: dict[str, str]) -> bytes:
    """A table with these replacements: each node's children lie in a block of 256 units of their own."""
    strings = b""
    children: dict[bytes, set[int]] = {b"": set()}
    values: dict[bytes, int] = {}
    for key, replacement in replacements.items():
        raw = key.encode()
        for length in range(len(raw)):
            children.setdefault(raw[:length], set()).add(raw[length])
        children.setdefault(raw, set())
        values[raw] = len(strings)
        strings += replacement.encode() + b"\0"
    blocks = {prefix: 256 * (1 + index) for index, prefix in enumerate(children)}
    units = [0] * (256 * (len(blocks) + 1))

    def unit(prefix: bytes, place: int) -> int:
        distance = place ^ blocks[prefix]  # below 2**21 here, so that it needs no shift
        return distance << 10 | (prefix in values) << 8 | (prefix[-1] if prefix else 0)

    units[0] = unit(b"", 0)
    for prefix, labels in children.items():
        for label in labels:
            place = blocks[prefix] ^ label
            units[place] = unit(prefix + bytes([label]), place)
        if prefix in values:
            units[blocks[prefix]] = 1 << 31 | values[prefix]
    return struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + strings


def test_longest_key_first_from_the_left() -> None:
    table = CharacterMap(built({"a": "1", "ab": "2", "abc": "3", "é": "e", "日本": "J", "z": ""}))
    assert table.normalise("abcabaxbcé日日本z.") == "321xbce日J."
    assert table.normalise("") == ""
    assert table.normalise("日") == "日"
    assert table.normalise("ab") == "2"


def test_no_table_changes_nothing() -> None:
    assert CharacterMap(b"").normalise("aé ①") == "aé ①"


@given(st.text(alphabet=st.characters(max_codepoint=0x2FF, exclude_categories=("Cc", "Cf", "Zs"))))
def test_the_published_table_is_nfkc(text: str) -> None:
    """Spaces and control characters aside, which it treats in its own way."""
    assert NFKC.normalise(text) == unicodedata.normalize("NFKC", text)


def test_the_published_table_on_spaces_and_sequences() -> None:
    assert NFKC.normalise("e\u0301 ① ﬁ\t\n\u3000x\u200b㌖ ｶﾞ\x01") == "é 1 fi   x キロメートル ガ"


@pytest.mark.parametrize(
    "raw",
    [
        b"\0",
        b"\0\0\0\0",
        struct.pack("<I", 4),
        struct.pack("<II", 4, 0),
        struct.pack("<II", 0, 0) + b"a\0",
        struct.pack("<II", 3, 0) + b"a\0",
        struct.pack("<II", 2**32 - 4, 0) + b"a\0",
        struct.pack("<II", 4, 0) + b"no end",
        built({"a": "b"})[:-1],
        # A value that points behind the trie, and one that points behind the replacements.
        struct.pack("<II", 4, 1 << 8 | 0xFFFF << 10) + b"a\0",
        built({"a": "b"}).replace(struct.pack("<I", 1 << 31), struct.pack("<I", 1 << 31 | 99)),
    ],
)
def test_damaged_tables_are_refused(raw: bytes) -> None:
    with pytest.raises(TokenizerError, match="table of characters is damaged"):
        CharacterMap(raw)


def test_a_loop_in_the_trie_ends() -> None:
    # One block in which every unit for "a" leads back to the same block.
    units = [0] * 512
    units[0] = 256 << 10
    units[256 ^ 0x61] = 0x61 << 10 | 0x61
    raw = struct.pack("<I512I", 2048, *units) + b"\0"
    assert CharacterMap(raw).normalise("a" * 10_000) == "a" * 10_000


@given(st.data())
def test_changed_bytes_are_refused_or_give_some_text(data: st.DataObject) -> None:
    raw = bytearray(built({"a": "1", "ab": "2", "é": "e", "日本": "J"}))
    for _ in range(data.draw(st.integers(1, 20))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)))
    try:
        table = CharacterMap(bytes(raw[:cut]))
    except TokenizerError:
        return
    assert isinstance(table.normalise("abab é 日本 aaab" * 3), str)
