"""From the metadata of a model file to its tokenizer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.errors import ModelFileError
from engine.gguf.metadata import Metadata, ValueType
from engine.tokenizers.byte_pair import BytePairTokenizer, SpacedBytePairTokenizer
from engine.tokenizers.character_map import CharacterMap
from engine.tokenizers.outline import SCORED, choose_rule, kind_of
from engine.tokenizers.rwkv import RwkvTokenizer
from engine.tokenizers.sentence_piece import SentencePieceTokenizer
from engine.tokenizers.tables import read_flag, read_merges, read_scores
from engine.tokenizers.tokenizer import Tokenizer
from engine.tokenizers.unigram import UnigramTokenizer
from engine.tokenizers.vocabulary import decoded, read_vocabulary
from engine.tokenizers.word_piece import WordPieceTokenizer

_PREFIX = "tokenizer.ggml."


def load_tokenizer(metadata: Metadata) -> Tokenizer:
    """The tokenizer of a model file.

    Raises TokenizerError (vocabulary missing, incomplete or contradictory), UnsupportedModelError (a kind
    that is not built here, by name) and ModelFileError (values of a wrong type).
    """
    tokenizer = _LOADERS[kind_of(metadata)](metadata)
    read_scores(metadata, tokenizer.n_tokens)  # most kinds need none, but wrong ones tell of a damaged file
    return tokenizer


def _load_byte_pair(metadata: Metadata) -> BytePairTokenizer:
    return _byte_pair_by_rule(metadata, _pre(metadata))


def _load_gemma4(metadata: Metadata) -> BytePairTokenizer:
    return _byte_pair_by_rule(metadata, "gemma4")


def _byte_pair_by_rule(metadata: Metadata, pre: str) -> BytePairTokenizer:
    rule, warnings = choose_rule(pre)
    vocabulary = read_vocabulary(metadata)
    merges, more = read_merges(metadata)
    kind = BytePairTokenizer if rule.byte_level else SpacedBytePairTokenizer
    return kind(
        vocabulary,
        decoded(merges),
        rule,
        pre=pre,
        add_bos=read_flag(metadata, "add_bos_token", rule.add_bos),
        add_eos=read_flag(metadata, "add_eos_token", False),
        warnings=(*warnings, *more),
    )


def _load_sentence_piece(metadata: Metadata) -> SentencePieceTokenizer:
    vocabulary = read_vocabulary(metadata)
    return SentencePieceTokenizer(
        vocabulary,
        read_scores(metadata, vocabulary.n_tokens, needed_by=SCORED["llama"]),
        pre=_pre(metadata),
        add_bos=read_flag(metadata, "add_bos_token", True),
        add_eos=read_flag(metadata, "add_eos_token", False),
        add_space_prefix=read_flag(metadata, "add_space_prefix", True),
    )


def _load_word_piece(metadata: Metadata) -> WordPieceTokenizer:
    lowercase = read_flag(metadata, "normalizer.lowercase", True)
    return WordPieceTokenizer(
        read_vocabulary(metadata),
        pre=_pre(metadata),
        lowercase=lowercase,
        strip_accents=read_flag(metadata, "normalizer.strip_accents", lowercase),
    )


def _load_unigram(metadata: Metadata) -> UnigramTokenizer:
    vocabulary = read_vocabulary(metadata)
    return UnigramTokenizer(
        vocabulary,
        read_scores(metadata, vocabulary.n_tokens, needed_by=SCORED["t5"]),
        CharacterMap(_character_map_bytes(metadata)),
        pre=_pre(metadata),
        add_bos=read_flag(metadata, "add_bos_token", False),
        add_eos=read_flag(metadata, "add_eos_token", True),
        add_space_prefix=read_flag(metadata, "add_space_prefix", True),
        remove_extra_whitespace=read_flag(metadata, "remove_extra_whitespaces", False),
    )


def _load_rwkv(metadata: Metadata) -> RwkvTokenizer:
    return RwkvTokenizer(
        read_vocabulary(metadata),
        pre=_pre(metadata),
        add_bos=read_flag(metadata, "add_bos_token", False),
        add_eos=read_flag(metadata, "add_eos_token", False),
    )


_LOADERS: dict[str, Callable[[Metadata], Tokenizer]] = {
    "gpt2": _load_byte_pair,
    "gemma4": _load_gemma4,
    "llama": _load_sentence_piece,
    "bert": _load_word_piece,
    "t5": _load_unigram,
    "rwkv": _load_rwkv,
}
"""One for each of `outline.KINDS`."""


def _pre(metadata: Metadata) -> str:
    return metadata.get_string(_PREFIX + "pre", "")


def _character_map_bytes(metadata: Metadata) -> bytes:
    key = _PREFIX + "precompiled_charsmap"
    if key not in metadata:
        return b""
    entry = metadata.values[key]
    if entry.element_type not in (ValueType.UINT8, ValueType.INT8):
        raise ModelFileError(f"{metadata.file_name}: {key} must be an array of bytes, not {entry.type_name}.")
    raw: bytes = entry.value.astype(np.uint8).tobytes()
    return raw
