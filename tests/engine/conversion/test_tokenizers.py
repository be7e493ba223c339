"""Tokenizers of checkpoints, converted: they give the ids of `tokenizers` and `sentencepiece`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.conversion.config import Config
from engine.conversion.tokenizers import tokenizer_metadata
from engine.errors import CauserieError, TokenizerError
from engine.gguf.metadata import Metadata
from engine.gguf.values import infer_value
from engine.tokenizers import load_tokenizer
from engine.tokenizers.vocabulary import TokenKind

FOLDER = Path(__file__).parents[2] / "fixtures/tokenizers"
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/truth.json"))
NOT_LIKE_THE_LIBRARY = {"byte-level-unknown"}
"""Split by a rule that no model file can name."""


def truth_of(name: str) -> dict[str, Any]:
    truth: dict[str, Any] = json.loads((FOLDER / name / "truth.json").read_text(encoding="utf-8"))
    return truth


def converted(name: str, config: dict[str, Any] | None = None) -> tuple[dict[str, Any], list[str]]:
    return tokenizer_metadata(FOLDER / name, Config(config or {}), truth_of(name)["rows"])


def as_metadata(values: dict[str, Any]) -> Metadata:
    return Metadata({key: infer_value(value) for key, value in values.items()}, "converted.gguf")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NOT_LIKE_THE_LIBRARY])
def test_ids_are_those_of_the_library(name: str) -> None:
    truth = truth_of(name)
    tokenizer = load_tokenizer(as_metadata(converted(name)[0]))
    for text, ids in zip(truth["texts"], truth["ids"], strict=True):
        assert tokenizer.encode(text, parse_special=False, add_special=False) == ids, text


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("byte-level-gpt2", "gpt-2"),
        ("byte-level-llama3", "llama-bpe"),
        ("byte-level-qwen2", "qwen2"),
        ("byte-level-smollm", "smollm"),
    ],
)
def test_the_rule_is_recognised_by_its_patterns(name: str, rule: str) -> None:
    values, notices = converted(name)
    assert (values["tokenizer.ggml.model"], values["tokenizer.ggml.pre"]) == ("gpt2", rule)
    assert notices == []


def test_an_unknown_rule_is_told() -> None:
    values, notices = converted("byte-level-unknown")
    assert values["tokenizer.ggml.pre"] == "default"
    assert len(notices) == 1 and "may cost quality" in notices[0]


@pytest.mark.parametrize("name", NAMES)
def test_every_row_has_a_token_of_a_kind(name: str) -> None:
    values, _ = converted(name)
    rows = truth_of(name)["rows"]
    assert len(values["tokenizer.ggml.tokens"]) == len(values["tokenizer.ggml.token_type"]) == rows
    assert len(values.get("tokenizer.ggml.scores", range(rows))) == rows


def test_kinds_and_special_ids() -> None:
    values, _ = converted("byte-level-llama3")
    texts, kinds = values["tokenizer.ggml.tokens"], list(values["tokenizer.ggml.token_type"])
    assert kinds[texts.index("<|begin|>")] == kinds[texts.index("<|end|>")] == TokenKind.CONTROL
    assert kinds[texts.index("<tool>")] == TokenKind.USER_DEFINED
    assert kinds[texts.index("a")] == TokenKind.NORMAL
    assert texts[-1].startswith("[PAD") and kinds[-1] == TokenKind.UNUSED
    assert values["tokenizer.ggml.bos_token_id"] == texts.index("<|begin|>")
    assert values["tokenizer.ggml.eos_token_id"] == texts.index("<|end|>")
    assert values["tokenizer.ggml.add_bos_token"] is True
    assert values["tokenizer.ggml.add_eos_token"] is False
    assert values["tokenizer.chat_template"] == "{{ messages }}"


def test_sentence_piece_kinds_scores_and_spaces() -> None:
    values, _ = converted("sentence-piece")
    texts, kinds = values["tokenizer.ggml.tokens"], list(values["tokenizer.ggml.token_type"])
    assert kinds[:3] == [TokenKind.UNKNOWN, TokenKind.CONTROL, TokenKind.CONTROL]
    assert kinds[texts.index("<tool>")] == TokenKind.USER_DEFINED
    assert kinds[texts.index("<0x41>")] == TokenKind.BYTE
    assert values["tokenizer.ggml.add_space_prefix"] is True
    assert converted("sentence-piece-no-prefix")[0]["tokenizer.ggml.add_space_prefix"] is False
    scores = values["tokenizer.ggml.scores"]
    assert scores.dtype == np.float32 and scores[texts.index("▁t")] > scores[texts.index("▁the")]


def test_byte_pairs_with_spaces_merge_as_their_sentence_piece_model_does() -> None:
    """The two folders hold the same pieces: with scores, and with merges, whose order becomes scores."""
    ours, theirs = converted("spaced")[0], converted("sentence-piece")[0]
    texts = ours["tokenizer.ggml.tokens"]
    joined = [token for token, score in enumerate(ours["tokenizer.ggml.scores"]) if -1000 < score < 0]
    by_rank = sorted(joined, key=lambda token: -ours["tokenizer.ggml.scores"][token])
    by_score = sorted(
        (theirs["tokenizer.ggml.tokens"].index(texts[token]) for token in joined),
        key=lambda token: -theirs["tokenizer.ggml.scores"][token],
    )
    assert len(joined) > 20
    assert [texts[token] for token in by_rank] == [
        theirs["tokenizer.ggml.tokens"][token] for token in by_score
    ]


def test_unigrams_and_word_pieces() -> None:
    values, _ = converted("unigram")
    assert values["tokenizer.ggml.model"] == "t5"
    assert values["tokenizer.ggml.remove_extra_whitespaces"] is False
    values, _ = converted("word-pieces")
    assert values["tokenizer.ggml.model"] == "bert"
    texts = values["tokenizer.ggml.tokens"]
    assert "▁the" in texts and not any(text.startswith("##") for text in texts)


def test_several_ends_of_a_reply() -> None:
    """One is the key, well-known texts need none, further ones get the two keys there are."""
    values, notices = converted("byte-level-llama3", {"eos_token_id": [1, 60, 61, 62]})
    assert values["tokenizer.ggml.eos_token_id"] == 1
    assert values["tokenizer.ggml.eot_token_id"] == 60 and values["tokenizer.ggml.eom_token_id"] == 61
    assert len(notices) == 1 and "should also end" in notices[0]


def test_ids_outside_the_vocabulary_are_left_out() -> None:
    values, _ = converted("sentence-piece", {"pad_token_id": 99_999, "mask_token_id": -1})
    assert "tokenizer.ggml.padding_token_id" not in values and "tokenizer.ggml.mask_token_id" not in values


def test_tokens_beyond_the_embedding_are_told() -> None:
    values, notices = tokenizer_metadata(FOLDER / "byte-level-gpt2", Config({}), 300)
    assert len(values["tokenizer.ggml.tokens"]) == 300
    assert len(notices) == 1 and "no row" in notices[0]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER / "byte-level-gpt2", tmp_path / "copy"))


def test_templates_of_their_own_files_and_by_name(copy: Path) -> None:
    (copy / "chat_template.jinja").write_text("newer")
    (copy / "additional_chat_templates").mkdir()
    (copy / "additional_chat_templates" / "tool-use.jinja").write_text("tools")
    values, _ = tokenizer_metadata(copy, Config({}), 400)
    assert values["tokenizer.chat_template"] == "newer"
    assert values["tokenizer.chat_template.tool_use"] == "tools"
    assert values["tokenizer.chat_templates"] == ["tool_use"]


def test_templates_listed_in_the_configuration(copy: Path) -> None:
    templates = [{"name": "default", "template": "D"}, {"name": "rag", "template": "R"}, {"name": 3}]
    (copy / "tokenizer_config.json").write_text(json.dumps({"chat_template": templates}))
    values, _ = tokenizer_metadata(copy, Config({}), 400)
    assert values["tokenizer.chat_template"] == "D" and values["tokenizer.chat_template.rag"] == "R"


def test_no_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match=r"no tokenizer\.json"):
        tokenizer_metadata(tmp_path, Config({}), 10)


DAMAGED = [
    {"model": None},
    {"model": {"type": "Bytes"}},
    {"model": {"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []}},
    {"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}},
    {"model": {"type": "BPE", "vocab": {"a": 2**40}, "merges": []}},
    {"model": {"type": "BPE", "vocab": {"a": "b"}, "merges": []}},
    {"model": {"type": "BPE", "vocab": ["a"], "merges": []}},
    {"model": {"type": "BPE", "vocab": {}, "merges": []}},
    {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": {"a": 1}}},
    {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]}},
    {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", 3]]}},
    {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "added_tokens": {"a": 1}},
    {
        "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []},
        "added_tokens": [{"id": 2**50, "content": "x"}],
    },
    {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "added_tokens": [{"id": 2}]},
    {"model": {"type": "Unigram", "vocab": {"a": 0}}},
    {"model": {"type": "Unigram", "vocab": [["a", 0.0, 1]]}},
    {"model": {"type": "Unigram", "vocab": [["a", "b"]]}},
]


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_damaged_tokenizer_json(tmp_path: Path, content: dict[str, Any]) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(TokenizerError):
        tokenizer_metadata(tmp_path, Config({}), 10)


@pytest.mark.parametrize("cut", [1, 2, 5, 100, 3000])
def test_sentence_piece_models_cut_short(tmp_path: Path, cut: int) -> None:
    raw = (FOLDER / "sentence-piece/tokenizer.model").read_bytes()
    (tmp_path / "tokenizer.model").write_bytes(raw[:-cut])
    with pytest.raises(TokenizerError):
        tokenizer_metadata(tmp_path, Config({}), 10)


def test_sentence_piece_models_with_flipped_bytes(tmp_path: Path) -> None:
    """Whatever the bytes say, a typed error or a vocabulary comes out."""
    raw = (FOLDER / "sentence-piece/tokenizer.model").read_bytes()
    generator = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(raw)
        for place in generator.integers(0, len(raw), 3):
            damaged[place] = int(generator.integers(256))
        (tmp_path / "tokenizer.model").write_bytes(bytes(damaged))
        try:
            tokenizer_metadata(tmp_path, Config({}), 10)
        except CauserieError:
            continue
