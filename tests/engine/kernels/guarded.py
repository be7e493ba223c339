"""Output arrays inside a larger one, to see writes beside them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

_MARGIN = 256
_UNTOUCHED = np.float32(12345.0)


@contextmanager
def guarded(shape: tuple[int, ...]) -> Iterator[NDArray[np.float32]]:
    """An array of NaN that must be overwritten as a whole, and nothing around it."""
    size = int(np.prod(shape))
    around = np.full(size + 2 * _MARGIN, _UNTOUCHED, np.float32)
    array = around[_MARGIN : _MARGIN + size].reshape(shape)
    array[...] = np.nan
    yield array
    assert not np.isnan(array).any(), "some elements were not written, or are no numbers"
    assert (around[:_MARGIN] == _UNTOUCHED).all(), "written before the array"
    assert (around[_MARGIN + size :] == _UNTOUCHED).all(), "written behind the array"
