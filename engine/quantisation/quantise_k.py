"""Quantisers of the K types: blocks of 256 in parts whose scales are small numbers too.

Each part is fitted by itself; then the block chooses the unit in which scales are counted; then each part
chooses the scale that leaves the least squared error.  Each function takes float32[n, 256] and a number of
threads.  The layouts are described in `k_types`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.kernels.quantising import StepValues, fit_ranges, fit_steps, round_to_ranges, round_to_steps
from engine.quantisation.packing import Bytes, Floats, half_bytes, halves_of, pack_nibbles

_SIX_BITS = StepValues.whole_numbers(-32, 31)
_THREE_BITS = StepValues.whole_numbers(-4, 3)


def quantise_q2_k(blocks: Floats, threads: int) -> Bytes:
    """To uint8[n, 84]."""
    units, codes, quants = _with_minimums(blocks, 16, 3, 15, threads)
    scales = codes[..., 0] | codes[..., 1] << np.uint8(4)
    return np.concatenate([scales, _pack_two_bits(quants), units], axis=1)


def quantise_q3_k(blocks: Floats, threads: int) -> Bytes:
    """To uint8[n, 110]."""
    unit, scales, quants = with_steps(blocks, 16, _THREE_BITS, (-32, 31), threads)
    codes = (scales + np.int8(32)).view(np.uint8)
    low = codes[:, :8] & np.uint8(15) | codes[:, 8:] << np.uint8(4)
    upper = (codes >> np.uint8(4)).reshape(-1, 4, 4) << np.array([0, 2, 4, 6], np.uint8)[:, None]
    high = np.bitwise_or.reduce(upper, axis=1)
    # Bit s of byte i is the third bit of element i of the s-th 32 elements.
    third = np.packbits(quants.reshape(-1, 8, 32) >> np.uint8(2), axis=1, bitorder="little").reshape(-1, 32)
    return np.concatenate([third, _pack_two_bits(quants & np.uint8(3)), low, high, unit], axis=1)


def quantise_q4_k(blocks: Floats, threads: int) -> Bytes:
    """To uint8[n, 144]."""
    units, codes, quants = _with_minimums(blocks, 32, 15, 63, threads)
    return np.concatenate([units, _pack_scales(codes), _pack_pairs(quants)], axis=1)


def quantise_q5_k(blocks: Floats, threads: int) -> Bytes:
    """To uint8[n, 176]."""
    units, codes, quants = _with_minimums(blocks, 32, 31, 63, threads)
    # Bit s of byte i is the fifth bit of element i of part s.
    fifth = np.packbits(quants.reshape(-1, 8, 32) >> np.uint8(4), axis=1, bitorder="little").reshape(-1, 32)
    return np.concatenate([units, _pack_scales(codes), fifth, _pack_pairs(quants & np.uint8(15))], axis=1)


def quantise_q6_k(blocks: Floats, threads: int) -> Bytes:
    """To uint8[n, 210]."""
    unit, scales, quants = with_steps(blocks, 16, _SIX_BITS, (-128, 127), threads)
    parts = quants.reshape(-1, 2, 4, 32)
    low = pack_nibbles((parts & np.uint8(15)).reshape(-1, 2, 128)).reshape(-1, 128)
    high = _pack_two_bits(quants >> np.uint8(4))
    return np.concatenate([low, high, scales.view(np.uint8), unit], axis=1)


def with_steps(
    blocks: Floats, size: int, values: StepValues, scales: tuple[int, int], threads: int
) -> tuple[Bytes, NDArray[np.int8], Bytes]:
    """The bytes of the unit, uint8[n, 2]; scales int8[n, parts]; quants uint8[n, block].  size: of a part."""
    parts = blocks.reshape(-1, size)
    fitted = fit_steps(parts, values, threads)
    by_block = fitted.reshape(len(blocks), -1)
    largest = np.take_along_axis(by_block, np.abs(by_block).argmax(axis=1)[:, None], axis=1)
    unit = half_bytes(largest / np.float32(scales[0]))
    units = np.repeat(halves_of(unit), by_block.shape[1])
    chosen, quants = round_to_steps(parts, fitted, units, values, scales, threads)
    return unit, chosen.reshape(by_block.shape), quants.reshape(blocks.shape)


def _with_minimums(
    blocks: Floats, size: int, most: int, most_scale: int, threads: int
) -> tuple[Bytes, Bytes, Bytes]:
    """The bytes of both units, uint8[n, 4]; scales and minimums uint8[n, parts, 2]; quants uint8[n, 256]."""
    parts = blocks.reshape(-1, size)
    fitted = fit_ranges(parts, most, threads)
    by_block = fitted.reshape(len(blocks), -1, 2)
    packed = half_bytes(by_block.max(axis=1) / np.float32(most_scale))
    units = np.repeat(halves_of(packed), by_block.shape[1], axis=0)
    codes, quants = round_to_ranges(parts, fitted, units, most, most_scale, threads)
    return packed, codes.reshape(by_block.shape), quants.reshape(blocks.shape)


def _pack_scales(codes: Bytes) -> Bytes:
    """6-bit scales and minimums, uint8[n, 8, 2], to the 12 bytes of a block."""
    scales, minimums = codes[..., 0], codes[..., 1]
    first = scales[:, :4] | (scales[:, 4:] >> 4) << np.uint8(6)
    second = minimums[:, :4] | (minimums[:, 4:] >> 4) << np.uint8(6)
    third = scales[:, 4:] & 15 | (minimums[:, 4:] & 15) << np.uint8(4)
    return np.concatenate([first, second, third], axis=1)


def _pack_pairs(quants: Bytes) -> Bytes:
    """Numbers below 16, two parts sharing 32 bytes: uint8[n, 256] to uint8[n, 128]."""
    return pack_nibbles(quants.reshape(-1, 4, 64)).reshape(-1, 128)


def _pack_two_bits(quants: Bytes) -> Bytes:
    """Numbers below 4, 32 bytes shared by four times 32 of them: uint8[n, 256] to uint8[n, 64]."""
    shifted = quants.reshape(-1, 2, 4, 32) << np.array([0, 2, 4, 6], np.uint8)[:, None]
    packed: Bytes = np.bitwise_or.reduce(shifted, axis=2).reshape(-1, 64)
    return packed
