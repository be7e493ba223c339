"""SentencePiece-style encoding: order of merges, spaces, bytes, cutting into words."""

from __future__ import annotations

import itertools
import random

import pytest

from engine.errors import TokenizerError
from engine.tokenizers import Tokenizer, load_tokenizer
from engine.tokenizers.vocabulary import TokenKind
from tests.helpers.vocabularies import CONTROL, USER_DEFINED, published, sentence_piece_metadata

SMALL = [("▁", -1.0), ("a", -2.0), ("b", -3.0), ("ab", -0.5), ("▁a", -0.2)]  # ids from 259 on


def slow_encode(tokenizer: Tokenizer, text: str, scores: list[float]) -> list[int]:
    """The definition: join the best pair of the whole text, the leftmost of equals, until there is none."""
    vocabulary = tokenizer.vocabulary
    ids = {vocabulary.texts[i]: i for i in vocabulary.ids_of_kind(TokenKind.NORMAL)}
    symbols = list(text.replace(" ", "▁"))
    while True:
        pairs = [
            (-scores[ids[a + b]], at) for at, (a, b) in enumerate(itertools.pairwise(symbols)) if a + b in ids
        ]
        if not pairs:
            break
        _, at = min(pairs)
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
    result: list[int] = []
    for symbol in symbols:
        result += [ids[symbol]] if symbol in ids else [3 + byte for byte in symbol.encode()]
    return result


def test_best_score_first_not_longest() -> None:
    tokenizer = load_tokenizer(sentence_piece_metadata(SMALL))
    assert tokenizer.encode("ab", parse_special=False) == [263, 261]
    assert tokenizer.encode("é", parse_special=False) == [259, 198, 172]


def test_without_the_space_before_a_text() -> None:
    tokenizer = load_tokenizer(sentence_piece_metadata(SMALL, add_space_prefix=False))
    assert tokenizer.encode("ab", parse_special=False) == [262]
    assert tokenizer.encode("é", parse_special=False) == [198, 172]
    assert tokenizer.decode([263, 261]) == " ab"


def test_equal_scores_are_joined_from_the_left() -> None:
    pieces = [("a", -1.0), ("aa", -0.5)]
    tokenizer = load_tokenizer(sentence_piece_metadata(pieces, add_space_prefix=False))
    assert tokenizer.encode("aaa", parse_special=False) == [260, 259]


@pytest.mark.parametrize("crossing", [False, True])
def test_equals_the_definition_on_random_texts(crossing: bool) -> None:
    """Also with tokens that reach over the space between two words, which forbid cutting there."""
    rng = random.Random(4)
    letters = "ab>▁"
    texts = sorted(
        {"".join(rng.choices(letters, k=rng.randint(2, 4))) for _ in range(60)} | {"a", "b", ">", "▁"}
    )
    if not crossing:
        texts = [text for text in texts if "▁" not in text.lstrip("▁")]
    pieces = [(text, float(rng.randint(-20, 0))) for text in texts]
    tokenizer = load_tokenizer(sentence_piece_metadata(pieces, add_space_prefix=False))
    scores = [0.0] * 259 + [score for _, score in pieces]
    for _ in range(300):
        text = "".join(rng.choices("ab> é", k=rng.randint(1, 30)))
        assert tokenizer.encode(text, parse_special=False) == slow_encode(tokenizer, text, scores)


def test_control_and_byte_texts_typed_by_a_person_stay_text() -> None:
    extra = [("ab", CONTROL)]
    pieces = [("a", -1.0), ("b", -1.0)]
    tokenizer = load_tokenizer(sentence_piece_metadata(pieces, extra, add_space_prefix=False))
    assert tokenizer.encode("ab", parse_special=False) == [259, 260]
    assert tokenizer.encode("ab", parse_special=True) == [261]
    assert tokenizer.encode("<unk>", parse_special=True) == [0]
    for text in ("<s>", "</s>", "<0x41>", "<unk>"):
        ids = published("llama-spm").encode(text, parse_special=False)
        assert not set(ids) & set(range(3)), text
        assert published("llama-spm").decode(ids) == text


def test_a_space_goes_before_each_text_behind_a_special_token() -> None:
    tokenizer = load_tokenizer(sentence_piece_metadata(SMALL, [("<x>", USER_DEFINED)]))
    assert tokenizer.encode("a<x>a", parse_special=False) == [263, 264, 263]


def test_decoding_takes_away_one_leading_space() -> None:
    pieces = [("▁", -1.0), ("▁leading", -1.0), ("▁x", -1.0)]
    tokenizer = load_tokenizer(sentence_piece_metadata(pieces))
    assert tokenizer.decode([259, 260, 261]) == " leading x"
    assert tokenizer.decode([1, 259, 260, 261]) == " leading x"
    assert tokenizer.decode([260], continues_text=True) == " leading"


def test_user_defined_spaces_written_either_way_are_found() -> None:
    for text in ("▁▁", "  "):
        tokenizer = load_tokenizer(
            sentence_piece_metadata(SMALL, [(text, USER_DEFINED)], add_space_prefix=False)
        )
        assert tokenizer.encode("a  a", parse_special=False) == [260, 264, 260]
        assert tokenizer.decode([264]) == "  "


def test_the_unknown_token_stands_for_what_has_no_bytes() -> None:
    metadata = sentence_piece_metadata(
        [], tokens=["<unk>", "a"], token_type=[2, 1], scores=[0.0, -1.0], bos_token_id=None, eos_token_id=None
    )
    assert load_tokenizer(metadata).encode("aé", parse_special=False) == [0, 1, 0]


@pytest.mark.parametrize("scores", [[0.0], [float("nan")] * 264])
def test_scores_that_are_incomplete_or_no_numbers_are_refused(scores: list[float]) -> None:
    with pytest.raises(TokenizerError, match="scores"):
        load_tokenizer(sentence_piece_metadata(SMALL, scores=scores))


def test_byte_tokens_must_name_a_byte() -> None:
    with pytest.raises(TokenizerError, match="byte"):
        load_tokenizer(sentence_piece_metadata(SMALL, [("<0xZZ>", 6)]))
