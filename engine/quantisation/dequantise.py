"""Quantised weights back to float32, exactly as the formats define it: the truth the kernels are tested by.

Layouts: the public GGUF specification and its reference implementation, whose order of float32 operations
is kept so that results are equal bit for bit.  The formulas are in one file per family of types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import UnsupportedModelError
from engine.quantisation.registry import FORMATS
from engine.quantisation.unpacking import Bytes, Floats
from engine.tensor import Tensor

_BLOCKS_AT_ONCE = 1 << 15
"""Keeps the temporary arrays of a large tensor to some tens of MiB."""


def dequantise(tensor: Tensor) -> Floats:
    """float32[shape] of a whole tensor.  Raises UnsupportedModelError for a type without a formula here."""
    decode = _formula(tensor)
    blocks = tensor.as_bytes().reshape(-1, tensor.type.block_bytes)
    result = np.empty((len(blocks), tensor.type.block_size), np.float32)
    with np.errstate(all="ignore"):  # damaged scales are infinite or no numbers, and so are their products
        for start in range(0, len(blocks), _BLOCKS_AT_ONCE):
            part = slice(start, start + _BLOCKS_AT_ONCE)
            result[part] = decode(blocks[part])
    return result.reshape(tensor.shape)


def dequantise_rows(tensor: Tensor, rows: NDArray[np.integer[Any]]) -> Floats:
    """float32[len(rows), columns] of some rows of a matrix, in the order asked for.

    Raises IndexError for a row outside the matrix, UnsupportedModelError as `dequantise`.
    """
    decode = _formula(tensor)
    n_rows, n_columns = tensor.shape
    # A negative row would silently count from the end.
    if rows.size and (int(rows.min()) < 0 or int(rows.max()) >= n_rows):
        raise IndexError(f"{tensor.name} has no row {rows.min()} or {rows.max()}; it has {n_rows} rows")
    if not rows.size:
        return np.empty((0, n_columns), np.float32)
    with np.errstate(all="ignore"):
        return decode(tensor.as_bytes()[rows]).reshape(len(rows), n_columns)


def _formula(tensor: Tensor) -> Callable[[Bytes], Floats]:
    try:
        return FORMATS[tensor.type.name].decode
    except KeyError:
        raise UnsupportedModelError(
            f"The tensor {tensor.name} is of type {tensor.type.name}, which this engine cannot compute with."
        ) from None
