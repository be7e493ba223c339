"""The tables beside the texts of a vocabulary, merges and scores, and its flags: read and checked.

`outline_tokenizer` asks what `load_tokenizer` asks, so that what is told of a file is what loading will say.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.errors import TokenizerError
from engine.gguf.metadata import Metadata

_PREFIX = "tokenizer.ggml."

_ENDS = ("add_bos_token", "add_eos_token")
FLAGS = {
    "gpt2": _ENDS,
    "gemma4": _ENDS,
    "llama": (*_ENDS, "add_space_prefix"),
    "bert": ("normalizer.lowercase", "normalizer.strip_accents"),
    "t5": (*_ENDS, "add_space_prefix", "remove_extra_whitespaces"),
    "rwkv": _ENDS,
}
"""Keys of truth values that each kind of vocabulary asks for."""


def read_merges(metadata: Metadata) -> tuple[list[bytes], tuple[str, ...]]:
    """Merges "left right" in order of rank, and warnings as whole sentences about those that are of no use.

    Raises TokenizerError (missing, none at all) and ModelFileError (of another type).
    """
    key = _PREFIX + "merges"
    if key not in metadata:
        raise TokenizerError(
            f"{metadata.file_name}: the byte-pair vocabulary has no merges ({key} is missing)."
        )
    merges = metadata.get_byte_strings(key)
    if not merges:
        raise TokenizerError(
            f"{metadata.file_name}: the file lists no merges ({key}), so words cannot be put together."
        )
    known = set(metadata.get_byte_strings(_PREFIX + "tokens"))
    n_broken = n_lost = 0
    for merge in merges:
        joined = merge.replace(b" ", b"")
        if joined == merge:
            n_broken += 1
        elif joined not in known:
            n_lost += 1
    of_all = f"of {len(merges):,} merges of the vocabulary"
    warnings = []
    if n_broken:
        warnings.append(f"{n_broken:,} {of_all} name no pair and are left out.")
    if n_lost:
        warnings.append(f"{n_lost:,} {of_all} lead to no token: what they join is spelt byte by byte.")
    return merges, tuple(warnings)


def read_scores(metadata: Metadata, n_tokens: int, *, needed_by: str = "") -> NDArray[np.float32]:
    """float32[n_tokens]; empty where the file has none and no kind of vocabulary needs them.

    needed_by: the kind that does, for the message.
    Raises TokenizerError (missing, of another length, no numbers) and ModelFileError (of another type).
    """
    key = _PREFIX + "scores"
    if key not in metadata:
        if needed_by:
            raise TokenizerError(
                f"{metadata.file_name}: the {needed_by} vocabulary has no scores ({key} is missing)."
            )
        return np.empty(0, np.float32)
    scores = metadata.get_floats(key)
    if len(scores) != n_tokens:
        raise TokenizerError(f"{metadata.file_name}: {key} has {len(scores)} entries for {n_tokens} tokens.")
    if needed_by and np.isnan(scores).any():
        raise TokenizerError(f"{metadata.file_name}: {key} holds what is no number.")
    return scores


def read_flag(metadata: Metadata, name: str, default: bool) -> bool:
    """The value of one of FLAGS.  Raises ModelFileError where it is no truth value."""
    return metadata.get_bool(_PREFIX + name, default)
