"""Quantisers of the K types: blocks of 256 in sub-blocks whose scales are small numbers too.

The rule is a plain one: each sub-block spans its own range, the scales are rounded, and the weights are
then rounded to the steps that really came out.  The layouts are described in `dequantise`.
"""

from __future__ import annotations

import numpy as np

from engine.quantisation.packing import Bytes, Floats, half_bytes, inverse, pack_nibbles


def quantise_q4_k(blocks: Floats) -> Bytes:
    """float32[n, 256] to uint8[n, 144]."""
    header, quants = _with_minimums(blocks, 15)
    return np.concatenate([header, _pack_pairs(quants)], axis=1)


def quantise_q5_k(blocks: Floats) -> Bytes:
    """float32[n, 256] to uint8[n, 176]."""
    header, quants = _with_minimums(blocks, 31)
    # Bit s of byte i is the fifth bit of element i of sub-block s.
    fifth = np.packbits(quants >> 4, axis=1, bitorder="little").reshape(len(blocks), 32)
    return np.concatenate([header, fifth, _pack_pairs(quants & np.uint8(15))], axis=1)


def quantise_q6_k(blocks: Floats) -> Bytes:
    """float32[n, 256] to uint8[n, 210]: in each sub-block of 16 the largest magnitude becomes -32."""
    parts = blocks.reshape(-1, 16, 16)
    position = np.abs(parts).argmax(axis=2)[..., None]
    steps = np.take_along_axis(parts, position, axis=2)[..., 0] / np.float32(-32)
    d = half_bytes(np.abs(steps).max(axis=1, keepdims=True) / np.float32(127))
    scale = d.view("<f2").astype(np.float32)
    scales = np.rint(steps * inverse(scale)).clip(-127, 127)
    real_steps = (scale * scales)[..., None]
    quants = (np.rint(parts * inverse(real_steps)).clip(-32, 31) + 32).astype(np.uint8)
    halves = quants.reshape(-1, 2, 4, 32)
    low = pack_nibbles((halves & 15).reshape(-1, 2, 128)).reshape(-1, 128)
    shifts = np.array([0, 2, 4, 6], np.uint8)[:, None]
    high = np.bitwise_or.reduce((halves >> np.uint8(4)) << shifts, axis=2).reshape(-1, 64)
    return np.concatenate([low, high, scales.astype(np.int8).view(np.uint8), d], axis=1)


def _with_minimums(blocks: Floats, most: int) -> tuple[Bytes, Bytes]:
    """The 16 bytes of d, dmin and packed scales, and the quants uint8[n, 8, 32], 0 to most.

    The minimum of a sub-block is subtracted, so it is that of its weights where they are negative, else 0.
    """
    parts = blocks.reshape(-1, 8, 32)
    minimums = np.maximum(-parts.min(axis=2), 0)
    steps = (parts.max(axis=2) + minimums).clip(0) / np.float32(most)
    d = half_bytes(steps.max(axis=1, keepdims=True) / np.float32(63))
    dmin = half_bytes(minimums.max(axis=1, keepdims=True) / np.float32(63))
    scale, minimum_scale = (raw.view("<f2").astype(np.float32) for raw in (d, dmin))
    packed_steps = np.rint(steps * inverse(scale)).clip(0, 63).astype(np.uint8)
    packed_minimums = np.rint(minimums * inverse(minimum_scale)).clip(0, 63).astype(np.uint8)
    real_steps = (scale * packed_steps)[..., None]
    real_minimums = (minimum_scale * packed_minimums)[..., None]
    quants = np.rint((parts + real_minimums) * inverse(real_steps)).clip(0, most).astype(np.uint8)
    return np.concatenate([d, dmin, _pack_scales(packed_steps, packed_minimums)], axis=1), quants


def _pack_scales(scales: Bytes, minimums: Bytes) -> Bytes:
    """6-bit numbers uint8[n, 8] each to the 12 bytes of a block."""
    first = scales[:, :4] | (scales[:, 4:] >> 4) << np.uint8(6)
    second = minimums[:, :4] | (minimums[:, 4:] >> 4) << np.uint8(6)
    third = scales[:, 4:] & 15 | (minimums[:, 4:] & 15) << np.uint8(4)
    return np.concatenate([first, second, third], axis=1)


def _pack_pairs(quants: Bytes) -> Bytes:
    """Numbers below 16 of sub-blocks, two of them sharing 32 bytes: uint8[n, 8, 32] to uint8[n, 128]."""
    return pack_nibbles(quants.reshape(-1, 4, 64)).reshape(-1, 128)
