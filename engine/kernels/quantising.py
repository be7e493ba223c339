"""Steps, scales and quants of blocks of weights, found by compiled searches (source/fit_*.py, round_*.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels.checks import check_array, check_threads, require
from engine.kernels.loader import load_kernel

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class StepValues:
    """The values that quants stand for, in steps.

    values: float32[n], ascending, within -128 and 127.
    nearest: uint8[256], the quant nearest to each of -128 to 127.
    """

    values: Floats
    nearest: Bytes

    @classmethod
    def of(cls, values: NDArray[np.integer[Any]]) -> StepValues:
        """Raises ValueError where they do not ascend, or do not fit."""
        require(bool(np.all(np.diff(values.astype(int)) > 0)), "the values do not ascend")
        require(values[0] >= -128 and values[-1] <= 127, "the values are no bytes")
        distance = np.abs(np.arange(-128, 128)[:, None] - values.astype(int))
        return cls(values.astype(np.float32), distance.argmin(axis=1).astype(np.uint8))

    @classmethod
    def whole_numbers(cls, first: int, last: int) -> StepValues:
        return cls.of(np.arange(first, last + 1))


def round_blocks(
    blocks: Floats,
    minimums: Floats,
    inverses: Floats,
    offset: float,
    fused: bool,
    limits: tuple[int, int],
    threads: int,
) -> NDArray[np.int8]:
    """int8[n, size] of blocks float32[n, size], minimums and inverses of steps float32[n, 1].

    The whole part of (x - minimum) * inverse + offset, within limits; see the kernel for fused.
    """
    blocks = _parts(blocks, threads)
    quants = np.empty(blocks.shape, np.int8)
    for name, array in (("minimums", minimums), ("inverses", inverses)):
        check_array(name, array, np.float32, (len(blocks), 1))
    least, most = limits
    kernel = load_kernel("round_blocks")
    kernel(blocks, minimums.reshape(-1), inverses.reshape(-1), offset, fused, least, most, quants, threads)
    return quants


def fit_ranges(parts: Floats, most: int, threads: int) -> Floats:
    """float32[n, 2]: the best step and minimum (subtracted, at least 0) of parts float32[n, size]."""
    parts = _parts(parts, threads)
    fitted = np.empty((len(parts), 2), np.float32)
    load_kernel("fit_ranges")(parts, most, fitted, threads)
    return fitted


def round_to_ranges(
    parts: Floats, fitted: Floats, units: Floats, most: int, most_scale: int, threads: int
) -> tuple[Bytes, Bytes]:
    """Scales and minimums uint8[n, 2], 0 to most_scale, and quants uint8[n, size], 0 to most.

    units: float32[n, 2], those in which scales and minimums are counted.
    """
    parts = _parts(parts, threads)
    for name, array in (("fitted", fitted), ("units", units)):
        check_array(name, array, np.float32, (len(parts), 2))
    require(0 < most_scale < 256 and 0 < most < 256, "scales and quants are bytes")
    codes, quants = np.empty((len(parts), 2), np.uint8), np.empty(parts.shape, np.uint8)
    load_kernel("round_to_ranges")(parts, fitted, units, most, most_scale, codes, quants, threads)
    return codes, quants


def fit_steps(parts: Floats, values: StepValues, threads: int) -> Floats:
    """float32[n]: the best step, of either sign, of parts float32[n, size]."""
    parts = _parts(parts, threads)
    fitted = np.empty(len(parts), np.float32)
    load_kernel("fit_steps")(parts, values.nearest, values.values, fitted, threads)
    return fitted


def round_to_steps(
    parts: Floats, fitted: Floats, units: Floats, values: StepValues, scales: tuple[int, int], threads: int
) -> tuple[NDArray[np.int8], Bytes]:
    """Scales int8[n] (from, to) in units float32[n], and quants uint8[n, size]."""
    parts = _parts(parts, threads)
    for name, array in (("fitted", fitted), ("units", units)):
        check_array(name, array, np.float32, (len(parts),))
    least, most = scales
    require(-128 <= least <= most <= 127, "scales are bytes")
    chosen, quants = np.empty(len(parts), np.int8), np.empty(parts.shape, np.uint8)
    load_kernel("round_to_steps")(
        parts, fitted, units, values.nearest, values.values, least, most, chosen, quants, threads
    )
    return chosen, quants


def _parts(parts: Floats, threads: int) -> Floats:
    parts = np.ascontiguousarray(parts)
    check_array("parts", parts, np.float32, (None, None))
    require(parts.shape[1] > 0, "parts are empty")
    check_threads(threads)
    return parts
