"""Quantisers of the types with one step for 32 weights: byte for byte those of the reference implementation.

Each takes float32[n, 32] and a number of threads.
"""

from __future__ import annotations

import numpy as np

from engine.kernels.quantising import round_blocks
from engine.quantisation.packing import Bytes, Floats, half_bytes, inverse, pack_fifth_bits, pack_nibbles


def quantise_q8_0(blocks: Floats, threads: int) -> Bytes:
    """To uint8[n, 34]: the step is the largest magnitude / 127; halves are rounded away from zero."""
    step = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    quants = round_blocks(blocks, np.zeros_like(step), inverse(step), 0.5, False, (-128, 127), threads)
    return np.concatenate([half_bytes(step), quants.view(np.uint8)], axis=1)


def quantise_q4_0(blocks: Floats, threads: int) -> Bytes:
    """To uint8[n, 18]."""
    step, quants = _signed(blocks, 8, threads)
    return np.concatenate([half_bytes(step), pack_nibbles(quants)], axis=1)


def quantise_q5_0(blocks: Floats, threads: int) -> Bytes:
    """To uint8[n, 22]."""
    step, quants = _signed(blocks, 16, threads)
    fifth = pack_fifth_bits(quants)
    return np.concatenate([half_bytes(step), fifth, pack_nibbles(quants & np.uint8(15))], axis=1)


def quantise_q4_1(blocks: Floats, threads: int) -> Bytes:
    """To uint8[n, 20]."""
    step, minimum, quants = _with_minimum(blocks, 15, threads)
    return np.concatenate([half_bytes(step), half_bytes(minimum), pack_nibbles(quants)], axis=1)


def quantise_q5_1(blocks: Floats, threads: int) -> Bytes:
    """To uint8[n, 24]."""
    step, minimum, quants = _with_minimum(blocks, 31, threads)
    fifth = pack_fifth_bits(quants)
    return np.concatenate(
        [half_bytes(step), half_bytes(minimum), fifth, pack_nibbles(quants & np.uint8(15))], axis=1
    )


def _signed(blocks: Floats, zero: int, threads: int) -> tuple[Floats, Bytes]:
    """Steps and quants 0 to 2 zero - 1: the first weight of the largest magnitude becomes quant 0."""
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1)[:, None], axis=1)
    step = largest / np.float32(-zero)
    quants = round_blocks(
        blocks, np.zeros_like(step), inverse(step), zero + 0.5, True, (0, 2 * zero - 1), threads
    )
    return step, quants.view(np.uint8)


def _with_minimum(blocks: Floats, most: int, threads: int) -> tuple[Floats, Floats, Bytes]:
    """Steps, minimums and quants 0 to most, spread from the least to the greatest weight."""
    minimum = blocks.min(axis=1, keepdims=True)
    step = (blocks.max(axis=1, keepdims=True) - minimum) / np.float32(most)
    quants = round_blocks(blocks, minimum, inverse(step), 0.5, False, (0, most), threads)
    return step, minimum, quants.view(np.uint8)
