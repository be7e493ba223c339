"""How byte-level vocabularies split a text into words before any merging.

A rule is a list of patterns, applied one after the other: each splits every fragment left by the one before
into its matches and the gaps between them.  The patterns are part of the published models (`tokenizer.json`
of each family); `tokenizer.ggml.pre` names the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import regex

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# {digits}: how a run of digits is cut.
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}"
    r"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class PreTokenizer:
    """patterns: see the module.  ignore_merges: a whole word that is a token is taken without merging.
    add_bos: whether the family begins with BOS where the file does not say."""

    patterns: tuple[regex.Pattern[str], ...]
    ignore_merges: bool = False
    add_bos: bool = False

    def split(self, text: str) -> list[str]:
        """The words of text; joined they are text again."""
        words = [text] if text else []
        for pattern in self.patterns:
            words = [word for fragment in words for word in _split(pattern, fragment)]
        return words


def _split(pattern: regex.Pattern[str], text: str) -> list[str]:
    words: list[str] = []
    position = 0
    for match in pattern.finditer(text):
        start, end = match.span()
        if start > position:
            words.append(text[position:start])
        if end > start:
            words.append(text[start:end])
        position = end
    if position < len(text):
        words.append(text[position:])
    return words


def _rule(patterns: Sequence[str], ignore_merges: bool = False, add_bos: bool = False) -> PreTokenizer:
    compiled = tuple(regex.compile(pattern) for pattern in patterns)
    return PreTokenizer(compiled, ignore_merges, add_bos)


_gpt2 = _rule([_GPT2])
_single_digits = _rule([r"\p{N}", _GPT2])
_llama3 = _rule([_LLAMA3.format(digits=r"\p{N}{1,3}")], ignore_merges=True, add_bos=True)
_qwen2 = _rule([_LLAMA3.format(digits=r"\p{N}")])
_deepseek_coder = _rule([r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}"])
_falcon = _rule([r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, r"[0-9][0-9][0-9]"])

PRE_TOKENIZERS: dict[str, PreTokenizer] = {
    "gpt-2": _gpt2,
    "mpt": _gpt2,
    "olmo": _gpt2,
    "phi-2": _gpt2,
    "smollm": _single_digits,
    "starcoder": _single_digits,
    "refact": _single_digits,
    "codeshell": _single_digits,
    "command-r": _single_digits,
    "llama-bpe": _llama3,
    "llama3": _llama3,
    "llama-v3": _llama3,
    "falcon3": _llama3,
    "qwen2": _qwen2,
    "deepseek-r1-qwen": _qwen2,
    "stablelm2": _qwen2,
    "deepseek-coder": _deepseek_coder,
    "falcon": _falcon,
}
"""The rules by the names that model files use."""

FALLBACK = "gpt-2"
"""The rule taken, with a warning, when the file names none or one that is not known here."""
