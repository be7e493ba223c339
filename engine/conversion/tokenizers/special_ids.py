"""Which tokens begin and end texts, and whether a tokenizer adds them: from the small files of a checkpoint.

``tokenizer_config.json`` and ``special_tokens_map.json`` name them by their texts, ``config.json`` and
``generation_config.json`` by their ids.
"""

from __future__ import annotations

from typing import Any

from engine.conversion.config import Config
from engine.conversion.tokenizers.splitting import steps_of
from engine.conversion.tokenizers.token_table import TokenTable
from engine.tokenizers.end_of_generation import END_OF_GENERATION_TEXTS

KEYS = {
    "bos": "bos",
    "eos": "eos",
    "unk": "unknown",
    "sep": "seperator",
    "pad": "padding",
    "cls": "cls",
    "mask": "mask",
}
"""Names in these files, and in the metadata (with its spelling)."""


def special_ids(
    table: TokenTable, config: Config, tokenizer: Config, special_map: Config, generation: Config
) -> dict[str, object]:
    """``tokenizer.ggml.*_token_id``."""
    ids: dict[str, int] = {}
    for name, key in KEYS.items():
        text = _text(tokenizer.get(f"{name}_token")) or _text(special_map.get(f"{name}_token"))
        found = table.id_of(text) if text else None
        if found is None:
            found = next(iter(_numbers(config.get(f"{name}_token_id"), table)), None)
        if found is not None:
            ids[key] = found
    ends = _numbers(generation.get("eos_token_id"), table) + _numbers(config.get("eos_token_id"), table)
    # A reply may end by several tokens; those with well-known texts are found by every reader.
    others = [
        token
        for token in dict.fromkeys(ends)
        if token != ids.get("eos") and table.texts[token] not in END_OF_GENERATION_TEXTS
    ]
    ids |= dict(zip(("eot", "eom"), others, strict=False))
    if len(others) > 2:
        names = ", ".join(repr(table.texts[token]) for token in others[2:])
        table.notices.append(f"Replies should also end at {names}, which a model file cannot say.")
    return {f"tokenizer.ggml.{name}_token_id": token for name, token in ids.items()}


def added_by_itself(content: dict[str, Any], tokenizer: Config, ids: dict[str, object]) -> dict[str, object]:
    """``tokenizer.ggml.add_bos_token`` and ``add_eos_token``, as far as the files tell.

    content: of ``tokenizer.json``, whose post-processor does it; the older flags of ``tokenizer_config.json``
    count where there is none.
    """
    flags: dict[str, bool] = {}
    for name in ("bos", "eos"):
        flag = tokenizer.get(f"add_{name}_token")
        if type(flag) is bool:
            flags[name] = flag
    for step in steps_of(content.get("post_processor"), "processors"):
        kind = step.get("type")
        if kind == "ByteLevel":
            flags.setdefault("bos", False)
            flags.setdefault("eos", False)
        elif kind == "TemplateProcessing":
            parts = step.get("single")
            names = [_special_name(part) for part in parts] if isinstance(parts, list) else []
            flags["bos"] = bool(names) and names[0] is not None
            flags["eos"] = len(names) > 1 and names[-1] is not None
    return {
        f"tokenizer.ggml.add_{name}_token": flag
        for name, flag in flags.items()
        if not flag or f"tokenizer.ggml.{name}_token_id" in ids
    }


def _special_name(part: Any) -> str | None:
    token = part.get("SpecialToken") if isinstance(part, dict) else None
    return token.get("id") if isinstance(token, dict) else None


def _text(value: Any) -> str | None:
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else None


def _numbers(value: Any, table: TokenTable) -> list[int]:
    """One id or several, those that the vocabulary has."""
    values = value if isinstance(value, list) else [value]
    return [token for token in values if type(token) is int and 0 <= token < len(table.texts)]
