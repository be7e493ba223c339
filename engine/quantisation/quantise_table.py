"""Quantisers of the types with 16 uneven values, IQ4_NL and IQ4_XS, whose layouts `table_types` describes."""

from __future__ import annotations

import numpy as np

from engine.kernels.quantising import StepValues, fit_steps, round_to_steps
from engine.quantisation.packing import Bytes, Floats, half_bytes, halves_of, pack_nibbles
from engine.quantisation.quantise_k import with_steps
from engine.quantisation.table_types import IQ4_VALUES

_UNEVEN = StepValues.of(IQ4_VALUES)


def quantise_iq4_nl(blocks: Floats, threads: int) -> Bytes:
    """float32[n, 32] to uint8[n, 18]: one step for a block."""
    fitted = fit_steps(blocks, _UNEVEN, threads)
    step = half_bytes(fitted[:, None])
    # The step is its own unit: the only scale there is is 1.
    _, quants = round_to_steps(blocks, fitted, halves_of(step).reshape(-1), _UNEVEN, (1, 1), threads)
    return np.concatenate([step, pack_nibbles(quants)], axis=1)


def quantise_iq4_xs(blocks: Floats, threads: int) -> Bytes:
    """float32[n, 256] to uint8[n, 136]: a scale of 6 bits for each 32 weights."""
    unit, scales, quants = with_steps(blocks, 32, _UNEVEN, (-32, 31), threads)
    codes = (scales + np.int8(32)).view(np.uint8)
    low = codes[:, ::2] & np.uint8(15) | codes[:, 1::2] << np.uint8(4)
    upper = (codes >> np.uint8(4)).astype(np.uint16) << np.arange(0, 16, 2, dtype=np.uint16)
    high = np.bitwise_or.reduce(upper, axis=1).astype("<u2")[:, None].view(np.uint8)
    packed = pack_nibbles(quants.reshape(-1, 8, 32)).reshape(-1, 128)
    return np.concatenate([unit, high, low, packed], axis=1)
