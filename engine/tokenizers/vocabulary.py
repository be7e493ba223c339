"""The vocabulary of a model file: texts, kinds and special ids, read from the metadata and checked.

Keys and kind numbers are those of the public GGUF specification (``tokenizer.ggml.*``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from engine.errors import TokenizerError
from engine.gguf.metadata import Metadata


class TokenKind(IntEnum):
    """What a token is for, as the file numbers it."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


END_OF_GENERATION_TEXTS = frozenset(
    {
        "</s>",
        "<eos>",
        "<end_of_turn>",
        "<end_of_utterance>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<|im_end|>",
        "<|end|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|eot|>",
        "<EOT>",
        "<|end_of_turn|>",
        "<|return|>",
        "<\uff5cend\u2581of\u2581sentence\uff5c>",
    }
)
"""Texts by which model makers end a turn or a text; files often name only one of them as a key."""

_END_KEYS = ("eos", "eot", "eom")
_PREFIX = "tokenizer.ggml."


@dataclass(frozen=True)
class Vocabulary:
    """texts[id] and kinds[id] (of `TokenKind`), and the ids with a special meaning (None: not in the file).

    Bytes of a text that are no UTF-8 are kept as lone surrogates (`surrogateescape`), which clean text lacks.
    eog_ids: every id that ends a reply.  warnings: whole sentences for a person.
    """

    texts: list[str]
    kinds: NDArray[np.uint8]
    bos_id: int | None
    eos_id: int | None
    unk_id: int | None
    pad_id: int | None
    eog_ids: frozenset[int]
    template: str
    warnings: tuple[str, ...]

    @property
    def n_tokens(self) -> int:
        return len(self.texts)

    def ids_of_kind(self, *kinds: TokenKind) -> list[int]:
        ids: list[int] = np.flatnonzero(np.isin(self.kinds, kinds)).tolist()
        return ids


def read_vocabulary(metadata: Metadata) -> Vocabulary:
    """Read and check the vocabulary.

    Raises TokenizerError (no tokens, kinds of another count, unknown kind) and ModelFileError (values of a
    wrong type, special ids outside of the vocabulary).
    """
    key = _PREFIX + "tokens"
    if key not in metadata:
        raise TokenizerError(f"{metadata.file_name}: the file holds no vocabulary ({key} is missing).")
    texts = decoded(metadata.get_byte_strings(key))
    if not texts:
        raise TokenizerError(f"{metadata.file_name}: the vocabulary is empty.")
    kinds = _read_kinds(metadata, len(texts))

    special = {name: _special_id(metadata, name, len(texts)) for name in ("bos", *_END_KEYS)}
    template_key = "tokenizer.chat_template"
    template = metadata.get_string(template_key) if template_key in metadata else ""
    keyed = {token for name in _END_KEYS if (token := special[name]) is not None}
    eog_ids, warnings = _end_of_generation(texts, kinds, keyed, template)
    return Vocabulary(
        texts=texts,
        kinds=kinds,
        bos_id=special["bos"],
        eos_id=special["eos"],
        unk_id=_special_id(metadata, "unknown", len(texts)),
        pad_id=_special_id(metadata, "padding", len(texts)),
        eog_ids=eog_ids,
        template=template,
        warnings=warnings,
    )


def decoded(raw: list[bytes]) -> list[str]:
    """The texts of tokens; bytes that are no UTF-8 become lone surrogates."""
    try:
        return [*map(bytes.decode, raw)]  # a vocabulary without such bytes takes half the time
    except UnicodeDecodeError:
        return [item.decode("utf-8", "surrogateescape") for item in raw]


def _read_kinds(metadata: Metadata, n_tokens: int) -> NDArray[np.uint8]:
    key = _PREFIX + "token_type"
    if key not in metadata:
        return np.full(n_tokens, TokenKind.NORMAL, np.uint8)
    numbers = metadata.get_ints(key)
    if len(numbers) != n_tokens:
        raise TokenizerError(f"{metadata.file_name}: {key} has {len(numbers)} entries for {n_tokens} tokens.")
    numbers[numbers == 0] = TokenKind.NORMAL  # some writers leave 0 ("undefined") for ordinary tokens
    unknown = numbers[~np.isin(numbers, list(TokenKind))]
    if unknown.size:
        raise TokenizerError(f"{metadata.file_name}: {key} holds {unknown[0]}, which is no kind of token.")
    return numbers.astype(np.uint8)


def _special_id(metadata: Metadata, name: str, n_tokens: int) -> int | None:
    key = f"{_PREFIX}{name}_token_id"
    if key not in metadata:
        return None
    token = metadata.get_int(key)
    # Writers put -1 or 2**32 - 1 where there is no such token.
    if token in (-1, 2**32 - 1):
        return None
    return metadata.get_int(key, minimum=0, maximum=n_tokens - 1)


def _end_of_generation(
    texts: list[str], kinds: NDArray[np.uint8], keyed: set[int], template: str
) -> tuple[frozenset[int], tuple[str, ...]]:
    """The ids named by keys, and known texts: control tokens always, ordinary ones if the template uses them.

    The last rule serves files converted wrongly; without the template's word a chat that merely quotes such a
    text would end.
    """
    found = set(keyed)
    warnings: list[str] = []
    known = [token for token, text in enumerate(texts) if text in END_OF_GENERATION_TEXTS]
    for token in known:
        text = texts[token]
        if token in found:
            continue
        if kinds[token] in (TokenKind.CONTROL, TokenKind.USER_DEFINED):
            # Gemma 3 has </s> as an HTML tag: a user-defined text counts only where no key names an end.
            if kinds[token] == TokenKind.CONTROL or not keyed or text in template:
                found.add(token)
        elif kinds[token] == TokenKind.NORMAL and text in template:
            found.add(token)
            warnings.append(
                f"{text} is stored as ordinary text in this file; it is taken as the end of a reply."
            )
    return frozenset(found), tuple(warnings)
