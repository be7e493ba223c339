"""Views of a tensor: shapes, strides and bytes, checked against NumPy's own views."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.gguf.tensor_types import TENSOR_TYPES
from engine.tensor import Tensor

F32, Q8_0, Q6_K = (TENSOR_TYPES[name] for name in ("F32", "Q8_0", "Q6_K"))


def counting(type_name: str, *shape: int) -> tuple[Tensor, np.ndarray]:
    """A tensor whose bytes count up, and the same as uint8[..., blocks, block_bytes]."""
    type = TENSOR_TYPES[type_name]
    *outer, last = shape
    blocks = (*outer, last // type.block_size, type.block_bytes)
    raw = np.arange(np.prod(blocks)).astype(np.uint8)
    return Tensor.contiguous("t", type, shape, raw), raw.reshape(blocks)


@pytest.mark.parametrize(
    ("type_name", "shape", "strides"),
    [
        ("F32", (5,), (4,)),
        ("F32", (2, 3, 5), (60, 20, 4)),
        ("Q8_0", (3, 64), (68, 34)),
        ("Q6_K", (2, 3, 512), (1260, 420, 210)),
    ],
)
def test_contiguous(type_name: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    tensor, blocks = counting(type_name, *shape)
    assert tensor.strides == strides
    assert tensor.is_contiguous
    assert (tensor.n_elements, tensor.nbytes) == (np.prod(shape), blocks.size)
    np.testing.assert_array_equal(tensor.as_bytes(), blocks)


@pytest.mark.parametrize("type_name", ["F32", "Q8_0"])
def test_views_share_the_data(type_name: str) -> None:
    tensor, blocks = counting(type_name, 3, 4, 64)
    view = tensor.transposed(1, 0, 2).sliced(0, 1, 4).sliced(1, 0, 2).sliced(-1, 32, 64)
    step = 32 // tensor.type.block_size
    expected = blocks.swapaxes(0, 1)[1:4, 0:2, step:]
    assert view.shape == (3, 2, 32)
    assert not view.is_contiguous
    assert np.shares_memory(view.as_bytes(), tensor.data)
    assert not view.as_bytes().flags.writeable
    np.testing.assert_array_equal(view.as_bytes(), expected)


def test_plain_type_may_turn_its_last_axis() -> None:
    tensor, blocks = counting("F32", 3, 4)
    np.testing.assert_array_equal(tensor.transposed(1, 0).as_bytes(), blocks.swapaxes(0, 1))


def test_rows_are_still_contiguous() -> None:
    tensor, blocks = counting("Q8_0", 6, 64)
    rows = tensor.sliced(0, 2, 5)
    assert rows.is_contiguous
    np.testing.assert_array_equal(rows.as_bytes(), blocks[2:5])
    assert tensor.sliced(0, 3, 3).as_bytes().size == 0


def test_what_blocks_forbid() -> None:
    tensor, _ = counting("Q8_0", 3, 64)
    with pytest.raises(ValueError, match="lie along the last axis"):
        tensor.transposed(1, 0)
    with pytest.raises(ValueError, match="cuts a block of 32"):
        tensor.sliced(1, 16, 64)
    with pytest.raises(ValueError, match="no whole blocks of 32"):
        Tensor.contiguous("t", Q8_0, (2, 33), np.zeros(68, np.uint8))


@pytest.mark.parametrize("axes", [(0,), (0, 0), (0, 2), (0, 1, 2)])
def test_wrong_axes(axes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="is no order of 2 axes"):
        counting("F32", 3, 4)[0].transposed(*axes)


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (2, 1), (0, 4)])
def test_slices_outside(start: int, stop: int) -> None:
    with pytest.raises(ValueError, match="lies outside axis 0"):
        counting("F32", 3, 4)[0].sliced(0, start, stop)


@pytest.mark.parametrize("size", [47, 49])
def test_data_of_another_size(size: int) -> None:
    with pytest.raises(ValueError, match=f"{size} bytes given, 48 needed"):
        Tensor.contiguous("t", F32, (3, 4), np.zeros(size, np.uint8))


@pytest.mark.parametrize(
    "change", [{"offset": 1}, {"offset": -4}, {"strides": (20, 4)}, {"strides": (-16, 4)}, {"shape": (4, 4)}]
)
def test_views_that_lead_outside(change: dict[str, object]) -> None:
    tensor = replace(counting("F32", 3, 4)[0], **change)
    with pytest.raises(ValueError, match="leads outside its data"):
        tensor.as_bytes()


def test_bits_per_weight() -> None:
    assert (F32.bits_per_weight, Q8_0.bits_per_weight, Q6_K.bits_per_weight) == (32, 8.5, 6.5625)
