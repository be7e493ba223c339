"""Routing tokens to experts, and adding up what the experts give back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels.checks import check_array, check_output, check_separate, check_threads, require
from engine.kernels.loader import load_kernel

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]


def bind_choose_experts(scores: Floats, chosen: Ints, threads: int) -> Callable[[], object]:
    """scores: float32[n, n_experts]; chosen: int32[n, n_used], written: the best of each token, best first,
    of equal ones the lower number.  Raises ValueError, TypeError."""
    check_array("scores", scores, np.float32, (None, None))
    check_output("chosen", chosen, np.int32, (len(scores), None))
    n_used, n_experts = chosen.shape[1], scores.shape[1]
    require(0 < n_used <= n_experts, f"of {n_experts} experts {n_used} cannot be chosen")
    check_threads(threads)
    return partial(load_kernel("choose_experts"), scores, chosen, threads)


def bind_weigh_experts(
    scores: Floats,
    chosen: Ints,
    weights: Floats,
    *,
    sigmoid: bool,
    normalised: bool,
    scale: float,
    threads: int,
) -> Callable[[], object]:
    """weights: float32[n, n_used], written: the softmax, or sigmoid, of the scores at those that
    `bind_choose_experts` has chosen; normalised: divided by their sum; times scale.

    Raises ValueError, TypeError.
    """
    check_array("scores", scores, np.float32, (None, None))
    check_array("chosen", chosen, np.int32, (len(scores), None))
    check_output("weights", weights, np.float32, chosen.shape)
    require(scores.shape[1] > 0, "there are no experts")
    check_threads(threads)
    flags = bool(sigmoid), bool(normalised), float(scale)
    return partial(load_kernel("weigh_experts"), scores, chosen, weights, *flags, threads)


def bind_add_weighted_rows(
    rows: Floats, tokens: Ints, weights: Floats, out: Floats, threads: int
) -> Callable[[], object]:
    """out[tokens[i]] += weights[i] * rows[i] for rows float32[m, width] and out float32[n, width].

    Raises ValueError, TypeError.  The caller vouches for tokens that change between two calls.
    """
    check_array("rows", rows, np.float32, (None, None))
    check_array("tokens", tokens, np.int32, (len(rows),))
    check_array("weights", weights, np.float32, (len(rows),))
    check_output("out", out, np.float32, (None, rows.shape[1]))
    check_separate("rows", rows, "out", out)
    check_threads(threads)
    inside = tokens.size == 0 or (int(tokens.min()) >= 0 and int(tokens.max()) < len(out))
    require(inside, f"tokens lie outside of {len(out)} rows")
    return partial(load_kernel("add_weighted_rows"), rows, tokens, weights, out, threads)


def gate_tokens(x: Floats, weight: Floats, y: Floats, out: NDArray[Any]) -> None:
    """out = y * sigmoid(x . weight), one factor for each token; out may be y."""
    with np.errstate(over="ignore"):
        factors = 1 / (1 + np.exp(-np.einsum("ij,j->i", x, weight)))
    np.multiply(y, factors[:, None], out=out)
