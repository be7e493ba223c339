"""Weights in the layout that kernels read: interleaved rows (docs/decisions/0002-interleaved-rows.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError, UnsupportedModelError
from engine.gguf.tensor_types import QuantType
from engine.kernels.checks import check_threads, require
from engine.kernels.loader import load_kernel
from engine.quantisation.dequantise import dequantise
from engine.tensor import Tensor

GROUP = 64
"""Rows of a group: they lie side by side, the fast axis."""

# Where each block keeps its float16 scales: byte offsets of the low bytes.
SCALE_OFFSETS: dict[str, tuple[int, ...]] = {
    "F32": (), "F16": (0,), "BF16": (), "Q8_0": (0,), "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,),
    "Q5_1": (0, 2), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,),
}  # fmt: skip

# What kernels see of the plain types; the others are bytes.
_PLAIN_DTYPES: dict[str, Any] = {"F32": np.uint32, "F16": np.uint16, "BF16": np.uint16}


@dataclass(frozen=True, slots=True, eq=False)
class PackedWeight:
    """W of y = W x.  data: uint8[groups, blocks * block_bytes * 64], float32 or uint16[groups, cols * 64]."""

    name: str
    type: QuantType
    rows: int
    cols: int
    data: NDArray[Any]

    @property
    def nbytes(self) -> int:
        return int(self.data.nbytes)


def packed_nbytes(type: QuantType, rows: int, cols: int) -> int:
    """Bytes of a packed weight: the file's, with the rows rounded up to whole groups."""
    return -(-rows // GROUP) * GROUP * (cols // type.block_size) * type.block_bytes


def pack_weight(tensor: Tensor, threads: int = 1) -> PackedWeight:
    """Copies a matrix out of the file's map.

    Raises UnsupportedModelError, ValueError where the tensor is no matrix, and ModelFileError where a scale
    is infinite or no number.
    """
    check_threads(threads)
    if tensor.type.name not in SCALE_OFFSETS:
        raise UnsupportedModelError(f"The tensor {tensor.name} has the type {tensor.type.name}.")
    require(len(tensor.shape) == 2 and min(tensor.shape) > 0, f"{tensor.name}: {tensor.shape} is no matrix")
    rows, cols = tensor.shape
    raw = tensor.as_bytes().reshape(rows, -1)
    groups = -(-rows // GROUP)
    dtype = _PLAIN_DTYPES.get(tensor.type.name, np.uint8)
    source = np.ascontiguousarray(raw).view(dtype)
    data = np.empty((groups, source.shape[1] * GROUP), dtype)
    if rows % GROUP:
        data[-1] = 0
    load_kernel("interleave")(source, data, threads)
    _check_scales(tensor, raw)
    if tensor.type.name == "F32":
        data = data.view(np.float32)
    return PackedWeight(tensor.name, tensor.type, rows, cols, data)


def _check_scales(tensor: Tensor, raw: NDArray[np.uint8]) -> None:
    blocks = raw.reshape(-1, tensor.type.block_bytes)
    for offset in SCALE_OFFSETS[tensor.type.name]:
        if ((blocks[:, offset + 1] & 0x7C) == 0x7C).any():
            raise ModelFileError(f"The tensor {tensor.name} holds a scale that is infinite or no number.")


def unpack_rows(weight: PackedWeight, ids: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
    """float32[n, cols]: the rows asked for, as an embedding needs them.  Raises IndexError."""
    if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= weight.rows):
        raise IndexError(f"row ids must be 0 to {weight.rows - 1}")
    by_row = weight.data.reshape(weight.data.shape[0], -1, GROUP)
    chosen = np.ascontiguousarray(by_row[ids // GROUP, :, ids % GROUP])
    tensor = Tensor.contiguous(
        weight.name, weight.type, (len(ids), weight.cols), chosen.view(np.uint8).reshape(-1)
    )
    return dequantise(tensor)
