"""Products straight from the map of a file, for people short of memory.

Some groups of rows at a time are interleaved into a window that stays in the cache, where the usual kernels
compute with them.  See docs/decisions/0010-memory-of-weights.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gguf.tensor_types import QuantType
from engine.kernels.checks import check_array, check_output, require
from engine.kernels.linear import bind_linear
from engine.kernels.linear_decoded import require_finite
from engine.kernels.linear_scratch import LinearScratch
from engine.kernels.packing import GROUP, PLAIN_DTYPES, PackedWeight, Packer, packed_nbytes, thread_groups
from engine.kernels.product import run_all
from engine.quantisation.dequantise import dequantise
from engine.quantisation.registry import FORMATS
from engine.tensor import Tensor

Floats = NDArray[np.float32]

WINDOW_BYTES = 1 << 20
"""Of a thread's share of the window: it stays in the cache, and threads seldom wait for each other."""


@dataclass(frozen=True, slots=True, eq=False)
class MappedWeight:
    """W of y = W x, where the file holds it."""

    tensor: Tensor

    def __post_init__(self) -> None:
        """Raises ValueError where the tensor is no matrix without gaps."""
        shape = self.tensor.shape
        fits = len(shape) == 2 and min(shape) > 0 and self.tensor.is_contiguous
        require(fits, f"{self.tensor.name}: {shape} is no matrix without gaps")

    @property
    def type(self) -> QuantType:
        return self.tensor.type

    @property
    def rows(self) -> int:
        return self.tensor.shape[0]

    @property
    def cols(self) -> int:
        return self.tensor.shape[1]

    @property
    def is_decoded(self) -> bool:
        """Whether products read the rows as the file has them, and need no window."""
        return FORMATS[self.type.name].product == "decoded"

    @property
    def group_bytes(self) -> int:
        """Of a group of rows once they are interleaved."""
        return packed_nbytes(self.tensor.type, GROUP, self.cols)

    @property
    def nbytes(self) -> int:
        """None: the pages of the map belong to the system, which takes them back as it needs to."""
        return 0


class Window:
    """Memory of one caller for the rows that are being computed with, and for results of several tokens."""

    def __init__(self, weights: Iterable[MappedWeight], max_tokens: int, threads: int) -> None:
        """Enough for the products of these weights with at most max_tokens tokens."""
        self.packer = Packer(threads)
        n_bytes = n_results = 0
        for weight in weights:
            if weight.is_decoded:
                continue
            n_groups = min(self.groups_at_once(weight), -(-weight.rows // GROUP))
            n_bytes = max(n_bytes, n_groups * weight.group_bytes)
            n_results = max(n_results, n_groups * GROUP * max_tokens)
        self._data = np.empty(n_bytes, np.uint8)
        self._results = np.empty(n_results, np.float32)

    @property
    def nbytes(self) -> int:
        return self._data.nbytes + self._results.nbytes

    def groups_at_once(self, weight: MappedWeight) -> int:
        return self.packer.threads * max(1, WINDOW_BYTES // weight.group_bytes)

    def groups(self, count: int, group_bytes: int, dtype: Any) -> NDArray[Any]:
        """dtype[count, ...], overwritten by every product."""
        require(count * group_bytes <= self._data.size, f"the window is too small for {count} groups")
        groups: NDArray[Any] = self._data[: count * group_bytes].view(dtype)
        return groups.reshape(count, -1)

    def results(self, n_tokens: int, n_rows: int) -> Floats:
        """float32[n_tokens, n_rows], overwritten by every product."""
        require(n_tokens * n_rows <= self._results.size, f"the window is too small for {n_tokens} tokens")
        return self._results[: n_tokens * n_rows].reshape(n_tokens, n_rows)


def bind_mapped_linear(
    weight: MappedWeight,
    x: Floats,
    y: Floats,
    window: Window,
    scratch: LinearScratch,
    threads: int,
    source: object = None,
) -> Callable[[], None]:
    """As `bind_linear`.  The call raises ModelFileError where a scale is infinite or no number."""
    check_array("x", x, np.float32, (None, weight.cols))
    check_output("y", y, np.float32, (x.shape[0], weight.rows))
    require(window.packer.threads == threads, "the window is made for another number of threads")
    source = object() if source is None else source
    tensor = weight.tensor
    rows = tensor.as_bytes().reshape(weight.rows, -1)
    if weight.is_decoded:
        as_it_lies = PackedWeight(tensor.name, tensor.type, weight.rows, weight.cols, rows)
        multiply = bind_linear(as_it_lies, x, y, scratch, threads, source)
        return partial(run_all, (multiply, partial(require_finite, tensor.name, scratch)))
    dtype = PLAIN_DTYPES.get(tensor.type.name, np.uint8)
    at_once = window.groups_at_once(weight) * GROUP
    calls: list[Callable[[], object]] = []
    for first in range(0, weight.rows, at_once):
        part = rows[first : first + at_once]
        data = window.groups(-(-len(part) // GROUP), weight.group_bytes, dtype)
        calls.append(window.packer.bind_interleave(tensor, part, data, _pieces(len(part), threads)))
        floats = data.view(np.float32) if tensor.type.name == "F32" else data
        packed = PackedWeight(tensor.name, tensor.type, len(part), weight.cols, floats)
        target = y[:, first : first + at_once]
        if target.flags.c_contiguous:
            calls.append(bind_linear(packed, x, target, scratch, threads, source))
        else:
            result = window.results(len(x), len(part))
            calls.append(bind_linear(packed, x, result, scratch, threads, source))
            calls.append(partial(np.copyto, target, result))
    calls.append(partial(window.packer.require_finite, tensor))
    return partial(run_all, tuple(calls))


def _pieces(n_rows: int, threads: int) -> NDArray[np.int64]:
    """Each thread interleaves the groups that it will compute with."""
    shares = thread_groups(-(-n_rows // GROUP), threads)
    table = [(first * GROUP, min(stop * GROUP, n_rows) - first * GROUP, first) for first, stop in shares]
    return np.array(table, np.int64)


def mapped_rows(weight: MappedWeight, ids: NDArray[np.integer[Any]]) -> Floats:
    """float32[n, cols]: the rows asked for, as an embedding needs them.  Raises IndexError."""
    if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= weight.rows):
        raise IndexError(f"row ids must be 0 to {weight.rows - 1}")
    tensor = weight.tensor
    chosen = np.ascontiguousarray(tensor.as_bytes()[ids]).reshape(-1)
    return dequantise(Tensor.contiguous(tensor.name, tensor.type, (len(ids), weight.cols), chosen))
