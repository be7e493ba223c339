"""The first block types: one scale, and often a minimum, for 32 elements (Q1_0: 128), then their bits.

Each function takes uint8[..., block_bytes] and gives float32[..., block_size].
"""

from __future__ import annotations

import numpy as np

from engine.quantisation.unpacking import Bytes, Floats, bits, halves, nibbles


def decode_q1_0(blocks: Bytes) -> Floats:
    """f16 d, 128 bits: d where the bit is set, else -d."""
    return halves(blocks[..., :2]) * (2 * bits(blocks[..., 2:]).view(np.int8) - np.int8(1))


def decode_q4_0(blocks: Bytes) -> Floats:
    """f16 d, 16 bytes of nibbles: d * (q - 8)."""
    return halves(blocks[..., :2]) * (nibbles(blocks[..., 2:]).view(np.int8) - np.int8(8))


def decode_q4_1(blocks: Bytes) -> Floats:
    """f16 d, f16 m, 16 bytes of nibbles: d * q + m."""
    return halves(blocks[..., :2]) * nibbles(blocks[..., 4:]) + halves(blocks[..., 2:4])


def decode_q5_0(blocks: Bytes) -> Floats:
    """f16 d, 32 fifth bits, 16 bytes of nibbles: d * (q - 16)."""
    quants = nibbles(blocks[..., 6:]) | bits(blocks[..., 2:6]) << np.uint8(4)
    return halves(blocks[..., :2]) * (quants.view(np.int8) - np.int8(16))


def decode_q5_1(blocks: Bytes) -> Floats:
    """f16 d, f16 m, 32 fifth bits, 16 bytes of nibbles: d * q + m."""
    quants = nibbles(blocks[..., 8:]) | bits(blocks[..., 4:8]) << np.uint8(4)
    return halves(blocks[..., :2]) * quants + halves(blocks[..., 2:4])


def decode_q8_0(blocks: Bytes) -> Floats:
    """f16 d, int8 q[32]: d * q."""
    return halves(blocks[..., :2]) * blocks[..., 2:].view(np.int8)


def decode_q8_1(blocks: Bytes) -> Floats:
    """f16 d, f16 d * sum of q (which is not needed), int8 q[32]: d * q."""
    return halves(blocks[..., :2]) * blocks[..., 4:].view(np.int8)
