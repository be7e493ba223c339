"""Scales that are infinite or no number: a model file that holds one is damaged."""

from __future__ import annotations

import numpy as np

from engine.errors import ModelFileError
from engine.quantisation.registry import FORMATS
from engine.quantisation.unpacking import Bytes, numbers

_BLOCKS_AT_ONCE = 1 << 15

_EXPONENT = np.uint16(0x7C00)


def has_damaged_scale(type_name: str, blocks: Bytes) -> bool:
    """blocks: uint8[n, block_bytes].  False where the type has no scales.  Raises KeyError."""
    format = FORMATS[type_name]
    for start in range(0, len(blocks), _BLOCKS_AT_ONCE):
        part = blocks[start : start + _BLOCKS_AT_ONCE]
        for at in format.halves_at:
            if (numbers(part[:, at : at + 2], "<u2") & _EXPONENT == _EXPONENT).any():
                return True
        if format.scales is not None and not np.isfinite(format.scales(part)).all():
            return True
    return False


def damaged_scale(tensor_name: str) -> ModelFileError:
    """The error to raise."""
    return ModelFileError(f"The tensor {tensor_name} holds a scale that is infinite or no number.")
