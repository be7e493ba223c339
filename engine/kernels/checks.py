"""What a wrapper asks of an array before compiled code, which checks nothing, may touch it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


def require(condition: bool, message: str) -> None:
    """Raises ValueError with the message: wrong arrays are a fault of the caller, not of a person."""
    if not condition:
        raise ValueError(message)


def check_array(name: str, array: NDArray[Any], dtype: DTypeLike, shape: tuple[int | None, ...]) -> None:
    """dtype, C order and shape, where None stands for any length.  Raises ValueError or TypeError."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} is no array but {type(array).__name__}")
    if array.dtype != np.dtype(dtype):
        raise TypeError(f"{name} is {array.dtype}, not {np.dtype(dtype)}")
    fits = array.ndim == len(shape) and all(
        want is None or want == have for want, have in zip(shape, array.shape, strict=True)
    )
    if not fits:
        raise ValueError(f"{name} has shape {array.shape}, not {shape}")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name} is not contiguous")


def check_output(name: str, array: NDArray[Any], dtype: DTypeLike, shape: tuple[int | None, ...]) -> None:
    """check_array, and the array may be written to."""
    check_array(name, array, dtype, shape)
    if not array.flags.writeable:
        raise ValueError(f"{name} is read-only")


def check_threads(threads: int) -> None:
    require(1 <= threads <= 1024, f"threads must be 1 to 1024, not {threads}")


def check_separate(name: str, array: NDArray[Any], other_name: str, other: NDArray[Any]) -> None:
    """Raises ValueError where two arrays share memory."""
    if np.may_share_memory(array, other):
        raise ValueError(f"{name} and {other_name} share memory")


def check_in_place(name: str, array: NDArray[Any], out: NDArray[Any]) -> None:
    """out is the same memory as array or none of it: a shifted output overwrites what is yet to be read.

    Both contiguous and of one size.  Raises ValueError.
    """
    if array.ctypes.data != out.ctypes.data:
        check_separate(name, array, "out", out)
