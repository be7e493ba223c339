"""What reader and writer agree on beyond single values: limits, alignment, the keys of models in parts.

Names, defaults and the rules of alignment: the public GGUF specification.  Limits that it leaves open are far
above every published model, so that they only stop what is damaged.
"""

from __future__ import annotations

from engine.errors import ModelFileError
from engine.gguf.metadata import Metadata, ValueType

ALIGNMENT_KEY = "general.alignment"
DEFAULT_ALIGNMENT = 32
MAX_ALIGNMENT = 1 << 20

MAX_KEYS = 1 << 16
MAX_KEY_BYTES = (1 << 16) - 1
MAX_TENSORS = 1 << 16
MAX_NAME_BYTES = 64
MAX_DIMENSIONS = 4

PART_KEY = "split.no"
"""Which part of a model in several files this is; counts from 0, while file names count from 1."""
PART_COUNT_KEY = "split.count"
TENSOR_COUNT_KEY = "split.tensors.count"
"""Tensors of all parts together."""
SPLIT_KEYS = frozenset({PART_KEY, PART_COUNT_KEY, TENSOR_COUNT_KEY})


def alignment_of(metadata: Metadata) -> int:
    """Bytes that tensor data is aligned to: a uint32 power of two, 32 where the key is absent.

    Raises ModelFileError.
    """
    if ALIGNMENT_KEY not in metadata:
        return DEFAULT_ALIGNMENT
    value = metadata.values[ALIGNMENT_KEY]
    if value.type is not ValueType.UINT32:
        raise ModelFileError(
            f"{metadata.file_name}: {ALIGNMENT_KEY} is of type {value.type_name}, not uint32."
        )
    alignment = metadata.get_int(ALIGNMENT_KEY, minimum=1, maximum=MAX_ALIGNMENT)
    if alignment & (alignment - 1):
        raise ModelFileError(
            f"{metadata.file_name}: {ALIGNMENT_KEY} is {alignment}, which is no power of two."
        )
    return alignment


def aligned(position: int, alignment: int) -> int:
    """The first multiple of alignment that is not before position."""
    return -(-position // alignment) * alignment


def is_name(name: str) -> bool:
    """Whether a key or a tensor may be called so: something that can be printed on one line."""
    return bool(name) and name.isprintable()
