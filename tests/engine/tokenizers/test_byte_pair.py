"""Byte-level byte-pair encoding: words, merges, special tokens, damaged files."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import ModelFileError, TokenizerError, UnsupportedModelError
from engine.gguf.metadata import MetadataValue, ValueType
from engine.tokenizers import load_tokenizer
from engine.tokenizers.rules import PRE_TOKENIZERS
from tests.helpers.vocabularies import (
    CONTROL,
    NORMAL,
    USER_DEFINED,
    byte_characters,
    byte_pair_metadata,
    made_up_metadata,
    published,
)

CODE = "def f():\n    return  x"


@pytest.mark.parametrize(
    ("rule", "text", "words"),
    [
        ("gpt-2", "a  b", ["a", " ", " b"]),
        ("llama-bpe", "a  b", ["a", " ", " b"]),
        ("llama-bpe", CODE, ["def", " f", "():\n", "   ", " return", " ", " x"]),
        ("qwen2", CODE, ["def", " f", "():\n", "   ", " return", " ", " x"]),
        ("gpt-2", "3333", ["3333"]),
        ("smollm", "a 3333", ["a", " ", "3", "3", "3", "3"]),
        ("llama-bpe", "3333", ["333", "3"]),
        ("qwen2", "3333", ["3", "3", "3", "3"]),
        ("gpt-2", "We'Ve", ["We", "'", "Ve"]),
        ("gpt-2", "we've", ["we", "'ve"]),
        ("llama-bpe", "We'Ve", ["We", "'Ve"]),
        ("qwen2", "We'Ve", ["We", "'Ve"]),
        ("gpt-2", "x\u00a0 \u3000y", ["x", "\u00a0 ", "\u3000", "y"]),
        ("gpt-2", "", []),
    ],
)
def test_words(rule: str, text: str, words: list[str]) -> None:
    assert PRE_TOKENIZERS[rule].split(text) == words


@pytest.mark.parametrize("rule", sorted(PRE_TOKENIZERS))
def test_no_rule_loses_text(rule: str) -> None:
    text = CODE + " 12345 ①² héllo'S 日本語 🦙\u200d🚀\r\n\t\x00\x1c\x85 <|x|> "
    assert "".join(PRE_TOKENIZERS[rule].split(text)) == text


def test_merges_in_the_order_they_were_learnt() -> None:
    tokenizer = load_tokenizer(byte_pair_metadata(["b c", "a b", "ab c", "a bc"]))
    # "b c" was learnt first, so that "ab" never comes about.
    assert tokenizer.encode("abc", parse_special=False) == [259]
    assert [tokenizer.token_text(i) for i in tokenizer.encode("abab", parse_special=False)] == ["ab", "ab"]


def test_whole_words_are_looked_up_before_merging_only_where_the_rule_says_so() -> None:
    extra = [("Ġcat", NORMAL)]
    whole = load_tokenizer(byte_pair_metadata(["c a"], extra, pre="llama-bpe"))
    merged = load_tokenizer(byte_pair_metadata(["c a"], extra, pre="gpt-2"))
    assert whole.encode(" cat", parse_special=False) == [257]
    assert [merged.token_text(i) for i in merged.encode(" cat", parse_special=False)] == [" ", "ca", "t"]


def test_a_control_token_is_never_spelt_by_merges_or_whole_words() -> None:
    tokenizer = load_tokenizer(
        byte_pair_metadata(["e n"], [("end", CONTROL), ("en", CONTROL)], pre="llama-bpe")
    )
    for text in ("end", "en"):
        assert not tokenizer.control_ids & set(tokenizer.encode(text, parse_special=False))
        assert tokenizer.decode(tokenizer.encode(text, parse_special=False)) == text
    assert tokenizer.encode("end", parse_special=True) == [257]


def test_user_defined_tokens_are_cut_out_first_and_shown_as_they_stand() -> None:
    extra = [("Ġx", USER_DEFINED), ("<a>", USER_DEFINED), ("<a><b>", CONTROL), ("<b>", USER_DEFINED)]
    tokenizer = load_tokenizer(byte_pair_metadata(["q q"], extra))
    ids = {text: 257 + index for index, (text, _) in enumerate(extra)}
    assert tokenizer.encode("Ġx", parse_special=False) == [ids["Ġx"]]
    assert tokenizer.decode([ids["Ġx"]]) == "Ġx"
    assert tokenizer.encode("<a><b>", parse_special=True) == [ids["<a><b>"]]
    assert tokenizer.encode("<a><b>", parse_special=False) == [ids["<a>"], ids["<b>"]]


@pytest.mark.parametrize("pre", [None, "no-such-rule"])
def test_an_unknown_rule_loads_with_a_visible_warning(pre: str | None) -> None:
    tokenizer = load_tokenizer(byte_pair_metadata(["a b"], pre=pre))
    assert len(tokenizer.warnings) == 1
    assert "quality may suffer" in tokenizer.warnings[0]
    assert pre is None or pre in tokenizer.warnings[0]
    assert tokenizer.encode("ab", parse_special=False) == [256]


def test_lone_surrogates_become_replacement_characters() -> None:
    tokenizer = published("gpt-2")
    undecoded = b"a\xe6\xad".decode("utf-8", "surrogateescape")
    assert tokenizer.decode(tokenizer.encode(undecoded, parse_special=False)) == "a\ufffd\ufffd"


def test_a_byte_without_a_token_is_left_out() -> None:
    metadata = byte_pair_metadata(["a b"], tokens=["a", "b", "ab"], token_type=[1, 1, 1])
    assert load_tokenizer(metadata).encode("ab\x04a", parse_special=False) == [2, 0]


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"merges": None}, TokenizerError, "merges"),
        ({"merges": ["a b"], "token_type": [1, 1]}, TokenizerError, "token_type"),
        ({"token_type": [77] * 257}, TokenizerError, "77"),
        ({"tokens": None}, TokenizerError, "tokens"),
        ({"tokens": 5}, ModelFileError, "tokens"),
        ({"tokens": [1, 2]}, ModelFileError, "tokens"),
        ({"eos_token_id": "x"}, ModelFileError, "eos_token_id"),
        ({"model": None}, TokenizerError, "tokenizer.ggml.model"),
        ({"model": "plamo2"}, UnsupportedModelError, "plamo2"),
        ({"model": "no_vocab"}, UnsupportedModelError, "no vocabulary"),
        ({"model": "none"}, UnsupportedModelError, "no vocabulary"),
        ({"model": "llama"}, TokenizerError, "scores"),
    ],
)
def test_damaged_vocabularies_are_named(
    changes: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        load_tokenizer(byte_pair_metadata(["a b"], **changes))


@pytest.mark.parametrize(
    ("token", "warns"), [(257, True), (10**9, True), (-2, True), (-1, False), (2**32 - 1, False)]
)
def test_a_special_id_outside_of_the_vocabulary_counts_as_none(token: int, warns: bool) -> None:
    tokenizer = load_tokenizer(byte_pair_metadata(["a b"], eos_token_id=token, bos_token_id=0))
    assert (tokenizer.eos_id, tokenizer.bos_id, tokenizer.eog_ids) == (None, 0, frozenset())
    assert [str(token) in warning for warning in tokenizer.warnings] == [True] * warns
    assert tokenizer.encode("ab", parse_special=True, add_special=True) == [256]


def test_kinds_must_be_int32() -> None:
    metadata = byte_pair_metadata(["a b"])
    kinds = metadata.values["tokenizer.ggml.token_type"]
    metadata.values["tokenizer.ggml.token_type"] = MetadataValue(
        kinds.type, kinds.value.astype(np.uint8), ValueType.UINT8
    )
    with pytest.raises(TokenizerError, match="token_type is an array of uint8"):
        load_tokenizer(metadata)


def test_merges_that_are_no_pairs_or_lead_to_no_token_do_no_harm() -> None:
    texts = [*byte_characters(), "cd"]
    tokenizer = load_tokenizer(
        byte_pair_metadata(["ab", "b c", "c d", "c d"], tokens=texts, token_type=[1] * 257)
    )
    assert [warning.partition(" of ")[0] for warning in tokenizer.warnings] == ["1", "1"]
    assert "name no pair" in tokenizer.warnings[0] and "lead to no token" in tokenizer.warnings[1]
    # "b c" is learnt first and joins, but is no token: spelt in bytes.
    assert tokenizer.decode(tokenizer.encode("abcd", parse_special=False)) == "abcd"
    assert tokenizer.encode("cd", parse_special=False) == [256]


def test_an_empty_file_has_no_tokenizer() -> None:
    with pytest.raises(TokenizerError):
        load_tokenizer(made_up_metadata())


@pytest.mark.parametrize("token", [-1, 50257, 10**12])
def test_ids_outside_of_the_vocabulary_are_refused(token: int) -> None:
    with pytest.raises(TokenizerError, match=str(token)):
        published("gpt-2").decode([token])
