"""What tokenizer a file asks for and which rule it gets, and why, without building its tables."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import TokenizerError, UnsupportedModelError
from engine.gguf.metadata import Metadata
from engine.tokenizers.pretokenize import PreTokenizer
from engine.tokenizers.rules import FALLBACK, PRE_TOKENIZERS
from engine.tokenizers.spaces import read_byte_ids
from engine.tokenizers.tables import FLAGS, read_flag, read_merges, read_scores
from engine.tokenizers.vocabulary import read_vocabulary

_PREFIX = "tokenizer.ggml."

KINDS: dict[str, str] = {
    "gpt2": "byte-level byte pairs",
    "gemma4": "byte pairs of whole characters",
    "llama": "SentencePiece byte pairs with scores",
    "bert": "WordPiece",
    "t5": "Unigram",
    "rwkv": "longest tokens of RWKV",
}
"""`tokenizer.ggml.model` of every kind that `load_tokenizer` builds, and what it is."""

SPLIT_BY_RULE = frozenset({"gpt2", "gemma4"})
"""Kinds that split a text into words first, by a rule of `rules.py`."""


SCORED = {"llama": "SentencePiece", "t5": "Unigram"}
"""Kinds that need scores, as messages call them."""


@dataclass(frozen=True, slots=True)
class TokenizerOutline:
    """model, pre: what the file names (`tokenizer.ggml.model` and `.pre`), "" where it names nothing.

    rule: by which text is split into words; "" for the kinds that need none.
    reason: one sentence on why that rule.  warnings: what `Tokenizer.warnings` will be.
    """

    model: str
    pre: str
    rule: str
    reason: str
    n_tokens: int
    warnings: tuple[str, ...]


def kind_of(metadata: Metadata) -> str:
    """A key of KINDS.  Raises TokenizerError where the file names none, UnsupportedModelError for another."""
    key = _PREFIX + "model"
    if key not in metadata:
        raise TokenizerError(f"{metadata.file_name}: the file names no tokenizer ({key} is missing).")
    model = metadata.get_string(key)
    if model in ("no_vocab", "none"):
        raise UnsupportedModelError(
            f"{metadata.file_name}: the file holds no vocabulary (its tokenizer is {model!r}), so that no "
            "text can be given to it.",
            "Choose a language model; models of sound or images come without a vocabulary.",
        )
    if model not in KINDS:
        raise UnsupportedModelError(
            f"{metadata.file_name}: the tokenizer kind {model!r} is not supported.",
            f"Choose a model with a tokenizer of one of these kinds: {', '.join(KINDS)}.",
        )
    return model


def outline_tokenizer(metadata: Metadata) -> TokenizerOutline:
    """Reads and checks what takes little time: kind, rule, vocabulary.

    Raises what `load_tokenizer` raises for another kind and for a vocabulary that is damaged.
    """
    model = kind_of(metadata)
    pre = "gemma4" if model == "gemma4" else metadata.get_string(_PREFIX + "pre", "")
    vocabulary = read_vocabulary(metadata)
    name, reason = "", "This kind of vocabulary needs no rule for splitting text."
    warnings: tuple[str, ...] = ()
    if model in SPLIT_BY_RULE:
        rule, warnings = choose_rule(pre)
        name, reason = rule.name, _why(pre, rule)
        warnings += read_merges(metadata)[1]
    if model in SCORED:
        read_byte_ids(vocabulary)
    read_scores(metadata, vocabulary.n_tokens, needed_by=SCORED.get(model, ""))
    for flag in FLAGS[model]:
        read_flag(metadata, flag, False)
    return TokenizerOutline(model, pre, name, reason, vocabulary.n_tokens, (*vocabulary.warnings, *warnings))


def choose_rule(pre: str) -> tuple[PreTokenizer, tuple[str, ...]]:
    """The rule that a file gets which names pre ("" for none), and what a person should be told."""
    if pre in PRE_TOKENIZERS:
        return PRE_TOKENIZERS[pre], ()
    problem = (
        f"The rule {pre!r} for splitting text is not known"
        if pre
        else "The file does not say how to split text"
    )
    return FALLBACK, (
        f"Tokenizer type unknown, quality may suffer: {problem}, so that of {FALLBACK.name!r} is used.",
    )


def _why(pre: str, rule: PreTokenizer) -> str:
    if pre == rule.name:
        return "The file names it."
    if pre in rule.aliases:
        return f"The file names {pre}, which splits in the same way."
    return f"The file names {pre!r}, which is not known here." if pre else "The file names none."
