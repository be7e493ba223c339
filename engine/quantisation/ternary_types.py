"""Types whose elements are -1, 0 or 1 times a scale: blocks of 256 elements.

Each function takes uint8[..., block_bytes] and gives float32[..., 256].
"""

from __future__ import annotations

import numpy as np

from engine.quantisation.unpacking import Bytes, Floats, bit_pairs, halves


def decode_tq1_0(blocks: Bytes) -> Floats:
    """32, 16 and 4 bytes of base-3 digits, f16 d: d * (digit - 1).

    A byte holds five digits (the last four bytes: four) as a fraction of 256: times 3, the first digit is
    what leaves the byte; the rest holds the next.  Digits number i of all bytes of a part follow each other.
    """
    digits = [
        _digits(blocks[..., start:stop], count)
        for start, stop, count in ((0, 32, 5), (32, 48, 5), (48, 52, 4))
    ]
    quants = np.concatenate(digits, axis=-1).view(np.int8) - np.int8(1)
    return halves(blocks[..., 52:]) * quants


def decode_tq2_0(blocks: Bytes) -> Floats:
    """64 bytes of bit pairs, f16 d: d * (q - 1)."""
    outer = blocks.shape[:-1]
    quants = bit_pairs(blocks[..., :64].reshape(*outer, 2, 32)).reshape(*outer, 256)
    return halves(blocks[..., 64:]) * (quants.view(np.int8) - np.int8(1))


def _digits(packed: Bytes, count: int) -> Bytes:
    """uint8[..., n] to uint8[..., count * n]."""
    powers = np.array([1, 3, 9, 27, 81][:count], np.uint8)[:, None]
    fractions = packed[..., None, :] * powers  # wraps: whole digits are gone
    digits = (fractions.astype(np.uint16) * np.uint16(3) >> np.uint16(8)).astype(np.uint8)
    return digits.reshape(*packed.shape[:-1], -1)
