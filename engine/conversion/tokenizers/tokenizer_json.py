"""Reads ``tokenizer.json``: vocabulary, merges and added tokens, as the `tokenizers` library writes them.

Byte-level byte pairs become the kind "gpt2", byte pairs with spaces as U+2581 "llama", whose scores say the
same as the order of merges; unigrams become "t5", word pieces "bert".
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from engine.conversion.config import is_number
from engine.conversion.tokenizers.sentence_piece_model import charsmap_array
from engine.conversion.tokenizers.splitting import is_byte_level, rule_of, steps_of
from engine.conversion.tokenizers.token_table import SPACE, AddedToken, TokenTable
from engine.errors import TokenizerError
from engine.tokenizers.vocabulary import TokenKind

DEFAULT_RULE = "default"


def kind_of(content: dict[str, Any]) -> str:
    """``tokenizer.ggml.model`` of such a file.  Raises `TokenizerError` for a kind that no reader knows."""
    model = _object(content.get("model"), "model")
    kind = model.get("type", "BPE" if "merges" in model else None)
    if kind == "BPE":
        return "gpt2" if is_byte_level(content.get("pre_tokenizer")) else "llama"
    known = {"Unigram": "t5", "WordPiece": "bert"}
    if kind not in known:
        raise TokenizerError(f"tokenizer.json: tokenizers of the kind {str(kind)[:40]!r} are not supported.")
    return known[kind]


def read_tokenizer_json(content: dict[str, Any]) -> TokenTable:
    """Raises `TokenizerError` where it is damaged."""
    model = _object(content.get("model"), "model")
    read = {"gpt2": _byte_level, "llama": _spaced, "t5": _unigram, "bert": _word_pieces}[kind_of(content)]
    table = read(content, model)
    table.add(added_tokens(content))
    return table


def added_tokens(content: dict[str, Any]) -> list[AddedToken]:
    """The list ``added_tokens``.  Raises `TokenizerError`."""
    tokens = content.get("added_tokens") or []
    if not isinstance(tokens, list):
        raise TokenizerError("tokenizer.json: added_tokens is no list.")
    return [added_token(token, None) for token in tokens]


def added_token(entry: Any, token: int | None) -> AddedToken:
    """One entry; token: its id, where it stands elsewhere."""
    values = _object(entry, "an added token")
    text, id = values.get("content"), values.get("id") if token is None else token
    if not isinstance(text, str) or type(id) is not int:
        raise TokenizerError("An added token has no content or no id.")
    return AddedToken(id, text, values.get("special") is True)


def _byte_level(content: dict[str, Any], model: dict[str, Any]) -> TokenTable:
    table = TokenTable.of_pieces("gpt2", _ids(model.get("vocab")))
    rule = rule_of(content.get("pre_tokenizer"), ignore_merges=model.get("ignore_merges") is True)
    if rule is None:
        table.notices.append(
            "How this tokenizer splits text is not known; it is split by the rule "
            f"{DEFAULT_RULE!r}, which may cost quality."
        )
    table.others["tokenizer.ggml.pre"] = rule or DEFAULT_RULE
    table.others["tokenizer.ggml.merges"] = [" ".join(pair) for pair in _merges(model.get("merges"))]
    return table


def _spaced(content: dict[str, Any], model: dict[str, Any]) -> TokenTable:
    """Scores fall with the rank of the first merge that makes a token: the same pair is joined next."""
    ids = _ids(model.get("vocab"))
    table = TokenTable.of_pieces("llama", ids, scored=True)
    assert table.scores is not None
    merges = _merges(model.get("merges"))
    for rank, (left, right) in reversed(list(enumerate(merges))):
        if (token := ids.get(left + right)) is not None:
            table.scores[token] = -float(rank)
    _set_byte_kinds(table, model.get("unk_token"))
    if n_more := _pairs_beyond(ids, merges):
        table.notices.append(
            f"{n_more:,} pairs of tokens are joined that this tokenizer would leave apart: "
            "model files hold scores, not merges."
        )
    table.others["tokenizer.ggml.pre"] = DEFAULT_RULE
    table.others["tokenizer.ggml.add_space_prefix"] = _has_space_prefix(content)
    return table


def _pairs_beyond(ids: dict[str, int], merges: list[tuple[str, str]]) -> int:
    """How many pairs of tokens make a token though no merge says so."""
    listed = set(merges)
    made = {left + right for left, right in merges}
    return sum(
        text[:cut] in ids and text[cut:] in ids and (text[:cut], text[cut:]) not in listed
        for text in made & ids.keys()
        for cut in range(1, len(text))
    )


def _unigram(content: dict[str, Any], model: dict[str, Any]) -> TokenTable:
    pieces = model.get("vocab")
    if not isinstance(pieces, list) or not all(map(_is_scored, pieces)):
        raise TokenizerError("tokenizer.json: its unigrams are no pairs of text and score.")
    table = TokenTable(
        "t5",
        [text for text, _ in pieces],
        [TokenKind.NORMAL] * len(pieces),
        [float(score) for _, score in pieces],
    )
    unknown = model.get("unk_id")
    if type(unknown) is int and 0 <= unknown < len(pieces):
        table.kinds[unknown] = TokenKind.UNKNOWN
    _set_byte_kinds(table, None)
    normalizers = steps_of(content.get("normalizer"), "normalizers")
    table.others |= {
        "tokenizer.ggml.add_space_prefix": _has_space_prefix(content),
        "tokenizer.ggml.remove_extra_whitespaces": any(
            step.get("type") in ("Replace", "Strip") for step in normalizers
        ),
    }
    if raw := next((step.get("precompiled_charsmap") for step in normalizers if _is_charsmap(step)), None):
        table.others["tokenizer.ggml.precompiled_charsmap"] = charsmap_array(_decoded(raw))
    return table


def _is_scored(piece: Any) -> bool:
    """[text, score]"""
    if not isinstance(piece, list) or len(piece) != 2:
        return False
    text, score = piece
    return isinstance(text, str) and is_number(score)


def _word_pieces(content: dict[str, Any], model: dict[str, Any]) -> TokenTable:
    """Readers expect the beginnings of words marked, where these files mark what continues one."""
    ids = _ids(model.get("vocab"))
    prefix = model.get("continuing_subword_prefix", "##")
    table = TokenTable.of_pieces("bert", ids)
    for text, token in ids.items():
        if text.startswith(prefix):
            table.texts[token] = text[len(prefix) :]
        elif not (text.startswith("[") and text.endswith("]")):
            table.texts[token] = SPACE + text
    if (unknown := ids.get(model.get("unk_token", "[UNK]"))) is not None:
        table.kinds[unknown] = TokenKind.UNKNOWN
    return table


def _set_byte_kinds(table: TokenTable, unknown: Any) -> None:
    for token, text in enumerate(table.texts):
        if len(text) == 6 and text.startswith("<0x") and text.endswith(">"):
            table.kinds[token] = TokenKind.BYTE
            if table.scores is not None:
                table.scores[token] = 0.0
        elif text == unknown:
            table.kinds[token] = TokenKind.UNKNOWN


def _has_space_prefix(content: dict[str, Any]) -> bool:
    """Whether a space is put before a text: by a step "Prepend", or by "Metaspace"."""
    if any(step.get("type") == "Prepend" for step in steps_of(content.get("normalizer"), "normalizers")):
        return True
    return any(
        step.get("prepend_scheme", "always" if step.get("add_prefix_space", True) else "never") != "never"
        for step in steps_of(content.get("pre_tokenizer"), "pretokenizers")
        if step.get("type") == "Metaspace"
    )


def _is_charsmap(step: dict[str, Any]) -> bool:
    return step.get("type") == "Precompiled" and isinstance(step.get("precompiled_charsmap"), str)


def _decoded(raw: str) -> bytes:
    try:
        return base64.b64decode(raw, validate=True)
    except binascii.Error as error:
        raise TokenizerError("tokenizer.json: its table of characters is damaged.") from error


def _ids(vocabulary: Any) -> dict[str, int]:
    values = _object(vocabulary, "vocab")
    if not all(type(token) is int for token in values.values()):
        raise TokenizerError("tokenizer.json: an id of its vocabulary is no number.")
    return values


def _merges(merges: Any) -> list[tuple[str, str]]:
    """Old files write "left right", new ones [left, right].  Raises `TokenizerError`."""
    if not isinstance(merges, list):
        raise TokenizerError("tokenizer.json has no merges.")
    return [_pair(merge) for merge in merges]


def _pair(merge: Any) -> tuple[str, str]:
    if isinstance(merge, str):
        merge = merge.split(" ")
    if not isinstance(merge, list) or len(merge) != 2 or not all(isinstance(part, str) for part in merge):
        raise TokenizerError(f"tokenizer.json: {str(merge)[:60]!r} is no merge of two tokens.")
    left, right = merge
    return left, right


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TokenizerError(f"tokenizer.json: {name} is no object.")
    return value
