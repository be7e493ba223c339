"""Products from the map give the same bits as packed weights, whatever the window."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import ModelFileError
from engine.gguf.tensor_types import SUPPORTED_TYPES, TENSOR_TYPES
from engine.kernels import mapped
from engine.kernels.linear import bind_linear
from engine.kernels.linear_scratch import LinearScratch
from engine.kernels.mapped import MappedWeight, Window, bind_mapped_linear, mapped_rows
from engine.kernels.packing import pack_weight, unpack_rows
from engine.tensor import Tensor
from tests.helpers.cpu_levels import COMPILED_LEVELS, at_level
from tests.helpers.weight_blocks import make_weight

ROWS = 5 * 64 + 3


def weight_of(type_name: str, rows: int = ROWS) -> Tensor:
    return make_weight(type_name, rows, 2 * max(64, TENSOR_TYPES[type_name].block_size), "random")


def products(tensor: Tensor, n_tokens: int, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """From the map, and from packed weights."""
    rows, cols = tensor.shape
    x = np.random.default_rng(n_tokens).standard_normal((n_tokens, cols), np.float32)
    ours, wanted = np.full((2, n_tokens, rows), np.nan, np.float32)
    scratch = LinearScratch.allocate(n_tokens, cols, threads)
    weight = MappedWeight(tensor)
    window = Window([weight], n_tokens, threads)
    bind_mapped_linear(weight, x, ours, window, scratch, threads)()
    bind_linear(pack_weight(tensor, threads), x, wanted, scratch, threads)()
    return ours, wanted


@pytest.mark.parametrize("n_tokens", [1, 3, 30])
@pytest.mark.parametrize("type_name", SUPPORTED_TYPES)
@pytest.mark.parametrize("level", COMPILED_LEVELS)
def test_the_same_bits(level: str, type_name: str, n_tokens: int) -> None:
    with at_level(level):
        ours, wanted = products(weight_of(type_name), n_tokens, threads=2)
        np.testing.assert_array_equal(ours, wanted)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("window_bytes", [1, 20_000])
@pytest.mark.parametrize("n_tokens", [1, 30])
def test_windows_smaller_than_the_weight(
    n_tokens: int, window_bytes: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One group for each thread, or two; the last window is not full."""
    monkeypatch.setattr(mapped, "WINDOW_BYTES", window_bytes)
    ours, wanted = products(weight_of("Q5_1"), n_tokens, threads)
    np.testing.assert_array_equal(ours, wanted)


def test_one_window_serves_weights_of_every_shape() -> None:
    tensors = [weight_of("Q8_0", 640), weight_of("F32", 3), weight_of("Q6_K", 100)]
    weights = [MappedWeight(tensor) for tensor in tensors]
    window = Window(weights, 7, 2)
    for tensor, weight in zip(tensors, weights, strict=True):
        x = np.ones((7, weight.cols), np.float32)
        ours, wanted = np.empty((2, 7, weight.rows), np.float32)
        scratch = LinearScratch.allocate(7, weight.cols, 2)
        bind_mapped_linear(weight, x, ours, window, scratch, 2)()
        bind_linear(pack_weight(tensor, 2), x, wanted, scratch, 2)()
        np.testing.assert_array_equal(ours, wanted)


@pytest.mark.parametrize("type_name", SUPPORTED_TYPES)
def test_rows_of_an_embedding(type_name: str) -> None:
    tensor = weight_of(type_name)
    ids = np.array([0, ROWS - 1, 64, 64, 5], np.int32)
    wanted = unpack_rows(pack_weight(tensor), ids)
    np.testing.assert_array_equal(mapped_rows(MappedWeight(tensor), ids), wanted)
    for wrong in (-1, ROWS):
        with pytest.raises(IndexError):
            mapped_rows(MappedWeight(tensor), np.array([wrong], np.int32))


def test_a_scale_that_is_no_number_is_told_by_the_product() -> None:
    tensor = weight_of("Q4_0")
    tensor.data.reshape(ROWS, -1, 18)[ROWS - 1, 2, :2] = 0x00, 0x7C
    with pytest.raises(ModelFileError, match="scale"):
        products(tensor, 1, 2)


def test_windows_that_are_too_small_or_of_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "WINDOW_BYTES", 1)
    weight = MappedWeight(weight_of("Q4_0"))
    x, y = np.ones((2, weight.cols), np.float32), np.empty((2, weight.rows), np.float32)
    scratch = LinearScratch.allocate(2, weight.cols, 2)
    for window in (Window([weight], 1, 2), Window([], 2, 2), Window([weight], 2, 1)):
        with pytest.raises(ValueError, match="window"):
            bind_mapped_linear(weight, x, y, window, scratch, 2)


def test_only_matrices_without_gaps() -> None:
    tensor = weight_of("F32")
    for wrong in (tensor.sliced(1, 0, 10), tensor.transposed(1, 0)):
        with pytest.raises(ValueError, match="gaps"):
            MappedWeight(wrong)
