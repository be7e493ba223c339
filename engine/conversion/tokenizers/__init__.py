"""The tokenizer of a checkpoint as metadata of a model file: `tokenizer_metadata`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.conversion.config import Config, read_json
from engine.conversion.tokenizers.chat_templates import chat_templates
from engine.conversion.tokenizers.sentence_piece_model import read_sentence_piece
from engine.conversion.tokenizers.special_ids import added_by_itself, special_ids
from engine.conversion.tokenizers.token_table import AddedToken, TokenTable
from engine.conversion.tokenizers.tokenizer_json import (
    added_token,
    added_tokens,
    kind_of,
    read_tokenizer_json,
)
from engine.errors import TokenizerError

__all__ = ["tokenizer_metadata"]


def tokenizer_metadata(folder: Path, config: Config, n_rows: int) -> tuple[dict[str, object], list[str]]:
    """Everything below ``tokenizer.``, and sentences a person should see.

    n_rows: of the embedding; there will be as many tokens.

    ``tokenizer.json`` counts, except for SentencePiece vocabularies, whose own file ``tokenizer.model`` also
    holds the scores.  Raises `TokenizerError` where there is neither, for damaged files it or
    `ModelFileError`.
    """
    content = _optional(folder, "tokenizer.json")
    tokenizer, special_map, generation = (
        Config(_optional(folder, name), name)
        for name in ("tokenizer_config.json", "special_tokens_map.json", "generation_config.json")
    )
    sentence_piece = folder / "tokenizer.model"
    if content and (kind_of(content) in ("gpt2", "bert") or not sentence_piece.is_file()):
        table = read_tokenizer_json(content)
    elif sentence_piece.is_file():
        table = read_sentence_piece(sentence_piece)
        table.add(added_tokens(content))
    else:
        raise TokenizerError(
            f"{folder} holds no tokenizer.json and no tokenizer.model.",
            "Add one of them, or convert with `--no-vocabulary` for programs that give ids themselves.",
        )
    _add_listed(table, tokenizer, _optional(folder, "added_tokens.json"))
    table.fit(n_rows)
    ids = special_ids(table, config, tokenizer, special_map, generation)
    if type(prefix := tokenizer.get("add_prefix_space")) is bool:
        table.others["tokenizer.ggml.add_space_prefix"] = prefix
    metadata = table.metadata() | ids | added_by_itself(content, tokenizer, ids)
    return metadata | chat_templates(folder, tokenizer), table.notices


def _add_listed(table: TokenTable, tokenizer: Config, listed: dict[str, Any]) -> None:
    """Added tokens of the small files: ``added_tokens.json``, then the newer ``added_tokens_decoder``."""
    table.add(
        AddedToken(token, text, special=False)
        for text, token in listed.items()
        if type(token) is int and (token >= len(table.texts) or table.texts[token] != text)
    )
    decoder = tokenizer.part("added_tokens_decoder")
    if decoder is not None:
        table.add(
            added_token(entry, int(token)) for token, entry in decoder.values.items() if token.isdecimal()
        )


def _optional(folder: Path, name: str) -> dict[str, Any]:
    """The content of a file; empty where it is missing."""
    return read_json(folder / name) if (folder / name).is_file() else {}
