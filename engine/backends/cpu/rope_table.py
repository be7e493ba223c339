"""Cosines and sines of rotary position embedding, for every position of a context.

Sources: Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding" (2021); the ramp is
that of Peng et al., "YaRN" (2023), section 3.2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.graph.operations import Node

ROWS_AT_ONCE = 4096
"""Angles are computed in float64 (float32 has lost the fraction at large positions), a few rows at a time."""

STEEPEST_RAMP = 0.001
"""Width of a ramp that begins and ends at the same pair, as in the authors' program for YaRN."""


def table_bytes(n_positions: int, n_dims: int) -> int:
    """Bytes of the two tables."""
    return 2 * 4 * n_positions * (n_dims // 2)


def rope_key(node: Node) -> tuple[object, ...]:
    """Rope nodes with the same key share a table."""
    at = node.attributes
    return (*(at[name] for name in sorted(at) if name != "mode"), node.weights)


def rope_table(
    n_positions: int, node: Node, factors: NDArray[np.float32] | None
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """float32[n_positions, n_dims / 2] each: length times cos and sin of the angles that the node asks for.

    factors: float32[n_dims / 2], the node's weight, where it has one.
    """
    frequencies = _frequencies(node, factors)
    length = float(node.attributes["length"])
    cos = np.empty((n_positions, len(frequencies)), np.float32)
    sin = np.empty_like(cos)
    for start in range(0, n_positions, ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, n_positions)
        angles = np.arange(start, stop, dtype=np.float64)[:, None] * frequencies
        cos[start:stop] = length * np.cos(angles)
        sin[start:stop] = length * np.sin(angles)
    return cos, sin


def _frequencies(node: Node, factors: NDArray[np.float32] | None) -> NDArray[np.float64]:
    """Angle per position of each pair: float64[n_dims / 2]."""
    at = node.attributes
    pairs = np.arange(int(at["n_dims"]) // 2, dtype=np.float64)
    plain = float(at["base"]) ** (-2 * pairs / int(at["n_dims"]))
    if factors is not None:
        plain /= factors.astype(np.float64)
    start, end = float(at["ramp_start"]), float(at["ramp_end"])
    scaled_share = np.clip((pairs - start) / max(end - start, STEEPEST_RAMP), 0.0, 1.0)
    return plain * (1 - scaled_share) + plain * float(at["scale"]) * scaled_share
