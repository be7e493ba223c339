"""The formulas against values computed once by the `gguf` package 0.19, whose results equal the C code's."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from engine.errors import UnsupportedModelError
from engine.gguf.tensor_types import SUPPORTED_TYPES, TENSOR_TYPES
from engine.quantisation.dequantise import FORMULAS, dequantise, dequantise_rows
from engine.quantisation.quantise import make_tensor
from engine.tensor import Tensor

HALVES_AT = {
    "Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q4_K": [0, 2], "Q5_K": [0, 2],
    "Q6_K": [208],
}  # fmt: skip
"""Where a block has its half-precision scales; the first becomes 0.0123, the second -0.377."""

EXPECTED = {
    "F32": ("4c8c7a89fd9fd8dd", [2.2618727966372777e26, -0.012998023070394993, 52061.48828125]),
    "F16": ("e1d844494fdae56e", [0.0024509429931640625, 3702.0, -49312.0]),
    "BF16": ("dcf837e338603dc7", [6.875938841847043e-24, 2.2606912826793566e26, -1.7264387054628302e35]),
    "Q8_0": ("5df6a0e76b023727", [0.725616455078125, 1.315948486328125, 0.22137451171875]),
    "Q4_0": ("d88cd6c56a8c4ece", [0.036895751953125, 0.036895751953125, -0.02459716796875]),
    "Q4_1": ("bc32cdcff5cfc899", [-0.266265869140625, -0.315460205078125, -0.192474365234375]),
    "Q5_0": ("492c41286b74f046", [0.0491943359375, 0.1475830078125, -0.061492919921875]),
    "Q5_1": ("c000e288a9976fc9", [-0.094085693359375, -0.241668701171875, -0.241668701171875]),
    "Q4_K": ("c91abf8a5941cb3c", [24.766357421875, 21.236663818359375, 25.270599365234375]),
    "Q5_K": ("c9acd54015a24d54", [28.296051025390625, 29.80877685546875, 31.82574462890625]),
    "Q6_K": ("3a002651c4ec0ddb", [-3.652679443359375, 3.382110595703125, -0.578033447265625]),
}
"""SHA-256 (start) of all values, and the values number 0, 1 and 17."""


def sample_tensor(type_name: str) -> Tensor:
    """Three blocks (64 where a block is one element) of bytes without any order, with sensible scales."""
    type = TENSOR_TYPES[type_name]
    n_blocks = 3 if type.block_size > 1 else 64
    index = np.arange(n_blocks * type.block_bytes)
    raw = ((index * index * 7 + index * 13 + 5) % 251).astype(np.uint8).reshape(n_blocks, -1)
    for value, start in zip([0.0123, -0.377], HALVES_AT.get(type_name, []), strict=False):
        raw[:, start : start + 2] = np.array([value], "<f2").view(np.uint8)
    shape = (n_blocks, type.block_size)
    return Tensor.contiguous(type_name, type, shape, raw.reshape(-1))


@pytest.mark.parametrize("type_name", SUPPORTED_TYPES)
def test_values_of_the_reference(type_name: str) -> None:
    values = dequantise(sample_tensor(type_name))
    checksum, first = EXPECTED[type_name]
    assert values.dtype == np.float32
    assert values.reshape(-1)[[0, 1, 17]].tolist() == first
    assert hashlib.sha256(values.astype("<f4").tobytes()).hexdigest()[:16] == checksum


def test_every_supported_type_has_a_formula() -> None:
    assert set(FORMULAS) == set(SUPPORTED_TYPES)


@pytest.mark.parametrize("type_name", SUPPORTED_TYPES)
def test_rows(type_name: str) -> None:
    weights = np.random.default_rng(1).standard_normal((7, 512))
    tensor = make_tensor("embedding", weights, type_name)
    everything = dequantise(tensor)
    rows = np.array([6, 0, 3, 3], np.int32)
    np.testing.assert_array_equal(dequantise_rows(tensor, rows), everything[rows])
    assert dequantise_rows(tensor, np.array([], np.int64)).shape == (0, 512)


@pytest.mark.parametrize("row", [-1, 7, 2**31 - 1])
def test_row_outside(row: int) -> None:
    tensor = make_tensor("embedding", np.ones((7, 32)), "Q8_0")
    with pytest.raises(IndexError, match="embedding has no row"):
        dequantise_rows(tensor, np.array([0, row]))


def test_more_blocks_than_are_done_at_once() -> None:
    weights = np.arange(70_000, dtype=np.float32)[:, None] * np.ones(32, np.float32)
    np.testing.assert_array_equal(dequantise(make_tensor("long", weights, "F32")), weights)
    quantised = make_tensor("long", np.sign(weights - 35_000), "Q8_0")
    np.testing.assert_allclose(dequantise(quantised), np.sign(weights - 35_000), rtol=1e-3)


@pytest.mark.parametrize("type_name", ["F32", "Q4_0", "Q6_K"])
def test_views(type_name: str) -> None:
    """Slices and transposed axes give what the whole tensor has there."""
    tensor = make_tensor("cube", np.random.default_rng(2).standard_normal((3, 4, 512)), type_name)
    everything = dequantise(tensor)
    turned = tensor.transposed(1, 0, 2).sliced(0, 1, 3).sliced(2, 256, 512)
    np.testing.assert_array_equal(dequantise(turned), everything.swapaxes(0, 1)[1:3, :, 256:])


def test_type_without_a_formula() -> None:
    tensor = Tensor.contiguous("odd", TENSOR_TYPES["IQ4_NL"], (1, 32), np.zeros(18, np.uint8))
    with pytest.raises(UnsupportedModelError, match="odd is of type IQ4_NL"):
        dequantise(tensor)
    with pytest.raises(UnsupportedModelError, match="odd is of type IQ4_NL"):
        dequantise_rows(tensor, np.array([0]))


def test_bfloat16_keeps_its_shape() -> None:
    weights = np.arange(8, dtype=np.float32).reshape(2, 4)
    values = dequantise(make_tensor("b", weights, "BF16"))
    assert values.shape == (2, 4)
    np.testing.assert_array_equal(values, weights)
