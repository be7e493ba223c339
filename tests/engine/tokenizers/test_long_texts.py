"""Long runs of one kind of character: neither the patterns nor the merging may take for ever.

A quadratic algorithm needs minutes for these, so that the time limit of each test decides.
"""

from __future__ import annotations

import pytest

from engine.tokenizers import Tokenizer, load_tokenizer
from tests.helpers.vocabularies import published, published_metadata

RUNS = {
    "x": 36_000,
    "X": 36_000,
    ".": 36_000,
    " ": 36_000,
    "日": 36_000,
    "\n": 36_000,
    "<": 50_000,
    "_": 50_000,
    "us": 20_000,
    "a": 100_000,
    "qwertyuiopasdfgh": 8_192,
}


def fresh(name: str) -> Tokenizer:
    """Without words remembered from other tests."""
    return load_tokenizer(published_metadata(name))


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", ["gpt-2", "llama-bpe", "qwen2", "llama-spm"])
@pytest.mark.parametrize("run", RUNS)
def test_long_runs(name: str, run: str) -> None:
    tokenizer = published(name)
    text = run * RUNS[run]
    assert tokenizer.decode(tokenizer.encode(text, parse_special=True)) == text


@pytest.mark.parametrize("name", ["gpt-2", "llama-spm"])
def test_words_remembered_do_not_change_the_ids(name: str) -> None:
    text = "The quick brown fox, the quick fox. \n" * 50
    used = fresh(name)
    first = used.encode(text, parse_special=False)
    assert used.encode(text, parse_special=False) == first == fresh(name).encode(text, parse_special=False)
