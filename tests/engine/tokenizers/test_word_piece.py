"""WordPiece: cleaning, words and signs, longest pieces first (published ids: test_published_vocabularies)."""

from __future__ import annotations

import pytest

from engine.errors import TokenizerError
from engine.tokenizers import Tokenizer, load_tokenizer
from tests.helpers.vocabularies import CONTROL, NORMAL, made_up_metadata, published

ALPHA, SIGMA = "\u03b1", "\u03c3"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def tokenizer_of(pieces: list[str], **values: object) -> Tokenizer:
    """Ids 0 to 3: SPECIAL; then pieces as a model file has them."""
    defaults: dict[str, object] = {
        "model": "bert",
        "tokens": SPECIAL + pieces,
        "token_type": [CONTROL] * len(SPECIAL) + [NORMAL] * len(pieces),
        "unknown_token_id": 1,
        "cls_token_id": 2,
        "seperator_token_id": 3,
    }
    return load_tokenizer(made_up_metadata(**(defaults | values)))


def texts_of(tokenizer: Tokenizer, text: str) -> list[str]:
    return [tokenizer.vocabulary.texts[token] for token in tokenizer.encode(text, parse_special=False)]


def test_longest_pieces_first_and_the_unknown_token_for_a_word_with_a_gap() -> None:
    tokenizer = tokenizer_of(["▁un", "▁una", "ffable", "aff", "able", "▁x"])
    assert texts_of(tokenizer, "unaffable x") == ["▁una", "ffable", "▁x"]
    assert texts_of(tokenizer, "unaffx x") == ["[UNK]", "▁x"]
    assert texts_of(tokenizer, "affable") == ["[UNK]"]


def test_signs_and_chinese_characters_stand_alone() -> None:
    tokenizer = tokenizer_of(["▁a", "▁b", "▁.", "▁$", "▁日", "▁本", "▁—", "b"])
    assert texts_of(tokenizer, "a.b$a—日本b") == ["▁a", "▁.", "▁b", "▁$", "▁a", "▁—", "▁日", "▁本", "▁b"]


@pytest.mark.parametrize(
    ("flags", "text", "pieces"),
    [
        ({}, "Über É \u03a3", ["▁uber", "▁e", f"▁{SIGMA}"]),
        ({"normalizer.lowercase": False}, "Über É", ["▁Über", "▁É"]),
        ({"normalizer.lowercase": False, "normalizer.strip_accents": True}, "Über É", ["▁Uber", "▁E"]),
        ({"normalizer.strip_accents": False}, "Über É \u0391\u03a3", ["▁über", "▁é", f"▁{ALPHA}{SIGMA}"]),
    ],
)
def test_case_and_accents(flags: dict[str, object], text: str, pieces: list[str]) -> None:
    known = ["▁uber", "▁Uber", "▁über", "▁Über", "▁e", "▁E", "▁é", "▁É", f"▁{SIGMA}", f"▁{ALPHA}{SIGMA}"]
    assert texts_of(tokenizer_of(known, **flags), text) == pieces


def test_control_characters_are_left_out_and_every_space_separates() -> None:
    tokenizer = tokenizer_of(["▁ab", "▁a", "▁b"])
    assert texts_of(tokenizer, "a\x00b a\u200db a\ufffdb") == ["▁ab"] * 3
    assert texts_of(tokenizer, "a\tb\na\u00a0b\u3000a") == ["▁a", "▁b", "▁a", "▁b", "▁a"]
    assert texts_of(tokenizer, " \n") == []


def test_what_is_no_character_yet_is_unknown_and_what_never_will_be_is_left_out() -> None:
    """Ids of the library `tokenizers` with the vocabulary of bge."""
    tokenizer = published("bert-bge")
    for text in ("\U0003a7a7", "\U0008d5ae", "a\U000d9105"):  # unassigned
        assert tokenizer.encode(text, parse_special=False) == [tokenizer.unk_id]
    for text in ("\ue000", "\U00100f05", "\u200b", "\x07", "\ufffd"):  # private use, format, control
        assert tokenizer.encode(text, parse_special=False) == []


def test_a_whole_prompt_stands_between_two_special_tokens() -> None:
    tokenizer = tokenizer_of(["▁a"])
    assert tokenizer.encode("a", parse_special=True, add_special=True) == [2, 4, 3]
    assert tokenizer.encode("a [SEP] a", parse_special=True) == [4, 3, 4]
    assert 3 not in tokenizer.encode("[SEP]", parse_special=False)


def test_decoding_puts_spaces_between_words() -> None:
    tokenizer = published("bert-bge")
    ids = tokenizer.encode("Hello, unaffable world", parse_special=True, add_special=True)
    assert tokenizer.decode(ids) == "hello , una ##ffa ##ble world".replace(" ##", "")


def test_a_vocabulary_without_an_unknown_token_is_refused() -> None:
    with pytest.raises(TokenizerError, match="unknown"):
        tokenizer_of(["▁a"], unknown_token_id=None)
