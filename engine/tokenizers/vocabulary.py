"""The vocabulary of a model file: texts, kinds and special ids, read from the metadata and checked.

Keys and kind numbers are those of the public GGUF specification (``tokenizer.ggml.*``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.errors import TokenizerError
from engine.gguf.metadata import Metadata, ValueType
from engine.tokenizers.end_of_generation import end_of_generation
from engine.tokenizers.token_kind import TokenKind as TokenKind

_END_KEYS = ("eos", "eot", "eom")
_PREFIX = "tokenizer.ggml."
_MARKED = (TokenKind.CONTROL, TokenKind.UNKNOWN)
_SPECIAL_IDS = {
    "bos": ("bos", "cls"),
    **{name: (name,) for name in _END_KEYS},
    "unknown": ("unknown",),
    "padding": ("padding",),
    "separator": ("seperator", "separator"),  # converters misspell it
}
_DEFAULT_IDS = {
    "llama": {"bos": 1, "eos": 2, "unknown": 0},
    "bert": {"bos": 101, "separator": 102, "unknown": 100, "padding": 0},
    "t5": {"eos": 1, "unknown": 2, "padding": 0},
}
"""Special ids of a tokenizer kind where the file names none, as llama.cpp takes them."""


@dataclass(frozen=True)
class Vocabulary:
    """texts[id] and kinds[id] (of `TokenKind`), and the ids with a special meaning (None: not in the file).

    Bytes of a text that are no UTF-8 are kept as lone surrogates (`surrogateescape`), which clean text lacks.
    eog_ids: every id that ends a reply.  rstrip_ids: special tokens that swallow the white space behind them.
    warnings: whole sentences for a person.
    """

    texts: list[str]
    kinds: NDArray[np.uint8]
    bos_id: int | None
    eos_id: int | None
    unk_id: int | None
    pad_id: int | None
    sep_id: int | None
    eog_ids: frozenset[int]
    rstrip_ids: frozenset[int]
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

    A special id outside of the vocabulary counts as none, with a warning.
    Raises TokenizerError (no tokens, kinds of another count, unknown kind) and ModelFileError (values of a
    wrong type).
    """
    key = _PREFIX + "tokens"
    if key not in metadata:
        raise TokenizerError(f"{metadata.file_name}: the file holds no vocabulary ({key} is missing).")
    texts = decoded(metadata.get_byte_strings(key))
    if not texts:
        raise TokenizerError(f"{metadata.file_name}: the vocabulary is empty.")
    kinds = _read_kinds(metadata, len(texts))

    special, id_warnings = _read_special_ids(metadata, kinds)
    template_key = "tokenizer.chat_template"
    template = metadata.get_string(template_key) if template_key in metadata else ""
    keyed = {token for name in _END_KEYS if (token := special[name]) is not None}
    eog_ids, warnings = end_of_generation(texts, kinds, keyed, template)
    return Vocabulary(
        texts=texts,
        kinds=kinds,
        bos_id=special["bos"],
        eos_id=special["eos"],
        unk_id=special["unknown"],
        pad_id=special["padding"],
        sep_id=special["separator"],
        eog_ids=eog_ids,
        rstrip_ids=_swallowing_tokens(metadata, texts, kinds),
        template=template,
        warnings=(*id_warnings, *warnings),
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
    if metadata.values[key].element_type is not ValueType.INT32:
        raise TokenizerError(
            f"{metadata.file_name}: {key} is an {metadata.values[key].type_name}, not of int32."
        )
    if len(numbers) != n_tokens:
        raise TokenizerError(f"{metadata.file_name}: {key} has {len(numbers)} entries for {n_tokens} tokens.")
    numbers[numbers == 0] = TokenKind.NORMAL  # some writers leave 0 ("undefined") for ordinary tokens
    unknown = numbers[~np.isin(numbers, list(TokenKind))]
    if unknown.size:
        raise TokenizerError(f"{metadata.file_name}: {key} holds {unknown[0]}, which is no kind of token.")
    return numbers.astype(np.uint8)


def _read_special_ids(
    metadata: Metadata, kinds: NDArray[np.uint8]
) -> tuple[dict[str, int | None], list[str]]:
    """The id for each name of _SPECIAL_IDS, and what is wrong with some of them."""
    model_key = f"{_PREFIX}model"
    model = metadata.get_string(model_key) if model_key in metadata else ""
    ids: dict[str, int | None] = {}
    warnings: list[str] = []
    for name, spellings in _SPECIAL_IDS.items():
        keys = [key for spelling in spellings if (key := f"{_PREFIX}{spelling}_token_id") in metadata]
        if not keys:
            default = _DEFAULT_IDS.get(model, {}).get(name)
            # Only what the file marks as special: the numbers are a convention of the first models.
            marked = default is not None and default < len(kinds) and kinds[default] in _MARKED
            ids[name] = default if marked else None
            continue
        token = metadata.get_int(keys[0])
        ids[name] = token if 0 <= token < len(kinds) else None
        # Writers put -1 or 2**32 - 1 where there is no such token.
        if ids[name] is None and token not in (-1, 2**32 - 1):
            warnings.append(
                f"{keys[0]} is {token}, but the vocabulary ends at {len(kinds) - 1}: it counts as missing."
            )
    return ids, warnings


def _swallowing_tokens(metadata: Metadata, texts: list[str], kinds: NDArray[np.uint8]) -> frozenset[int]:
    """Phi-3 marks its special tokens so ("rstrip" in its tokenizer.json), which model files cannot say.

    Like llama.cpp, this goes by the model's name.
    """
    key = "general.name"
    name = metadata.get_string(key).lower() if key in metadata else ""
    if "phi-3" not in name and "phi3" not in name:
        return frozenset()
    special = (TokenKind.CONTROL, TokenKind.USER_DEFINED)
    marked = np.flatnonzero(np.isin(kinds, special)).tolist()
    return frozenset(token for token in marked if texts[token] not in ("<unk>", "<s>", "<|endoftext|>"))
