"""Unigram: the best sum of scores, spaces, unknown characters, ids of the library `sentencepiece`."""

from __future__ import annotations

import math
import random

import pytest

from engine.errors import ModelFileError, TokenizerError
from engine.tokenizers import Tokenizer, load_tokenizer
from tests.helpers.vocabularies import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    UNUSED,
    made_up_metadata,
    published,
    published_ids,
    published_texts,
)


def tokenizer_of(pieces: list[tuple[str, float]], **values: object) -> Tokenizer:
    """Ids 0 to 2: <pad>, </s>, <unk>; then pieces (text, score)."""
    defaults: dict[str, object] = {
        "model": "t5",
        "tokens": ["<pad>", "</s>", "<unk>", *(text for text, _ in pieces)],
        "token_type": [CONTROL, CONTROL, UNKNOWN] + [NORMAL] * len(pieces),
        "scores": [0.0, 0.0, 0.0, *(score for _, score in pieces)],
    }
    return load_tokenizer(made_up_metadata(**(defaults | values)))


def test_ids_are_those_of_sentencepiece() -> None:
    texts = published_texts("texts") + published_texts("more_texts")
    tokenizer = published("unigram")
    assert [tokenizer.encode(text, parse_special=False) for text in texts] == published_ids("unigram")


def best_sum(text: str, scores: dict[str, float], unknown: float) -> float:
    """The definition: over every way to cut the text."""
    if not text:
        return 0.0
    ways = [
        scores[text[:n]] + best_sum(text[n:], scores, unknown)
        for n in range(1, len(text) + 1)
        if text[:n] in scores
    ]
    ways += [unknown + best_sum(text[1:], scores, unknown)] if text[0] not in scores else []
    return max(ways)


@pytest.mark.parametrize("crossing", [False, True])
def test_the_sum_is_the_best_there_is(crossing: bool) -> None:
    """Also with tokens that reach over the space between two words, which forbid cutting there."""
    rng = random.Random(5)
    texts = sorted({"".join(rng.choices("ab▁", k=rng.randint(1, 5))) for _ in range(40)})
    if not crossing:
        texts = [text for text in texts if "▁" not in text[1:]]
    scores = {text: -rng.randint(1, 64) / 8 for text in texts}  # sums of these are exact
    tokenizer = tokenizer_of([*scores.items()], add_space_prefix=False)
    unknown = min(scores.values()) - 10
    for _ in range(100):
        text = "".join(rng.choices("ab▁c", k=rng.randint(1, 10)))
        ids = tokenizer.encode(text.replace("▁", " "), parse_special=False)
        used = [tokenizer.vocabulary.texts[token] for token in ids if token != 2]
        # Neighbouring unknown characters are one token: what no other token covers tells how many they are.
        n_unknown = len(text) - sum(map(len, used))
        assert sum(scores[piece] for piece in used) + unknown * n_unknown == best_sum(text, scores, unknown)


def test_spaces() -> None:
    pieces = [("▁", -1.0), ("▁a", -1.0), ("a", -3.0), ("b", -3.0)]
    for merge, ids in ((True, [4, 4, 3, 6]), (False, [3, 4, 3, 4, 3, 6, 3])):
        tokenizer = tokenizer_of(pieces, remove_extra_whitespaces=merge)
        assert tokenizer.encode(" a  a b ", parse_special=False) == ids
    assert tokenizer_of(pieces).encode("a", parse_special=False) == [4]
    assert tokenizer_of(pieces, add_space_prefix=False).encode("a", parse_special=False) == [5]
    assert tokenizer_of(pieces).decode([4, 6]) == "ab"


def test_unknown_characters_that_stand_together_are_one_token() -> None:
    pieces = [("▁", -1.0), ("a", -1.0)]
    tokenizer = tokenizer_of(pieces, add_space_prefix=False)
    assert tokenizer.encode("aéüa", parse_special=False) == [4, 2, 4]
    assert tokenizer.encode("é é", parse_special=False) == [2, 3, 2]
    # Also where a space is unknown too, at which words are cut.
    assert tokenizer_of([("a", -1.0)], add_space_prefix=False).encode("aé éa", parse_special=False) == [
        3,
        2,
        3,
    ]


def test_bytes_stand_for_unknown_characters_where_the_vocabulary_has_them() -> None:
    texts = [*(f"<0x{byte:02X}>" for byte in range(256)), "<unk>", "▁"]
    tokenizer = tokenizer_of(
        [],
        tokens=texts,
        token_type=[BYTE] * 256 + [UNKNOWN, UNUSED],
        scores=[0.0] * 257 + [-1.0],
        unknown_token_id=256,
        eos_token_id=None,
    )
    ids = tokenizer.encode("é", parse_special=False)
    assert ids == [257, 0xC3, 0xA9]
    assert tokenizer.decode(ids) == "é"


def test_a_whole_prompt_ends_with_eos() -> None:
    tokenizer = tokenizer_of([("▁a", -1.0)])
    assert tokenizer.encode("a", parse_special=True, add_special=True) == [3, 1]


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"scores": [0.0]}, TokenizerError, "scores"),
        ({"scores": [0.0] * 3 + [math.nan]}, TokenizerError, "scores"),
        ({"scores": [0.0] * 3 + [math.inf]}, TokenizerError, "scores"),
        ({"scores": None}, TokenizerError, "scores"),
        ({"scores": [1, 2, 3, 4]}, ModelFileError, "scores"),
        ({"token_type": [1, 1, 1, 1]}, TokenizerError, "unknown"),
        ({"precompiled_charsmap": "x"}, ModelFileError, "charsmap"),
        ({"precompiled_charsmap": [1, 2, 3]}, ModelFileError, "charsmap"),
    ],
)
def test_damaged_vocabularies_are_named(
    changes: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        tokenizer_of([("a", -1.0)], **changes)
