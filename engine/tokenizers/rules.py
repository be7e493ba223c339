"""The table of rules by which byte-pair vocabularies split a text, by the names in `tokenizer.ggml.pre`.

Names, aliases and the two flags are those of public converters and of llama.cpp's vocabulary loader.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine.tokenizers import patterns as published
from engine.tokenizers.pretokenize import DigitGroups, PreTokenizer, Rewritten

_IDS = "ids of published texts"
_CHECKED_WORDS = "words, as the library `tokenizers` splits by the same patterns"

RULES: tuple[PreTokenizer, ...] = (
    PreTokenizer(
        "default",
        (r"[\p{P}\$\+<=>\^~\|]+", published.GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"),
        checked=_CHECKED_WORDS,
    ),
    PreTokenizer(
        "gpt-2",
        (published.GPT2,),
        (
            *("mpt", "olmo", "phi-2", "jais", "exaone4", "trillion", "gigachat", "a.x-4.0", "mellum"),
            *("granite-docling", "modern-bert", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de"),
            *("jina-v1-en", "jina-v2-code", "roberta-bpe"),
        ),
        checked=f"{_IDS} (gpt-2, mpt)",
    ),
    PreTokenizer(
        "smollm",
        (r"\p{N}", published.GPT2),
        (
            *("starcoder", "refact", "command-r", "codeshell", "exaone", "minerva", "minerva-7b"),
            "mellum2",
        ),
        checked=f"{_IDS} (starcoder, refact, command-r), SmolLM2",
    ),
    PreTokenizer(
        "llama-bpe",
        (published.LLAMA3,),
        (
            *("llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"),
            "jina-v5-nano",
        ),
        ignore_merges=True,
        add_bos=True,
        checked=f"{_IDS} (llama-bpe)",
    ),
    PreTokenizer(
        "dbrx",
        (published.LLAMA3,),
        ("smaug", "smaug-bpe", "chatglm-bpe"),
        checked=f"{_IDS} (llama-bpe has the same pattern)",
    ),
    PreTokenizer(
        "glm4",
        (published.LLAMA3,),
        ("glm5",),
        ignore_merges=True,
        checked=f"{_IDS} (llama-bpe has the same pattern and takes whole words too)",
    ),
    PreTokenizer(
        "qwen2",
        (published.QWEN2,),
        (
            *("stablelm2", "deepseek-r1-qwen", "megrez", "hunyuan", "kormo", "f2llmv2", "solar-open"),
            "grok-2",
        ),
        checked=f"{_IDS} (qwen2)",
    ),
    PreTokenizer("qwen35", (published.QWEN35,), checked=f"{_IDS} (qwen35)"),
    PreTokenizer(
        "deepseek-llm",
        (
            r"[\r\n]",
            rf"\s?[{published.CASED_LETTERS}]+",
            "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
            Rewritten(r"\s+$", r"(?<!\s)\s++$"),
            published.KANJI_AND_HANGUL,
            r"\p{N}+",
        ),
        checked=f"{_IDS} (deepseek-llm)",
    ),
    PreTokenizer(
        "deepseek-coder",
        (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", published.KANJI_AND_HANGUL, r"\p{N}"),
        checked=f"{_IDS} (deepseek-coder)",
    ),
    PreTokenizer(
        "deepseek-v3",
        (r"\p{N}{1,3}", published.KANJI_AND_KANA, published.DEEPSEEK3),
        ("hunyuan-dense", "joyai-llm", "hy_v4"),
        checked=_CHECKED_WORDS,
    ),
    PreTokenizer(
        "falcon", (r"[\p{P}\$\+<=>\^~\|`]+", published.GPT2, r"[0-9][0-9][0-9]"), checked=f"{_IDS} (falcon)"
    ),
    PreTokenizer("bloom", (published.BLOOM,), ("poro", "poro-chat", "gpt3-finnish"), checked=_CHECKED_WORDS),
    PreTokenizer("viking", (published.BLOOM, r"\p{N}"), checked=_CHECKED_WORDS),
    PreTokenizer("tekken", (published.TEKKEN,), ignore_merges=True, add_bos=True, checked=_CHECKED_WORDS),
    PreTokenizer(
        "gpt-4o", (published.O200K,), ("llama4", "kanana2", "talkie", "minimax-m2"), checked=_CHECKED_WORDS
    ),
    PreTokenizer("granite-embed-multi-97m", (published.O200K,), ignore_merges=True, checked=_CHECKED_WORDS),
    PreTokenizer("kimi-k2", (published.KIMI,), checked=_CHECKED_WORDS),
    PreTokenizer(
        "superbpe",
        (r"\p{N}+", DigitGroups(r"(?=(\d{3})+(?!\d))", runs=r"\d+", isolated=False)),
        checked=_CHECKED_WORDS,
    ),
    PreTokenizer(
        "tiny_aya",
        (
            DigitGroups(
                r"\d{1,3}(?=(?:\d{3})*\b)", runs=r"(?<!\d)\d++(?![\p{L}\p{M}\p{N}\p{Pc}])", isolated=True
            ),
            published.O200K,
        ),
        ("cohere2moe",),
        checked=_CHECKED_WORDS,
    ),
    PreTokenizer("bailingmoe", (published.BAILING,), ("bailingmoe2", "llada-moe"), checked=_CHECKED_WORDS),
    PreTokenizer("seed-coder", (published.SEED_CODER,), checked=_CHECKED_WORDS),
    PreTokenizer("exaone-moe", (published.EXAONE_MOE,), checked=_CHECKED_WORDS),
    PreTokenizer("jais-2", (published.JAIS2,), checked=_CHECKED_WORDS),
    PreTokenizer(
        "minicpm5",
        (
            r"\p{N}{1,3}",
            published.DIGITS_AND_WORDS,
        ),
        ignore_merges=True,
        checked=_CHECKED_WORDS,
    ),
    PreTokenizer(
        "youtu",
        (
            published.YOUTU_SCRIPTS,
            published.YOUTU,
        ),
        ignore_merges=True,
        checked=_CHECKED_WORDS,
    ),
    PreTokenizer(
        "ufakzeka",
        (published.NO_CONTRACTIONS,),
        checked=_CHECKED_WORDS,
    ),
    PreTokenizer("laguna", (published.LINES, published.QWEN2), checked=_CHECKED_WORDS),
    PreTokenizer("gemma4", (published.LINES,), add_bos=True, byte_level=False, checked=f"{_IDS} (gemma-4)"),
)
"""Every rule; of those with the same patterns, the commonest stands first."""

PRE_TOKENIZERS: dict[str, PreTokenizer] = {
    name: rule for rule in RULES for name in (rule.name, *rule.aliases)
}
"""The rules by each name that model files use."""

FALLBACK = PRE_TOKENIZERS["default"]
"""The rule taken, with a warning, when the file names none or one that is not known here."""


def find_rule(patterns: Sequence[str], *, ignore_merges: bool = False) -> str | None:
    r"""The name of the rule that splits by these patterns, applied in this order; None: no such rule.

    patterns: as `tokenizer.json` lists them.  Differences of spelling do not matter: line breaks as such or
    as escapes, groups that capture, cases that are listed (`'[sS]`) or ignored (`(?i:'s`), and a last
    alternative `\s+`, which only takes what is left.  For a step "Digits" (individual) give `\p{N}`, for
    "ByteLevel" with its own pattern that of GPT-2.
    ignore_merges: of rules with the same patterns, the one that has this flag.
    """
    wanted = [_spelling(pattern) for pattern in patterns]
    for rule in RULES:
        if rule.ignore_merges == ignore_merges and [*map(_spelling, rule.patterns)] == wanted:
            return rule.name
    return None


def _spelling(pattern: str) -> str:
    """One spelling for patterns that mean the same."""
    pattern = pattern.replace("\r", r"\r").replace("\n", r"\n").removesuffix(r"|\s+")
    pattern = re.sub(r"(?<!\\)\((?!\?)", "(?:", pattern)
    pattern = re.sub(r"\[([a-z])([A-Z])\]", lambda m: m[1] if m[1].upper() == m[2] else m[0], pattern)
    pattern = pattern.replace("(?:'s|'t|'re|'ve|'m|'ll|'d)", published.CONTRACTIONS)
    # Escapes and counts that change nothing.
    return pattern.replace(r"\p{N}{1}", r"\p{N}").replace(r"\-", "-").replace(r"\"", '"')
