"""How a ``tokenizer.json`` splits a text, as the name of a rule that model files use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from engine.tokenizers import patterns as published
from engine.tokenizers.rules import find_rule

ONE_DIGIT, DIGITS = r"\p{N}", r"\p{N}+"
PUNCTUATION = r"[\p{P}\$\+<=>\^~\|`]+"
"""What the step "Punctuation" isolates."""


def steps_of(part: Any, inner: str) -> list[dict[str, Any]]:
    """The steps of a normalizer, pre-tokenizer, post-processor or decoder: of a "Sequence" its parts.

    inner: the key of these parts.
    """
    if not isinstance(part, dict):
        return []
    if part.get("type") == "Sequence":
        parts = part.get(inner)
        return [step for step in parts if isinstance(step, dict)] if isinstance(parts, list) else []
    return [part]


def is_byte_level(pre_tokenizer: Any) -> bool:
    return any(step.get("type") == "ByteLevel" for step in steps_of(pre_tokenizer, "pretokenizers"))


def rule_of(pre_tokenizer: Any, *, ignore_merges: bool) -> str | None:
    """The name of the rule, None where none of those known splits in this way."""
    patterns = list(_patterns(steps_of(pre_tokenizer, "pretokenizers")))
    if None in patterns:
        return None
    known = [pattern for pattern in patterns if pattern is not None]
    # Runs of digits that a later step cuts in threes need no step of their own.
    without_digits = [pattern for pattern in known if pattern != DIGITS]
    for flag in (ignore_merges, not ignore_merges) if ignore_merges else (False,):
        for candidate in (known, without_digits):
            if (name := find_rule(candidate, ignore_merges=flag)) is not None:
                return name
    return None


def _patterns(steps: list[dict[str, Any]]) -> Iterator[str | None]:
    """One pattern for each step; None for a step that no rule has."""
    for step in steps:
        kind = step.get("type")
        if kind == "ByteLevel":
            if step.get("use_regex", True):
                yield published.GPT2
        elif kind == "Digits":
            yield ONE_DIGIT if step.get("individual_digits") else DIGITS
        elif kind == "Punctuation":
            yield PUNCTUATION
        elif kind == "Split":
            yield _split_pattern(step.get("pattern"))
        else:
            yield None


def _split_pattern(pattern: Any) -> str | None:
    if not isinstance(pattern, dict):
        return None
    if isinstance(pattern.get("Regex"), str):
        return str(pattern["Regex"])
    return re.escape(str(pattern["String"])) if isinstance(pattern.get("String"), str) else None
