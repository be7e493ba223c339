"""Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0 by plain NumPy: what the compiled quantisers have to equal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.quantisation.packing import Bytes, Floats, half_bytes, inverse, pack_fifth_bits, pack_nibbles


def _q8_0(blocks: Floats) -> Bytes:
    """Step: largest magnitude / 127.  Halves are rounded away from zero."""
    step = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    scaled = blocks * inverse(step)
    quants = np.trunc(scaled + np.copysign(np.float32(0.5), scaled)).astype(np.int8)
    return np.concatenate([half_bytes(step), quants.view(np.uint8)], axis=1)


def _q4_0(blocks: Floats) -> Bytes:
    step, quants = _signed(blocks, 8)
    return np.concatenate([half_bytes(step), pack_nibbles(quants)], axis=1)


def _q5_0(blocks: Floats) -> Bytes:
    step, quants = _signed(blocks, 16)
    return np.concatenate(
        [half_bytes(step), pack_fifth_bits(quants), pack_nibbles(quants & np.uint8(15))], axis=1
    )


def _q4_1(blocks: Floats) -> Bytes:
    step, minimum, quants = _with_minimum(blocks, 15)
    return np.concatenate([half_bytes(step), half_bytes(minimum), pack_nibbles(quants)], axis=1)


def _q5_1(blocks: Floats) -> Bytes:
    step, minimum, quants = _with_minimum(blocks, 31)
    fifth = pack_fifth_bits(quants)
    return np.concatenate(
        [half_bytes(step), half_bytes(minimum), fifth, pack_nibbles(quants & np.uint8(15))], axis=1
    )


def _signed(blocks: Floats, zero: int) -> tuple[Floats, Bytes]:
    """Steps and quants 0 to 2 zero - 1: the first weight of the largest magnitude becomes quant 0.

    The sum is taken in float64, where the product is exact, as a fused multiply-add would.
    """
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1)[:, None], axis=1)
    step = largest / np.float32(-zero)
    scaled = blocks.astype(np.float64) * inverse(step).astype(np.float64) + (zero + 0.5)
    return step, np.trunc(scaled.astype(np.float32)).clip(0, 2 * zero - 1).astype(np.uint8)


def _with_minimum(blocks: Floats, most: int) -> tuple[Floats, Floats, Bytes]:
    """Steps, minimums and quants 0 to most, spread from the least to the greatest weight."""
    minimum = blocks.min(axis=1, keepdims=True)
    step = (blocks.max(axis=1, keepdims=True) - minimum) / np.float32(most)
    quants = np.trunc((blocks - minimum) * inverse(step) + np.float32(0.5))
    return step, minimum, quants.clip(0, most).astype(np.uint8)


PLAIN_QUANTISERS: dict[str, Callable[[Floats], Bytes]] = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
}
"""By type name: float32[blocks, 32] to uint8[blocks, block_bytes]."""
