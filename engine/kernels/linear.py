"""y = x W^T for every supported type, bound once and called many times."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engine.kernels.checks import check_array, check_output, check_separate, check_threads, require
from engine.kernels.linear_decoded import decoded_product
from engine.kernels.linear_fixed import fixed_product
from engine.kernels.linear_plain import plain_product
from engine.kernels.linear_scratch import LinearScratch
from engine.kernels.packing import PackedWeight
from engine.kernels.product import Product
from engine.quantisation.registry import FORMATS

Floats = NDArray[np.float32]

_MAKERS = {"float32": plain_product, "fixed": fixed_product, "decoded": decoded_product}


def linear_product(
    weight: PackedWeight,
    x: Floats,
    y: Floats,
    scratch: LinearScratch,
    threads: int,
    source: object = None,
) -> Product:
    """A product for weights of this one's type and shape.

    x: float32[n, cols]; y: float32[n, rows], overwritten, no part of x.  Raises ValueError, TypeError.

    In 16-bit fixed point or in float32, as `engine.quantisation.registry` says for the type.  source: who
    made x; of products that are made, and called, one after the other with the same source, only the first
    prepares x.
    """
    check_array("x", x, np.float32, (None, weight.cols))
    check_output("y", y, np.float32, (x.shape[0], weight.rows))
    check_separate("x", x, "y", y)
    check_threads(threads)
    require(len(x) > 0, "x holds no tokens")
    require(scratch.work.shape[0] >= threads, f"scratch is too small for {threads} threads")
    make = _MAKERS[FORMATS[weight.type.name].product]
    return make(weight, x, y, scratch, threads, source)


def bind_linear(
    weight: PackedWeight,
    x: Floats,
    y: Floats,
    scratch: LinearScratch,
    threads: int,
    source: object = None,
) -> Callable[[], object]:
    """The product with this weight, see `linear_product`."""
    return linear_product(weight, x, y, scratch, threads, source).bind(weight.words)


def linear(weight: PackedWeight, x: Floats, threads: int = 1) -> Floats:
    """float32[n, rows]; allocates its result and scratch."""
    check_array("x", x, np.float32, (None, weight.cols))
    y = np.empty((x.shape[0], weight.rows), np.float32)
    bind_linear(weight, x, y, LinearScratch.allocate(x.shape[0], weight.cols, threads), threads)()
    return y
