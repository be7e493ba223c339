"""Long runs of one kind of character: neither the patterns nor the merging may take for ever.

A quadratic algorithm needs minutes for these, so that the time limit of each test decides.
"""

from __future__ import annotations

import pytest

from engine.tokenizers import Tokenizer, load_tokenizer, merging
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

WITHOUT_LOSS = ("gpt-2", "llama-bpe", "qwen2", "llama-spm", "gemma-4")


def fresh(name: str) -> Tokenizer:
    """Without words remembered from other tests."""
    return load_tokenizer(published_metadata(name))


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", [*WITHOUT_LOSS, "bert-bge", "unigram"])
@pytest.mark.parametrize("run", RUNS)
def test_long_runs(name: str, run: str) -> None:
    tokenizer = published(name)
    text = run * RUNS[run]
    ids = tokenizer.encode(text, parse_special=True)
    if name in WITHOUT_LOSS:
        assert tokenizer.decode(ids) == text
    elif run.strip():
        assert ids


SHORT_RUNS = [run * (2000 // len(run)) for run in ("x", ".", "日", "us", "qwertyuiopasdfgh")]


@pytest.mark.parametrize("name", ["gpt-2", "llama-spm", "gemma-4"])
@pytest.mark.parametrize("text", SHORT_RUNS, ids=lambda text: text[:8])
def test_merges_equal_the_plain_algorithm(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = fresh(name).encode(text, parse_special=False)
    monkeypatch.setattr(merging, "_SHORT", 10**9)  # looks for the best pair anew each time
    assert ids == fresh(name).encode(text, parse_special=False)


@pytest.mark.parametrize("text", SHORT_RUNS[:1] + SHORT_RUNS[3:], ids=lambda text: text[:8])
def test_word_pieces_equal_the_plain_algorithm(text: str) -> None:
    tokenizer = published("bert-bge")
    pieces = {text: token for token, text in enumerate(tokenizer.vocabulary.texts)}
    expected, rest = [], "▁" + text
    while rest:
        piece = next(rest[:n] for n in range(min(len(rest), 40), 0, -1) if rest[:n] in pieces)
        expected.append(pieces[piece])
        rest = rest[len(piece) :]
    assert tokenizer.encode(text, parse_special=False) == expected


@pytest.mark.parametrize("text", SHORT_RUNS[3:], ids=lambda text: text[:8])
def test_unigram_equals_the_plain_algorithm(text: str) -> None:
    """The sum of scores is the best for every beginning of the text, worked out from the definition."""
    tokenizer = published("unigram")
    scores = published_metadata("unigram").get_floats("tokenizer.ggml.scores").tolist()
    pieces = {text: scores[token] for token, text in enumerate(tokenizer.vocabulary.texts) if token > 2}
    unknown = min(pieces.values()) - 10
    word = "▁" + text
    best = [0.0]
    for end in range(1, len(word) + 1):
        ways = [
            best[end - n] + pieces[word[end - n : end]]
            for n in range(1, min(end, 40) + 1)
            if word[end - n : end] in pieces
        ]
        best.append(max([*ways, *([best[-1] + unknown] if word[end - 1] not in pieces else [])]))
    ids = tokenizer.encode(text, parse_special=False)
    assert tokenizer.unk_id not in ids
    assert sum(scores[token] for token in ids) == pytest.approx(best[-1])


@pytest.mark.parametrize("name", ["gpt-2", "llama-spm", "gemma-4", "bert-bge", "unigram"])
def test_words_remembered_do_not_change_the_ids(name: str) -> None:
    text = "The quick brown fox, the quick fox. \n" * 50
    used = fresh(name)
    first = used.encode(text, parse_special=False)
    assert used.encode(text, parse_special=False) == first == fresh(name).encode(text, parse_special=False)
