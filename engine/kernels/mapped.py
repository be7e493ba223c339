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
from engine.kernels.linear import bind_linear, linear_product
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
    def lines(self) -> NDArray[np.uint8]:
        """uint8[rows, bytes of a row], in the map."""
        return self.tensor.as_bytes().reshape(self.rows, -1)

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


@dataclass(frozen=True, slots=True, eq=False)
class MappedProduct:
    """y = x W^T with x and y fixed, for any weight of the type and shape of the one it was made for.

    steps: the first row and the one behind the last of each part, what is called with these rows (uint8[rows,
    bytes of a row]), and what is called then.  check: raises where a scale was damaged.
    """

    steps: tuple[tuple[int, int, Callable[[NDArray[np.uint8]], object], Callable[[], object]], ...]
    check: Callable[[Tensor], None]

    def __call__(self, weight: MappedWeight) -> None:
        """Raises ModelFileError where a scale is infinite or no number."""
        self.multiply(weight.lines, weight.tensor)

    def multiply(self, lines: NDArray[np.uint8], tensor: Tensor) -> None:
        for first, stop, take, compute in self.steps:
            take(lines[first:stop])
            compute()
        self.check(tensor)


def mapped_product(
    weight: MappedWeight,
    x: Floats,
    y: Floats,
    window: Window,
    scratch: LinearScratch,
    threads: int,
    source: object = None,
) -> MappedProduct:
    """As `linear_product`, for weights in a file's map."""
    check_array("x", x, np.float32, (None, weight.cols))
    check_output("y", y, np.float32, (x.shape[0], weight.rows))
    require(window.packer.threads == threads, "the window is made for another number of threads")
    source = object() if source is None else source
    if weight.is_decoded:
        as_it_lies = PackedWeight(weight.tensor.name, weight.type, weight.rows, weight.cols, weight.lines)
        product = linear_product(as_it_lies, x, y, scratch, threads, source)
        whole = (0, weight.rows, product, _nothing)
        return MappedProduct((whole,), lambda tensor: require_finite(tensor.name, scratch))
    dtype = PLAIN_DTYPES.get(weight.type.name, np.uint8)
    at_once = window.groups_at_once(weight) * GROUP
    steps: list[tuple[int, int, Callable[[NDArray[np.uint8]], object], Callable[[], object]]] = []
    for first in range(0, weight.rows, at_once):
        stop = min(first + at_once, weight.rows)
        count = stop - first
        data = window.groups(-(-count // GROUP), weight.group_bytes, dtype)
        interleave = window.packer.interleaver(weight.type, count, data, _pieces(count, threads))
        floats = data.view(np.float32) if weight.type.name == "F32" else data
        packed = PackedWeight(weight.tensor.name, weight.type, count, weight.cols, floats)
        target = y[:, first:stop]
        if target.flags.c_contiguous:
            compute = bind_linear(packed, x, target, scratch, threads, source)
        else:
            result = window.results(len(x), count)
            multiply = bind_linear(packed, x, result, scratch, threads, source)
            compute = partial(run_all, (multiply, partial(np.copyto, target, result)))
        steps.append((first, stop, interleave, compute))
    return MappedProduct(tuple(steps), window.packer.require_finite)


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
    product = mapped_product(weight, x, y, window, scratch, threads, source)
    return partial(product.multiply, weight.lines, weight.tensor)


def _nothing() -> None:
    return None


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
