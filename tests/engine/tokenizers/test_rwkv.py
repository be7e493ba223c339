"""RWKV: the longest token at each byte, and texts written with escapes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.tokenizers import load_tokenizer
from tests.helpers.vocabularies import CONTROL, NORMAL, made_up_metadata

BYTES = [repr(bytes([byte]))[2:-1] for byte in range(256)]
WORDS = ["ab", "abc", " the", repr("日".encode())[2:-1], r"\n\n", r"\\x", "[PAD]"]
METADATA = made_up_metadata(
    model="rwkv",
    tokens=["<s>", *BYTES, *WORDS],
    token_type=[CONTROL] + [NORMAL] * 256 + [NORMAL] * (len(WORDS) - 1) + [5],
    bos_token_id=0,
)


def test_the_longest_token_first() -> None:
    tokenizer = load_tokenizer(METADATA)
    assert tokenizer.encode("abcab", parse_special=False) == [258, 257]
    assert tokenizer.encode("a the日é", parse_special=False) == [1 + 97, 259, 260, 1 + 0xC3, 1 + 0xA9]
    assert tokenizer.encode("\n\n\\x\t", parse_special=False) == [261, 262, 1 + 9]
    assert tokenizer.encode("<s>a", parse_special=True) == [0, 1 + 97]
    assert 0 not in tokenizer.encode("<s>", parse_special=False)


def test_pieces_are_bytes() -> None:
    tokenizer = load_tokenizer(METADATA)
    assert [tokenizer.piece(1 + byte) for byte in range(256)] == [bytes([byte]) for byte in range(256)]
    assert tokenizer.piece(260) == "日".encode()


@given(st.text(alphabet="abc the日\n\\x[PAD]é"))
def test_decoding_gives_the_text_back(text: str) -> None:
    tokenizer = load_tokenizer(METADATA)
    assert tokenizer.decode(tokenizer.encode(text, parse_special=False)) == text


def test_bytes_without_a_token_become_the_unknown_one_or_nothing() -> None:
    small = {"model": "rwkv", "tokens": ["<unk>", "a"], "token_type": [2, 1]}
    assert load_tokenizer(made_up_metadata(**small)).encode("aba", parse_special=False) == [1, 1]
    known = load_tokenizer(made_up_metadata(**small, unknown_token_id=0))
    assert known.encode("aba", parse_special=False) == [1, 0, 1]
