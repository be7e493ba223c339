"""Interleaved rows against NumPy's own transpose: whole and in pieces, from memory and from a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.errors import ModelFileError
from engine.gguf.reader import GGUFFile
from engine.gguf.tensor_types import SUPPORTED_TYPES, TENSOR_TYPES
from engine.gguf.writer import write_gguf
from engine.kernels import packing
from engine.kernels.packing import GROUP, Packer, pack_weight, packed_nbytes, thread_groups
from engine.quantisation.registry import FORMATS
from engine.tensor import Tensor
from tests.helpers.cpu_levels import COMPILED_LEVELS, at_level
from tests.helpers.weight_blocks import SCALES_AT, make_weight

ITEM_BYTES = {"F32": 4, "F16": 2, "BF16": 2}
SHAPES = [(1, 1), (63, 1), (64, 3), (65, 2), (200, 5), (700, 3)]
"""Rows, and columns in blocks."""


def interleaved(tensor: Tensor) -> NDArray[np.uint8]:
    """What the packed bytes must be: item after item, each of 64 rows, zeros for rows that are not there.

    Types that are decoded before a product stay as they are.
    """
    rows = tensor.shape[0]
    if FORMATS[tensor.type.name].product == "decoded":
        return tensor.as_bytes().reshape(rows, -1)
    item = ITEM_BYTES.get(tensor.type.name, 1)
    raw = tensor.as_bytes().reshape(rows, -1, item)
    if tensor.type.name == "Q4_K":
        blocks = raw.reshape(rows, -1, 144)
        scales, nibbles = blocks[..., :16].reshape(rows, -1, 8, 2), blocks[..., 16:].reshape(rows, -1, 8, 16)
        raw = np.concatenate([scales, nibbles], axis=3).reshape(rows, -1, 1)
    n_groups = -(-rows // GROUP)
    if tensor.type.name == "Q6_K":
        return interleaved_q6_k(raw.reshape(rows, -1, 210), n_groups)
    whole = np.zeros((n_groups * GROUP, *raw.shape[1:]), np.uint8)
    whole[:rows] = raw
    return whole.reshape(n_groups, GROUP, -1, item).swapaxes(1, 2).reshape(n_groups, -1)


def interleaved_q6_k(blocks: NDArray[np.uint8], n_groups: int) -> NDArray[np.uint8]:
    """Value by value: six bits each, those of an even and an odd row and of four columns in three words."""
    n_blocks = blocks.shape[1]
    whole = np.zeros((n_groups * GROUP, n_blocks, 210), np.uint8)
    whole[: len(blocks)] = blocks
    out = np.zeros((n_groups, n_blocks, 105 * 2, GROUP // 2), np.uint16)
    for row, block, place in np.ndindex(n_groups * GROUP, n_blocks, 16):
        raw, odd, lane = whole[row, block], row % 2, row % GROUP // 2
        words = out[row // GROUP, block, :, lane]
        half, scale = divmod(place, 8)
        words[2 + (half * 2 + scale % 2) * 52 + scale // 2] |= int(raw[192 + place]) << 8 * odd
        words[0] |= int(raw[208]) << 8 * odd if place == 0 else 0
        words[1] |= int(raw[209]) << 8 * odd if place == 0 else 0
        for column in range(place * 4, place * 4 + 4):
            half, k = divmod(column, 32)
            low, high, pairs = raw[half * 64 + k], raw[half * 64 + 32 + k], raw[128 + half * 32 + k]
            nibbles = (low & 15, high & 15, low >> 4, high >> 4)
            a, b, c, d = (int(n | (pairs >> 2 * i & 3) << 4) ^ 32 for i, n in enumerate(nibbles))
            first = 2 + (half * 2 + k // 16) * 52 + 4 + k % 16 * 3
            words[first] |= a << (4 if odd else 10) | (0 if odd else c >> 2)
            words[first + 1] |= b << (4 if odd else 10) | (c >> 2 if odd else 0)
            words[first + 2] |= d << (4 if odd else 10) | (c & 3) << (0 if odd else 2)
    return out.reshape(n_groups, -1).view(np.uint8)


def weight_of(type_name: str, rows: int, n_blocks: int) -> Tensor:
    n_columns = n_blocks * max(8, TENSOR_TYPES[type_name].block_size)
    return make_weight(type_name, rows, n_columns, "random", seed=rows)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("type_name", SUPPORTED_TYPES)
@pytest.mark.parametrize("level", COMPILED_LEVELS)
def test_every_byte_goes_to_its_place(level: str, type_name: str, shape: tuple[int, int]) -> None:
    tensor = weight_of(type_name, *shape)
    with at_level(level):
        for threads in (1, 3):
            packed = pack_weight(tensor, threads)
            np.testing.assert_array_equal(packed.data.view(np.uint8), interleaved(tensor))
            assert packed.nbytes == packed_nbytes(tensor.type, *tensor.shape)


@pytest.mark.parametrize("type_name", ["Q4_0", "Q6_K", "F16"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_pieces_of_one_group(type_name: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """More steps than one, the last of them with work for some of the threads only."""
    monkeypatch.setattr(packing, "PIECE_BYTES", 1)
    tensor = weight_of(type_name, 5 * GROUP + 1, 3)
    np.testing.assert_array_equal(pack_weight(tensor, threads).data.view(np.uint8), interleaved(tensor))


def test_one_packer_packs_many(tmp_path: Path) -> None:
    """What an earlier matrix left in its memory does not show, where rows are filled up with zeros."""
    packer = Packer(2)
    for type_name, rows in (("Q8_0", 300), ("Q4_1", 1), ("F16", 65), ("Q6_K", 100), ("F32", 3)):
        tensor = weight_of(type_name, rows, 3)
        np.testing.assert_array_equal(packer.pack(tensor).data.view(np.uint8), interleaved(tensor))


@pytest.mark.parametrize("type_name", SUPPORTED_TYPES)
def test_from_a_file(type_name: str, tmp_path: Path) -> None:
    tensor = weight_of(type_name, 130, 3)
    path = tmp_path / "one.gguf"
    write_gguf(path, {}, [weight_of("Q4_0", 3, 1), _renamed(tensor)])
    with GGUFFile.open(path) as file:
        packed = pack_weight(file.tensors["second"], 2)
    np.testing.assert_array_equal(packed.data.view(np.uint8), interleaved(tensor))


def _renamed(tensor: Tensor) -> Tensor:
    return Tensor.contiguous("second", tensor.type, tensor.shape, tensor.data)


def test_a_file_that_was_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "one.gguf"
    write_gguf(path, {}, [weight_of("Q4_0", 640, 100)])
    with GGUFFile.open(path) as file:
        with path.open("r+b") as other:
            other.truncate(path.stat().st_size - 5000)
        with pytest.raises(ModelFileError, match="become shorter"):
            pack_weight(file.tensors["w"], 2)


@pytest.mark.parametrize("row", [0, 63, 64, 199])
@pytest.mark.parametrize("type_name", SCALES_AT)
@pytest.mark.parametrize("level", COMPILED_LEVELS)
def test_scales_that_are_no_numbers(level: str, type_name: str, row: int) -> None:
    with at_level(level):
        for start in SCALES_AT[type_name]:
            for bad in (0x7C00, 0xFC00, 0x7E01, 0xFFFF):
                tensor = weight_of(type_name, 200, 3)
                blocks = tensor.data.reshape(200, -1, tensor.type.block_bytes)
                blocks[row, 1, start : start + 2] = bad & 0xFF, bad >> 8
                with pytest.raises(ModelFileError, match="scale"):
                    pack_weight(tensor, 2)


def test_groups_of_threads_are_those_of_the_kernels() -> None:
    for n_groups in (1, 2, 7, 500):
        for threads in (1, 2, 3, 8):
            shares = thread_groups(n_groups, threads)
            assert len(shares) == threads
            assert [group for first, stop in shares for group in range(first, stop)] == list(range(n_groups))


def test_memory_that_does_not_fit() -> None:
    tensor = weight_of("Q4_0", 65, 1)
    with pytest.raises(ValueError, match="shape"):
        Packer().pack(tensor, np.empty(64 * 18, np.uint8))
