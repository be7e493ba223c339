"""Weights in the layout that kernels read: interleaved rows (docs/decisions/0002-interleaved-rows.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import UnsupportedModelError
from engine.gguf.tensor_types import QuantType
from engine.kernels.checks import check_array, check_output, check_threads, require
from engine.kernels.loader import load_kernel
from engine.kernels.packed_layouts import FUSED, byte_places, file_rows
from engine.quantisation.damage import damaged_scale, has_damaged_scale
from engine.quantisation.dequantise import dequantise
from engine.quantisation.registry import FORMATS
from engine.tensor import Tensor

GROUP = 64
"""Rows of a group: they lie side by side, the fast axis."""

TILE = 64 * 64
"""Bytes that the kernel transposes at once."""

PIECE_BYTES = 1 << 20
"""Of a thread's rows read at once: they stay in its cache until they are packed."""

# What kernels see of the plain types; the others are bytes.
PLAIN_DTYPES: dict[str, Any] = {"F32": np.uint32, "F16": np.uint16, "BF16": np.uint16}


@dataclass(frozen=True, slots=True, eq=False)
class PackedWeight:
    """W of y = W x.  data: uint8[groups, blocks * block_bytes * 64], float32 or uint16[groups, cols * 64]; of
    types that are decoded before a product uint8[rows, blocks * block_bytes], as the file has them."""

    name: str
    type: QuantType
    rows: int
    cols: int
    data: NDArray[Any]

    @property
    def nbytes(self) -> int:
        return int(self.data.nbytes)

    @property
    def words(self) -> NDArray[Any]:
        """data as the kernels of products take it: bytes of interleaved blocks as 16-bit words."""
        interleaved = FORMATS[self.type.name].product == "fixed"
        return self.data.view(np.uint16) if interleaved else self.data


def packed_nbytes(type: QuantType, rows: int, cols: int) -> int:
    """Bytes of a packed weight: the file's, with interleaved rows rounded up to whole groups."""
    if FORMATS[type.name].product != "decoded":
        rows = -(-rows // GROUP) * GROUP
    return rows * (cols // type.block_size) * type.block_bytes


def thread_groups(n_groups: int, threads: int) -> list[tuple[int, int]]:
    """The groups (first, one behind the last) of each thread, as the kernels `matvec_*` share them out."""
    return [(part * n_groups // threads, (part + 1) * n_groups // threads) for part in range(threads)]


class Packer:
    """Re-lays matrices, some groups of rows at a time, with a few MB of its own that serve all of them.

    The groups of a thread are written by that thread, so that on a machine with several memories they lie in
    the one beside the core that will read them.
    """

    def __init__(self, threads: int = 1) -> None:
        check_threads(threads)
        self.threads = threads
        self._rows = np.empty(0, np.uint8)
        self._tiles = np.empty((threads, TILE), np.uint8)
        self._words = np.empty((threads, TILE // 8), np.uint64)
        self._found = np.zeros((threads, 2), np.int64)

    def pack(self, tensor: Tensor, out: NDArray[np.uint8] | None = None) -> PackedWeight:
        """Copies a matrix to out, uint8[packed_nbytes], 8-byte aligned, made here where None.

        Raises UnsupportedModelError, ValueError where the tensor is no matrix, ModelFileError where a scale
        is infinite or no number, or the file ends early.
        """
        if tensor.type.name not in FORMATS:
            raise UnsupportedModelError(f"The tensor {tensor.name} has the type {tensor.type.name}.")
        is_matrix = len(tensor.shape) == 2 and min(tensor.shape) > 0
        require(is_matrix, f"{tensor.name}: {tensor.shape} is no matrix")
        rows, cols = tensor.shape
        nbytes = packed_nbytes(tensor.type, rows, cols)
        out = np.empty(nbytes, np.uint8) if out is None else out
        check_output("out", out, np.uint8, (nbytes,))
        if FORMATS[tensor.type.name].product == "decoded":
            return _copied(tensor, out)
        data = out.view(PLAIN_DTYPES.get(tensor.type.name, np.uint8)).reshape(-(-rows // GROUP), -1)
        width = nbytes // (len(data) * GROUP)
        at_once = max(1, PIECE_BYTES // (width * GROUP))
        shares = thread_groups(len(data), self.threads)
        for done in range(0, max(stop - first for first, stop in shares), at_once):
            pieces = [(min(first + done, stop), min(first + done + at_once, stop)) for first, stop in shares]
            self._pack_pieces(tensor, data, width, pieces)
        if tensor.type.name == "F32":
            data = data.view(np.float32)
        return PackedWeight(tensor.name, tensor.type, rows, cols, data)

    def _pack_pieces(
        self, tensor: Tensor, data: NDArray[Any], width: int, pieces: list[tuple[int, int]]
    ) -> None:
        """Groups first to stop of each piece, one piece for each thread.  width: bytes of a row."""
        table = np.zeros((len(pieces), 3), np.int64)
        n_rows = sum(stop - first for first, stop in pieces) * GROUP
        rows = self._buffer(n_rows * width).reshape(n_rows, width)
        position = 0
        for part, (first, stop) in enumerate(pieces):
            end_row = min(stop * GROUP, tensor.shape[0])
            count = max(0, end_row - first * GROUP)
            if count:
                tensor.read_rows(end_row - count, end_row, rows[position : position + count].reshape(-1))
            table[part] = position, count, first
            position += count
        self.interleaver(tensor.type, position, data, table)(rows[:position])
        self.require_finite(tensor)

    def interleaver(
        self, type: QuantType, n_rows: int, data: NDArray[Any], pieces: NDArray[np.int64]
    ) -> Callable[[NDArray[np.uint8]], None]:
        """What copies the rows of each piece to their groups, each piece by a thread of its own.

        It is called with the rows, uint8[n_rows, bytes of a row].  data: as of `PackedWeight`, F32 as uint32;
        pieces: int64[threads, 3], first row, number of rows, first group in data.  `require_finite` tells
        about the scales.
        """
        width = data.shape[1] // GROUP * data.itemsize
        check_array("pieces", pieces, np.int64, (self.threads, 3))
        ends = pieces[:, 0] + pieces[:, 1], pieces[:, 2] + -(-pieces[:, 1] // GROUP)
        fits = pieces.min() >= 0 and ends[0].max() <= n_rows and ends[1].max() <= len(data)
        require(bool(fits), "pieces lie outside of rows or data")
        offsets, is_plain = FORMATS[type.name].halves_at, type.name in PLAIN_DTYPES
        kernel = load_kernel("interleave_numbers" if is_plain else "interleave")
        own: tuple[object, ...]
        if is_plain:
            exponents = np.array([0x7C00] * len(offsets), data.dtype)
            own = (data, pieces, exponents, self._found, self.threads)
        else:
            places = byte_places(type, width)
            upper_bytes = places[np.array(offsets, np.int64) + 1]
            own = (
                width, data.view(np.uint64), places, pieces, type.block_bytes, upper_bytes, self._tiles,
                self._tiles.view(np.uint64), self._words, self._found, self.threads,
            )  # fmt: skip

        def interleave(rows: NDArray[np.uint8]) -> None:
            check_array("rows", rows, np.uint8, (n_rows, width))
            kernel(rows.view(data.dtype) if is_plain else rows.reshape(-1), *own)
            if type.name in FUSED:
                load_kernel("fuse_q6_k")(data.view(np.uint16), pieces, self.threads)

        return interleave

    def require_finite(self, tensor: Tensor) -> None:
        """Raises ModelFileError where a scale interleaved since the last time was infinite or no number."""
        if self._found[:, 0].any():
            self._found[:] = 0
            raise damaged_scale(tensor.name)

    def _buffer(self, nbytes: int) -> NDArray[np.uint8]:
        if self._rows.size < nbytes:
            self._rows = np.empty(nbytes, np.uint8)
        return self._rows[:nbytes]


def _copied(tensor: Tensor, out: NDArray[np.uint8]) -> PackedWeight:
    """A matrix whose rows stay as they are."""
    tensor.read_rows(0, tensor.shape[0], out)
    if has_damaged_scale(tensor.type.name, out.reshape(-1, tensor.type.block_bytes)):
        raise damaged_scale(tensor.name)
    rows, cols = tensor.shape
    return PackedWeight(tensor.name, tensor.type, rows, cols, out.reshape(rows, -1))


def pack_weight(tensor: Tensor, threads: int = 1) -> PackedWeight:
    """One matrix, packed by a `Packer` of its own."""
    return Packer(threads).pack(tensor)


def unpack_rows(weight: PackedWeight, ids: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
    """float32[n, cols]: the rows asked for, as an embedding needs them.  Raises IndexError."""
    if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= weight.rows):
        raise IndexError(f"row ids must be 0 to {weight.rows - 1}")
    if FORMATS[weight.type.name].product == "decoded":
        chosen = weight.data[ids]
    elif FORMATS[weight.type.name].product == "fixed":
        chosen = file_rows(weight.type, weight.data, ids // GROUP, ids % GROUP)
    else:
        by_row = weight.data.reshape(weight.data.shape[0], -1, GROUP)
        chosen = np.ascontiguousarray(by_row[ids // GROUP, :, ids % GROUP])
    tensor = Tensor.contiguous(
        weight.name, weight.type, (len(ids), weight.cols), chosen.view(np.uint8).reshape(-1)
    )
    return dequantise(tensor)
