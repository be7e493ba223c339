"""Fused projections to queries, keys and values, in the order that model files have."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.conversion.tensors import Arrangement


def ungrouped(n_heads: int, n_kv_heads: int) -> Arrangement:
    """Rows of a fused weight or bias: all queries, then all keys, then all values.

    Checkpoints have them in groups, one for each key: the queries that share it, the key, its value
    (GPT-NeoX and Falcon; with a key for each query, that is q, k, v of one head after another).
    """

    def apply(array: NDArray[Any]) -> NDArray[Any]:
        rest = array.shape[1:]
        groups = array.reshape(n_kv_heads, n_heads // n_kv_heads + 2, -1, *rest)
        parts = (groups[:, :-2], groups[:, -2], groups[:, -1])
        return np.concatenate([part.reshape(-1, *rest) for part in parts])

    return Arrangement(apply)
