"""Types whose four bits choose one of 16 uneven values: IQ4 (denser near zero) and 4-bit floats.

Each function takes uint8[..., block_bytes] and gives float32[..., block_size].  Sources: the GGUF reference
implementation; for MXFP4 the OCP Microscaling Formats specification 1.0.
"""

from __future__ import annotations

import numpy as np

from engine.quantisation.unpacking import Bytes, Floats, halves, nibble_pairs, nibbles, numbers

IQ4_VALUES = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int8)

FLOAT4_VALUES = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int8)
"""Twice the values of a float of sign, two bits of exponent and one of mantissa (E2M1)."""


def decode_iq4_nl(blocks: Bytes) -> Floats:
    """f16 d, 16 bytes of nibbles: d * IQ4_VALUES[q]."""
    values: Floats = halves(blocks[..., :2]) * IQ4_VALUES[nibbles(blocks[..., 2:])]
    return values


def decode_iq4_xs(blocks: Bytes) -> Floats:
    """f16 d, a word of upper bit pairs of 8 scales, 4 bytes of their low nibbles, 128 bytes of nibbles.

    (d * (scale - 32)) * IQ4_VALUES[q], 32 elements with the same scale: 16 low nibbles, then 16 high ones.
    """
    outer = blocks.shape[:-1]
    upper = numbers(blocks[..., 2:4], "<u2") >> np.arange(0, 16, 2, dtype=np.uint16) & np.uint16(3)
    scales = nibble_pairs(blocks[..., 4:8]) | upper.astype(np.uint8) << np.uint8(4)
    steps: Floats = halves(blocks[..., :2]) * (scales.view(np.int8) - np.int8(32))
    values: Floats = steps[..., None] * IQ4_VALUES[nibbles(blocks[..., 8:].reshape(*outer, 8, 16))]
    return values.reshape(*outer, 256)


def decode_mxfp4(blocks: Bytes) -> Floats:
    """A byte of exponent e, 16 bytes of nibbles: 2**(e - 128) * FLOAT4_VALUES[q]."""
    values: Floats = _half_power(blocks[..., :1]) * FLOAT4_VALUES[nibbles(blocks[..., 1:])]
    return values


def mxfp4_scales(blocks: Bytes) -> Floats:
    """2**(e - 128): uint8[..., 17] to float32[..., 1].  The exponent 255 is no number."""
    exponents = blocks[..., :1]
    return np.where(exponents == 255, np.float32(np.nan), _half_power(exponents))


def _half_power(exponents: Bytes) -> Floats:
    """2**(e - 128); the least two are denormal.  255 becomes 2**127, as in the reference implementation."""
    wide = exponents.astype(np.uint32)
    powers = np.where(wide < 2, np.uint32(0x200000) << wide, (wide - np.uint32(1)) << np.uint32(23))
    return powers.astype(np.uint32).view(np.float32)


def decode_nvfp4(blocks: Bytes) -> Floats:
    """Four scales, 32 bytes of nibbles: scale / 2 * FLOAT4_VALUES[q], 16 elements with the same scale.

    A scale is a float without sign (the top bit is not read) of four bits of exponent and three of mantissa
    (E4M3, bias 7); 0x7F, which is no number, counts as zero.
    """
    outer = blocks.shape[:-1]
    packed = blocks[..., :4]
    exponents = (packed >> 3 & 15).astype(np.int32)
    mantissas = (packed & 7).astype(np.float32)
    powers = np.ldexp(np.where(exponents == 0, mantissas, mantissas + 8), np.maximum(exponents, 1) - 11)
    scales = np.where(packed == 0x7F, np.float32(0), powers).astype(np.float32)
    values: Floats = scales[..., None] * FLOAT4_VALUES[nibbles(blocks[..., 4:].reshape(*outer, 4, 8))]
    return values.reshape(*outer, 64)
