"""Cosines and sines of rotary position embedding, for every position of a context.

Source: Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding" (2021).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ROWS_AT_ONCE = 4096
"""Angles are computed in float64 (float32 has lost the fraction at large positions), a few rows at a time."""


def table_bytes(n_positions: int, n_dims: int) -> int:
    """Bytes of the two tables."""
    return 2 * 4 * n_positions * (n_dims // 2)


def rope_table(
    n_positions: int, n_dims: int, base: float, scale: float, factors: NDArray[np.float32] | None
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """float32[n_positions, n_dims / 2] each: cos, sin of position * scale / (base^(2i / n_dims) factor_i)."""
    frequencies = scale * base ** (-np.arange(0, n_dims, 2, dtype=np.float64) / n_dims)
    if factors is not None:
        frequencies /= factors.astype(np.float64)
    cos = np.empty((n_positions, n_dims // 2), np.float32)
    sin = np.empty_like(cos)
    for start in range(0, n_positions, ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, n_positions)
        angles = np.arange(start, stop, dtype=np.float64)[:, None] * frequencies
        cos[start:stop] = np.cos(angles)
        sin[start:stop] = np.sin(angles)
    return cos, sin
