"""The IQ1, IQ2 and IQ3 types: 8 (IQ3: 4) elements at a time are a point of a grid, with scales and signs.

Each function takes uint8[..., block_bytes] and gives float32[..., 256].  A set sign bit is a minus.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.quantisation.grids import grid, signs
from engine.quantisation.unpacking import Bytes, Floats, bits, halves, nibble_pairs, numbers

DELTA = np.float32(0.125)
"""IQ1: how far the three levels are shifted, up or down."""

_SIGN_SHIFTS = np.array([0, 7, 14, 21], np.uint32)
_THREE_BIT_SHIFTS = np.array([0, 3, 6, 9], np.uint16)


def decode_iq2_xxs(blocks: Bytes) -> Floats:
    """f16 d, then for each 32 elements four bytes of points and a word: four numbers of signs, 4-bit scale.

    d * (scale + 1/2) / 4 * point * sign.
    """
    words = numbers(blocks[..., 2:], "<u4").reshape(*blocks.shape[:-1], 8, 2)
    points = numbers(words[..., :1].view(np.uint8), "u1")
    steps = halves(blocks[..., :2]) * (np.float32(0.5) + (words[..., 1] >> 28).astype(np.float32))
    return _scaled("IQ2_XXS", points, _signs_of_word(words[..., 1]), steps * np.float32(0.25))


def decode_iq2_xs(blocks: Bytes) -> Floats:
    """f16 d, 32 words of point (9 bits) and number of signs (7), 8 bytes of 4-bit scales.

    d * (scale + 1/2) / 4 * point * sign, 16 elements with the same scale.
    """
    words = numbers(blocks[..., 2:66], "<u2")
    steps = halves(blocks[..., :2]) * (np.float32(0.5) + nibble_pairs(blocks[..., 66:]))
    return _scaled("IQ2_XS", words & np.uint16(511), signs()[words >> 9], steps * np.float32(0.25))


def decode_iq2_s(blocks: Bytes) -> Floats:
    """f16 d, 32 bytes of points, 32 bytes of signs, 8 bytes of upper bit pairs, 8 bytes of 4-bit scales.

    d * (scale + 1/2) / 4 * point * sign, 16 elements with the same scale.
    """
    upper = blocks[..., 66:74, None] >> np.array([0, 2, 4, 6], np.uint8) & np.uint8(3)
    points = blocks[..., 2:34] | upper.reshape(*blocks.shape[:-1], 32).astype(np.uint16) << np.uint16(8)
    steps = halves(blocks[..., :2]) * (np.float32(0.5) + nibble_pairs(blocks[..., 74:]))
    return _scaled("IQ2_S", points, blocks[..., 34:66], steps * np.float32(0.25))


def decode_iq3_xxs(blocks: Bytes) -> Floats:
    """f16 d, 64 bytes of points, 8 words: four numbers of signs, 4-bit scale.

    d * (scale + 1/2) / 2 * point * sign, 32 elements with the same scale.
    """
    words = numbers(blocks[..., 66:], "<u4")
    steps = halves(blocks[..., :2]) * (np.float32(0.5) + (words >> 28).astype(np.float32))
    return _scaled("IQ3_XXS", blocks[..., 2:66], _signs_of_word(words), steps * np.float32(0.5))


def decode_iq3_s(blocks: Bytes) -> Floats:
    """f16 d, 64 bytes of points, 8 bytes of ninth bits, 32 bytes of signs, 4 bytes of 4-bit scales.

    d * (2 * scale + 1) * point * sign, 32 elements with the same scale.
    """
    points = blocks[..., 2:66] | bits(blocks[..., 66:74]).astype(np.uint16) << np.uint16(8)
    steps = halves(blocks[..., :2]) * (2 * nibble_pairs(blocks[..., 106:]) + np.uint8(1))
    return _scaled("IQ3_S", points, blocks[..., 74:106], steps)


def decode_iq1_s(blocks: Bytes) -> Floats:
    """f16 d, 32 bytes of points, 8 words: upper three bits of four points, 3-bit scale, sign of the shift.

    d * (2 * scale + 1) * (point + or - DELTA), 32 elements with the same scale and shift.
    """
    words = numbers(blocks[..., 34:], "<u2")
    upper = (words[..., None] >> _THREE_BIT_SHIFTS & np.uint16(7)).reshape(*blocks.shape[:-1], 32)
    points = grid("IQ1_S")[blocks[..., 2:34] | upper << np.uint16(8)]
    steps = halves(blocks[..., :2]) * (2 * (words >> 12 & np.uint16(7)) + np.uint16(1))
    return _shifted(points, steps, words & np.uint16(0x8000))


def decode_iq1_m(blocks: Bytes) -> Floats:
    """32 bytes of points, 16 bytes: upper three bits and sign of the shift of two points, 8 bytes of scales.

    d * (2 * scale + 1) * (point + or - DELTA), 8 elements with the same shift, 16 with the same scale.  Each
    word of scales holds four of three bits; its upper nibble is one of the four nibbles of the float16 d.
    """
    halved = nibble_pairs(blocks[..., 32:48])
    points = grid("IQ1_S")[blocks[..., :32] | (halved & np.uint8(7)).astype(np.uint16) << np.uint16(8)]
    words = numbers(blocks[..., 48:], "<u2")
    scales = (words[..., None] >> _THREE_BIT_SHIFTS & np.uint16(7)).reshape(*blocks.shape[:-1], 16)
    steps = iq1_m_scale(blocks) * (2 * scales + np.uint16(1))
    return _shifted(points, steps, halved & np.uint8(8))


def iq1_m_scale(blocks: Bytes) -> Floats:
    """d of IQ1_M, whose nibbles are spread: uint8[..., 56] to float32[..., 1]."""
    words = numbers(blocks[..., 48:], "<u2") & np.uint16(0xF000)
    joined = np.bitwise_or.reduce(words >> np.array([12, 8, 4, 0], np.uint16), axis=-1, keepdims=True)
    return halves(joined.astype("<u2").view(np.uint8))


def _signs_of_word(words: NDArray[np.uint32]) -> Bytes:
    """The signs of 32 elements out of four 7-bit numbers: uint32[..., n] to uint8[..., n, 4]."""
    result: Bytes = signs()[words[..., None] >> _SIGN_SHIFTS & np.uint32(127)]
    return result


def _scaled(name: str, points: NDArray[Any], sign_bytes: Bytes, steps: Floats) -> Floats:
    """steps float32[..., n], each for as many elements, times points, with a minus for each sign bit set."""
    outer = steps.shape[:-1]
    values = grid(name)[points].astype(np.float32).reshape(*outer, steps.shape[-1], -1)
    minus = bits(sign_bytes.reshape(*outer, 32)).reshape(values.shape)
    scaled: Floats = steps[..., None] * values * np.where(minus == 0, np.float32(1), np.float32(-1))
    return scaled.reshape(*outer, 256)


def _shifted(points: NDArray[np.int8], steps: Floats, minus: NDArray[Any]) -> Floats:
    """steps float32[..., n] times points int8[..., 32, 8] shifted by DELTA: down where minus is not 0."""
    outer = steps.shape[:-1]
    shifts = np.where(minus == 0, DELTA, -DELTA).reshape(*outer, -1, 1)
    values = points.reshape(*outer, shifts.shape[-2], -1) + shifts
    scaled: Floats = steps[..., None] * values.reshape(*outer, steps.shape[-1], -1)
    return scaled.reshape(*outer, 256)
