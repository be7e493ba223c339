"""The formulas against blocks decoded by the `gguf` package, bit for bit (tools/compare_with_gguf.py writes
them), and for the types it does not know against an element-by-element reading of the format."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.errors import UnsupportedModelError
from engine.gguf.tensor_types import SUPPORTED_TYPES, TENSOR_TYPES, QuantType
from engine.quantisation.dequantise import dequantise, dequantise_rows
from engine.quantisation.quantise import make_tensor
from engine.quantisation.registry import FORMATS
from engine.tensor import Tensor
from tests.helpers.weight_blocks import make_weight

FIXTURE = np.load(Path(__file__).parents[2] / "data" / "decoded_types.npz")
DECODED = sorted({name.partition(".")[0] for name in FIXTURE.files})

BLOCK_BYTES = {
    "F32": (1, 4), "F16": (1, 2), "BF16": (1, 2), "F64": (1, 8),
    "I8": (1, 1), "I16": (1, 2), "I32": (1, 4), "I64": (1, 8),
    "Q4_0": (32, 18), "Q4_1": (32, 20), "Q5_0": (32, 22), "Q5_1": (32, 24), "Q8_0": (32, 34),
    "Q8_1": (32, 36), "Q2_K": (256, 84), "Q3_K": (256, 110), "Q4_K": (256, 144), "Q5_K": (256, 176),
    "Q6_K": (256, 210), "Q8_K": (256, 292), "IQ4_NL": (32, 18), "IQ4_XS": (256, 136), "IQ3_S": (256, 110),
    "IQ3_XXS": (256, 98), "IQ2_XXS": (256, 66), "IQ2_XS": (256, 74),
    "IQ2_S": (256, 82), "IQ1_S": (256, 50), "IQ1_M": (256, 56), "TQ1_0": (256, 54), "TQ2_0": (256, 66),
    "MXFP4": (32, 17), "NVFP4": (64, 36), "Q1_0": (128, 18),
}  # fmt: skip
"""Elements and bytes of a block (case Q-09)."""


def test_sizes_of_blocks() -> None:
    assert {name: (type.block_size, type.block_bytes) for name, type in TENSOR_TYPES.items()} == BLOCK_BYTES


def test_every_type_has_a_formula() -> None:
    assert set(FORMATS) == set(TENSOR_TYPES)
    assert set(SUPPORTED_TYPES) <= set(FORMATS)


@pytest.mark.parametrize("type_name", DECODED)
def test_values_of_the_reference(type_name: str) -> None:
    blocks, wanted = FIXTURE[f"{type_name}.blocks"], FIXTURE[f"{type_name}.values"]
    assert len(blocks) == 17
    tensor = Tensor.contiguous("w", TENSOR_TYPES[type_name], wanted.shape, blocks.reshape(-1))
    ours = dequantise(tensor)
    assert ours.dtype == np.float32
    np.testing.assert_array_equal(ours.view(np.uint32), wanted)


def _q1_0(block: bytes) -> list[float]:
    (d,) = struct.unpack_from("<e", block)
    return [d if block[2 + i // 8] >> i % 8 & 1 else -d for i in range(128)]


def _q8_1(block: bytes) -> list[float]:
    (d,) = struct.unpack_from("<e", block)
    return [d * q for q in struct.unpack_from("<32b", block, 4)]


def _q8_k(block: bytes) -> list[float]:
    (d,) = struct.unpack_from("<f", block)
    return [d * q for q in struct.unpack_from("<256b", block, 4)]


def _plain(code: str) -> Callable[[bytes], list[float]]:
    return lambda block: list(struct.unpack("<" + code, block))


READINGS = {
    "Q1_0": _q1_0, "Q8_1": _q8_1, "Q8_K": _q8_k, "F64": _plain("d"), "I8": _plain("b"), "I16": _plain("h"),
    "I32": _plain("i"), "I64": _plain("q"),
}  # fmt: skip
"""Of the types that the package does not decode: a block to its values in double precision."""


def test_every_type_is_compared_with_something() -> None:
    assert sorted([*DECODED, *READINGS]) == sorted(FORMATS)


@pytest.mark.parametrize("type_name", READINGS)
@pytest.mark.parametrize("kind", ["random", "zero", "denormal", "extreme"])
def test_values_read_one_by_one(type_name: str, kind: str) -> None:
    tensor = make_weight(type_name, 5, 2 * TENSOR_TYPES[type_name].block_size, kind)
    blocks = tensor.as_bytes().reshape(-1, tensor.type.block_bytes)
    with np.errstate(over="ignore"):  # F64 beyond float32
        wanted = np.array([READINGS[type_name](block.tobytes()) for block in blocks]).astype(np.float32)
    np.testing.assert_array_equal(dequantise(tensor), wanted.reshape(tensor.shape))


def test_whole_numbers_are_rounded_once() -> None:
    """To the nearest float32, ties to even, also where float64 would not hold them."""
    values = np.array([[2**24 + 1, 2**24 + 3, -(2**63), 2**63 - 1, 2**62 + 2**38 + 1]], "<i8")
    tensor = Tensor.contiguous("w", TENSOR_TYPES["I64"], values.shape, values.view(np.uint8).reshape(-1))
    wanted = [2.0**24, 2.0**24 + 4, -(2.0**63), 2.0**63, 2.0**62 + 2.0**39]
    assert dequantise(tensor)[0].tolist() == wanted


@pytest.mark.parametrize("type_name", FORMATS)
def test_rows(type_name: str) -> None:
    tensor = make_weight(type_name, 7, 512, "random", seed=1)
    everything = dequantise(tensor)
    rows = np.array([6, 0, 3, 3], np.int32)
    np.testing.assert_array_equal(dequantise_rows(tensor, rows), everything[rows])
    assert dequantise_rows(tensor, np.array([], np.int64)).shape == (0, 512)


@pytest.mark.parametrize("type_name", [name for name in FORMATS if name[0] != "I" or name[1] == "Q"])
def test_zero_and_tiny_blocks(type_name: str) -> None:
    """Case Q-03: nothing but finite numbers, near zero.  The least scales of NVFP4 are not so small."""
    zeros = dequantise(make_weight(type_name, 3, 512, "zero"))
    tiny = dequantise(make_weight(type_name, 3, 512, "denormal"))
    assert np.isfinite(zeros).all() and np.abs(zeros).max() < 1e-30
    assert np.isfinite(tiny).all() and np.abs(tiny).max() < (0.1 if type_name == "NVFP4" else 1e-3)


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


@pytest.mark.parametrize("type_name", FORMATS)
def test_views(type_name: str) -> None:
    """Slices and transposed axes give what the whole tensor has there."""
    flat = make_weight(type_name, 12, 512, "random", seed=2)
    tensor = Tensor.contiguous("cube", flat.type, (3, 4, 512), flat.data)
    everything = dequantise(tensor)
    turned = tensor.transposed(1, 0, 2).sliced(0, 1, 3).sliced(2, 256, 512)
    np.testing.assert_array_equal(dequantise(turned), everything.swapaxes(0, 1)[1:3, :, 256:])


def test_type_without_a_formula() -> None:
    unknown = QuantType("Q9_9", 999, 32, 18)
    tensor = Tensor.contiguous("odd", unknown, (1, 32), np.zeros(18, np.uint8))
    with pytest.raises(UnsupportedModelError, match="odd is of type Q9_9"):
        dequantise(tensor)
    with pytest.raises(UnsupportedModelError, match="odd is of type Q9_9"):
        dequantise_rows(tensor, np.array([0]))


def test_bfloat16_keeps_its_shape() -> None:
    """Case Q-07: two bytes are one number, not two."""
    weights = np.arange(8, dtype=np.float32).reshape(4, 2)
    values = dequantise(make_tensor("b", weights, "BF16"))
    assert values.shape == (4, 2)
    np.testing.assert_array_equal(values, weights)
