"""Ids of published vocabularies against those that llama.cpp gives (see tests/data/vocab/README.md)."""

from __future__ import annotations

import pytest

from tests.helpers.vocabularies import PUBLISHED, published, published_ids, published_texts


@pytest.mark.parametrize("name", PUBLISHED)
def test_ids_are_the_published_ones(name: str) -> None:
    tokenizer = published(name)
    texts = published_texts(name)
    assert len(texts) >= 46
    assert [tokenizer.encode(text, parse_special=False) for text in texts] == published_ids(name)
    assert tokenizer.warnings == ()


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name != "bert-bge"])
def test_decoding_gives_the_text_back(name: str) -> None:
    tokenizer = published(name)
    for text in published_texts(name):
        assert tokenizer.decode(tokenizer.encode(text, parse_special=False)) == text


@pytest.mark.parametrize(
    ("name", "text", "ids"),
    [
        ("llama-spm", "This is 🦙.cpp", [1, 910, 338, 29871, 243, 162, 169, 156, 29889, 8223]),
        ("llama-spm", "x.</s>", [1, 921, 29889, 2]),
        ("llama-spm", "<s>G", [1, 402]),
        ("llama-spm", "<s>uns", [1, 9644]),
        ("llama-bpe", " Việt", [128000, 101798]),
        ("llama-bpe", "<|begin_of_text|>Hi", [128000, 13347]),
        ("qwen2", "<|im_start|>user", [151644, 872]),
    ],
)
def test_whole_prompts(name: str, text: str, ids: list[int]) -> None:
    assert published(name).encode(text, parse_special=True, add_special=True) == ids


def test_control_texts_stay_text_unless_asked_for() -> None:
    tokenizer = published("llama-bpe")
    ids = tokenizer.encode("<|eot_id|>", parse_special=False)
    assert not tokenizer.control_ids & set(ids)
    assert tokenizer.decode(ids) == "<|eot_id|>"
    assert tokenizer.encode("<|eot_id|>", parse_special=True) == [128009]


def test_text_of_tokens_for_lists() -> None:
    tokenizer = published("llama-bpe")
    assert tokenizer.token_text(128009) == "<|eot_id|>"
    assert tokenizer.piece(128009) == b""
    assert tokenizer.token_text(1917) == " world"
    assert published("llama-spm").token_text(910) == " This"
