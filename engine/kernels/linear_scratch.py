"""Working memory of the matrix products, and how it is shared out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from engine.kernels.checks import check_threads, require
from engine.kernels.loader import fixed_tile, token_tile
from engine.kernels.packing import GROUP

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Panels = TypeVar("Panels")

HALF = 32
"""Rows that a panel keeps side by side: a group of rows is two halves."""

FLOAT_BLOCK = 64
"""Columns of a block of a float32 panel."""

FIXED_BLOCK = 32
"""Columns of a block of a fixed-point panel; they share the scale of an activation."""

WORK_ROWS, WORK_COLUMNS = 16, 1088
"""Kernels use four rows of 1024 numbers.  The others keep threads apart: what one prefetches beyond its own
rows must not be what another writes, which cost a quarter of the speed.  Rows of 4096 bytes stall loads."""

PANEL_BYTES = 512 * 1024
"""Decoded weights of one thread between two steps: about half of a core's second-level cache."""


@dataclass(slots=True, eq=False)
class LinearScratch:
    """Memory of one caller, reused by all products; bytes are seen as what a product needs.

    tokens: activations as the product reads them; token_scales, token_sums: of their fixed-point blocks;
    panels: decoded weights; panel_scales, panel_offsets: of fixed-point ones; totals: sums of a group of
    rows; bits and work: one piece per thread; found: whether a thread met a damaged scale.  Zeros at first:
    padding must stay finite.
    held: whose activations are in tokens, so that products of the same ones need not prepare them again.
    """

    tokens: Bytes
    token_scales: Floats
    token_sums: Floats
    panels: Bytes
    panel_scales: Floats
    panel_offsets: Floats
    totals: Floats
    bits: NDArray[np.uint32]
    work: Floats
    found: NDArray[np.int64]
    held: tuple[object, ...] | None = None

    @classmethod
    def allocate(cls, max_tokens: int, max_cols: int, threads: int) -> LinearScratch:
        """Enough for products of max_tokens tokens with max_cols columns."""
        check_threads(threads)
        padded = max(round_up(max_tokens, tile) for tile in (token_tile(), fixed_tile()))
        cols = round_up(max_cols, FLOAT_BLOCK)
        # a product with fewer columns takes more groups at once, up to the full budget
        panel = max(PANEL_BYTES, cols * GROUP * 4)
        scales = max(PANEL_BYTES // (2 * GROUP), cols) * GROUP // FIXED_BLOCK
        return cls(
            tokens=np.zeros(padded * cols * 4, np.uint8),
            token_scales=np.zeros(padded * cols // FIXED_BLOCK, np.float32),
            token_sums=np.zeros(padded * cols // FIXED_BLOCK, np.float32),
            panels=np.zeros(threads * panel, np.uint8),
            panel_scales=np.zeros(threads * scales, np.float32),
            panel_offsets=np.zeros(threads * scales, np.float32),
            totals=np.zeros(threads * padded * GROUP, np.float32),
            bits=np.zeros((threads, 2 * GROUP), np.uint32),
            work=np.zeros((threads, WORK_ROWS, WORK_COLUMNS), np.float32),
            found=np.zeros((threads, 2), np.int64),
        )

    @property
    def nbytes(self) -> int:
        arrays = (self.tokens, self.token_scales, self.token_sums, self.panels, self.panel_scales)
        arrays += (self.panel_offsets, self.totals, self.bits, self.work, self.found)  # type: ignore[assignment]
        return sum(int(array.nbytes) for array in arrays)

    def take(self, source: object, *form: object) -> bool:
        """Whether tokens must be filled with source in this form; None is never held."""
        wanted = (source, *form)
        fill = source is None or self.held != wanted
        self.held = wanted
        return fill

    def forget(self) -> None:
        """Products that are made from now on prepare their tokens."""
        self.held = None


def round_up(count: int, step: int) -> int:
    return -(-count // step) * step


def steps(n_groups: int, at_once: int, panels: Callable[[int], Panels]) -> list[tuple[int, Panels]]:
    """The first group of each step with the panels of its groups: at_once of them, or what is left."""
    whole = panels(min(at_once, n_groups))
    return [
        (first, whole if first + at_once <= n_groups else panels(n_groups - first))
        for first in range(0, n_groups, at_once)
    ]


def view(memory: NDArray[Any], dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
    """The beginning of memory as an array.  Raises ValueError where it is too short."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    require(memory.nbytes >= size, f"scratch is too small for {' x '.join(map(str, shape))}")
    part: NDArray[Any] = memory.view(np.uint8)[:size].view(dtype).reshape(shape)
    return part
