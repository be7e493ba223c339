"""From the metadata of a model file to its tokenizer."""

from __future__ import annotations

from engine.errors import TokenizerError
from engine.gguf.metadata import Metadata
from engine.tokenizers.byte_pair import BytePairTokenizer, SpacedBytePairTokenizer
from engine.tokenizers.outline import choose_rule, kind_of
from engine.tokenizers.sentence_piece import SentencePieceTokenizer
from engine.tokenizers.tokenizer import Tokenizer
from engine.tokenizers.vocabulary import Vocabulary, decoded, read_vocabulary

_PREFIX = "tokenizer.ggml."


def load_tokenizer(metadata: Metadata) -> Tokenizer:
    """The tokenizer of a model file.

    Raises TokenizerError (vocabulary missing, incomplete or contradictory), UnsupportedModelError (a kind
    that is not built here, by name) and ModelFileError (values of a wrong type).
    """
    model = kind_of(metadata)
    if model == "gpt2":
        return _load_byte_pair(metadata, metadata.get_string(_PREFIX + "pre", ""))
    if model == "gemma4":
        return _load_byte_pair(metadata, "gemma4")
    return _load_sentence_piece(metadata, read_vocabulary(metadata))


def _load_byte_pair(metadata: Metadata, pre: str) -> BytePairTokenizer:
    rule, warnings = choose_rule(pre)
    key = _PREFIX + "merges"
    if key not in metadata:
        raise TokenizerError(
            f"{metadata.file_name}: the byte-pair vocabulary has no merges ({key} is missing)."
        )
    merges = decoded(metadata.get_byte_strings(key))
    kind = BytePairTokenizer if rule.byte_level else SpacedBytePairTokenizer
    return kind(
        read_vocabulary(metadata),
        merges,
        rule,
        pre=pre,
        add_bos=metadata.get_bool(_PREFIX + "add_bos_token", rule.add_bos),
        add_eos=metadata.get_bool(_PREFIX + "add_eos_token", False),
        warnings=warnings,
    )


def _load_sentence_piece(metadata: Metadata, vocabulary: Vocabulary) -> SentencePieceTokenizer:
    key = _PREFIX + "scores"
    if key not in metadata:
        raise TokenizerError(
            f"{metadata.file_name}: the SentencePiece vocabulary has no scores ({key} is missing)."
        )
    return SentencePieceTokenizer(
        vocabulary,
        metadata.get_floats(key),
        pre=metadata.get_string(_PREFIX + "pre", ""),
        add_bos=metadata.get_bool(_PREFIX + "add_bos_token", True),
        add_eos=metadata.get_bool(_PREFIX + "add_eos_token", False),
        add_space_prefix=metadata.get_bool(_PREFIX + "add_space_prefix", True),
    )
