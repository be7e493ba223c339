"""The K types: blocks of 256 elements in sub-blocks of 16 or 32, whose scales are small numbers themselves.

Each function takes uint8[..., block_bytes] and gives float32[..., 256].
"""

from __future__ import annotations

import numpy as np

from engine.quantisation.unpacking import Bytes, Floats, bit_pairs, bit_planes, halves, nibbles, numbers


def decode_q2_k(blocks: Bytes) -> Floats:
    """16 bytes of scale and minimum (low and high nibble), 64 bytes of bit pairs, f16 d, f16 dmin.

    (d * scale) * q - (dmin * minimum), 16 elements with the same scale.
    """
    outer = blocks.shape[:-1]
    quants = bit_pairs(blocks[..., 16:80].reshape(*outer, 2, 32)).reshape(*outer, 16, 16)
    steps: Floats = halves(blocks[..., 80:82]) * (blocks[..., :16] & 15)
    offsets: Floats = halves(blocks[..., 82:]) * (blocks[..., :16] >> 4)
    result: Floats = steps[..., None] * quants - offsets[..., None]
    return result.reshape(*outer, 256)


def decode_q3_k(blocks: Bytes) -> Floats:
    """32 bytes of third bits, 64 bytes of bit pairs, 12 bytes of 6-bit scales, f16 d.

    (d * (scale - 32)) * (q - 4), 16 elements with the same scale.  Bit s of byte i is the third bit of
    element i of the 32 elements number s.  Bytes 0-7 of the scales hold the low nibbles of scales 0-7, then
    those of 8-15; bytes 8-11 the upper two bits of scales 0-3, 4-7, 8-11 and 12-15.
    """
    outer = blocks.shape[:-1]
    low = bit_pairs(blocks[..., 32:96].reshape(*outer, 2, 32)).reshape(*outer, 256)
    quants = (low | bit_planes(blocks[..., :32]) << np.uint8(2)).view(np.int8) - np.int8(4)
    packed = blocks[..., 96:108]
    scales = nibbles(packed[..., :8]) | bit_pairs(packed[..., 8:]) << np.uint8(4)
    steps = halves(blocks[..., 108:]) * (scales.view(np.int8) - np.int8(32))
    result: Floats = steps[..., None] * quants.reshape(*outer, 16, 16)
    return result.reshape(*outer, 256)


def decode_q4_k(blocks: Bytes) -> Floats:
    """f16 d, f16 dmin, 12 bytes of scales, 128 bytes of nibbles: (d * scale) * q - (dmin * minimum).

    Each 32 bytes of nibbles hold two sub-blocks: the low nibbles, then the high ones.
    """
    outer = blocks.shape[:-1]
    quants = nibbles(blocks[..., 16:].reshape(*outer, 4, 32)).reshape(*outer, 8, 32)
    return _scaled_with_minimum(blocks, quants)


def decode_q5_k(blocks: Bytes) -> Floats:
    """As Q4_K, with 32 bytes of fifth bits before the nibbles.

    Bit s of byte i belongs to element i of sub-block s.
    """
    outer = blocks.shape[:-1]
    low = nibbles(blocks[..., 48:].reshape(*outer, 4, 32)).reshape(*outer, 8, 32)
    fifth = bit_planes(blocks[..., 16:48]).reshape(*outer, 8, 32)
    return _scaled_with_minimum(blocks, low | fifth << np.uint8(4))


def decode_q6_k(blocks: Bytes) -> Floats:
    """128 bytes ql, 64 bytes qh, int8 scales[16], f16 d: (d * scale) * (q - 32).

    A scale holds for 16 elements.  Each half (128 elements) takes 64 bytes of ql and 32 of qh: its elements
    0-31, 32-63, 64-95, 96-127 are the low nibbles of ql[:32], of ql[32:], the high nibbles of both, with the
    bits 0-1, 2-3, 4-5, 6-7 of qh on top.
    """
    outer = blocks.shape[:-1]
    low = nibbles(blocks[..., :128].reshape(*outer, 2, 64)).reshape(*outer, 256)
    high = bit_pairs(blocks[..., 128:192].reshape(*outer, 2, 32)).reshape(*outer, 256)
    quants = (low | high << np.uint8(4)).view(np.int8) - np.int8(32)
    scales = halves(blocks[..., 208:]) * blocks[..., 192:208].view(np.int8)
    return (scales[..., None] * quants.reshape(*outer, 16, 16)).reshape(*outer, 256)


def decode_q8_k(blocks: Bytes) -> Floats:
    """float32 d, int8 q[256], int16 sums of each 16 q (which are not needed): d * q."""
    result: Floats = numbers(blocks[..., :4], "<f4") * blocks[..., 4:260].view(np.int8)
    return result


def _scaled_with_minimum(blocks: Bytes, quants: Bytes) -> Floats:
    """quants uint8[..., 8, 32] of a block that begins with d, dmin and 12 bytes of scales: float32[..., 256].

    The 12 bytes hold 6-bit scales and minimums of 8 sub-blocks.  Those of the first four are the low six bits
    of bytes 0-3 and 4-7; of the last four, the low and high nibbles of bytes 8-11, with the upper two bits of
    bytes 0-3 and 4-7 on top.
    """
    packed = blocks[..., 4:16]
    first, second, third = packed[..., :4], packed[..., 4:8], packed[..., 8:]
    scales = np.concatenate([first & 63, third & 15 | (first >> 2) & 48], axis=-1)
    minimums = np.concatenate([second & 63, third >> 4 | (second >> 2) & 48], axis=-1)
    steps = halves(blocks[..., :2]) * scales
    offsets = halves(blocks[..., 2:4]) * minimums
    result: Floats = steps[..., None] * quants - offsets[..., None]
    return result.reshape(*blocks.shape[:-1], 256)
