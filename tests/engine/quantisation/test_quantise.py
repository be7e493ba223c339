"""The plain types byte for byte as the reference rounds, and all types on blocks that break divisions."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from engine.errors import ModelFileError, UnsupportedModelError
from engine.gguf.tensor_types import TENSOR_TYPES
from engine.quantisation.dequantise import dequantise
from engine.quantisation.quantise import QUANTISERS, make_tensor, quantise

BLOCK_TYPES = [name for name in QUANTISERS if TENSOR_TYPES[name].block_size > 1]

CHECKSUMS = {
    "F16": "275575cbe671f6bf",
    "BF16": "4988506180132014",
    "Q8_0": "aae24445d0d2d16f",
    "Q4_0": "c93babc9a96150d6",
    "Q4_1": "77b50b92474508b4",
    "Q5_0": "009baf5c4e6f226b",
    "Q5_1": "1507cbbbd1594685",
}
"""SHA-256 (start) of what the `gguf` package 0.19 makes of `sample_weights`."""

WORST_ERROR = {
    "F32": 0, "F16": 2**-11, "BF16": 2**-8, "Q8_0": 0.0041, "Q4_0": 0.126, "Q4_1": 0.069, "Q5_0": 0.064,
    "Q5_1": 0.034, "Q2_K": 0.35, "Q3_K": 0.2, "Q4_K": 0.08, "Q5_K": 0.04, "Q6_K": 0.04, "IQ4_NL": 0.12,
    "IQ4_XS": 0.12,
}  # fmt: skip
"""Of the largest magnitude of a block: about half a step, a whole one at the end the signed types cut off."""


PATTERNS = {
    "equal": np.ones(256),
    "equal in one part": np.repeat([1, 0], [32, 224]),
    "equal in each part": np.repeat([1, -0.5, 0.25, 1, 0, 0.75, -1, 0.5], 32),
    "two values": np.tile([1, 0.999], 128),
    "two signs": np.tile([1, -1], 128),
    "one larger": np.repeat([1, 0.5], [1, 255]),
}
"""float64[256] weights."""


def sample_weights() -> np.ndarray:
    """float32[512] in groups of very different size, one of them zero."""
    sizes = np.array([1, -0.5, 0.01, 3, 0, 1e-3, 100, 2], np.float32)
    ramp = ((np.arange(512) * 37 % 101 - 50) / np.float32(16)).astype(np.float32)
    return ramp * np.repeat(sizes, 64)


@pytest.mark.parametrize("type_name", CHECKSUMS)
def test_bytes_of_the_reference(type_name: str) -> None:
    raw = quantise(sample_weights(), type_name).tobytes()
    assert hashlib.sha256(raw).hexdigest()[:16] == CHECKSUMS[type_name]


@pytest.mark.parametrize(
    ("type_name", "weights", "expected"),
    [
        ("Q4_0", [*range(-8, 8)] * 2, "003c00112233445566778899aabbccddeeff"),
        ("Q4_0", [8, -8] + [0] * 30, "00bc808f" + "88" * 14),
        ("Q4_0", [0] * 32, "0080" + "88" * 16),
        ("Q4_1", [*range(16)] * 2, "003c000000112233445566778899aabbccddeeff"),
        (
            "Q8_0",
            [*range(32)],
            "d0330004080c1014191d2125292d3135393d42464a4e52565a5e62666b6f73777b7f",
        ),
        ("Q8_0", [0] * 32, "00" * 34),
    ],
)
def test_ties_and_signs(type_name: str, weights: list[float], expected: str) -> None:
    assert quantise(weights, type_name).tobytes().hex() == expected


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        (0x3F800000, 0x3F80),
        (0x3F808000, 0x3F80),
        (0x3F818000, 0x3F82),
        (0x7F800001, 0x7FC0),
        (0x7F800000, 0x7F80),
        (0xFF800000, 0xFF80),
        (0x80000001, 0x8000),
    ],
)
def test_bfloat16_rounding(bits: int, expected: int) -> None:
    weights = np.array([bits], np.uint32).view(np.float32)
    assert quantise(weights, "BF16").view("<u2")[0] == expected


def test_half_precision_overflow_is_told() -> None:
    assert quantise(np.array([65504.0]), "F16").view("<f2")[0] == 65504
    with pytest.raises(ModelFileError, match=r"65520\.0 is too large"):
        quantise(np.array([1.0, 65520.0]), "F16")


@pytest.mark.parametrize("type_name", QUANTISERS)
def test_error_is_about_half_a_step(type_name: str) -> None:
    weights = np.random.default_rng(3).standard_normal((16, 512)).astype(np.float32)
    values = dequantise(make_tensor("w", weights, type_name))
    largest = np.abs(weights).max()
    assert np.abs(values - weights).max() <= WORST_ERROR[type_name] * largest
    assert TENSOR_TYPES[type_name].block_size == 1 or np.any(values != weights)


@pytest.mark.parametrize("type_name", BLOCK_TYPES)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_weights_without_variety(type_name: str, pattern: str) -> None:
    """Searches for a spread of the weights have nothing to find where all of them are the same."""
    for size in (1e-3, 0.02, 1.0, 3.0, 1000.0):
        for sign in (1, -1):
            weights = (PATTERNS[pattern] * (sign * size)).astype(np.float32)
            decoded = dequantise(make_tensor("w", weights.reshape(1, -1), type_name))[0]
            worst = np.abs(decoded - weights).max() / np.abs(weights).max()
            assert worst <= WORST_ERROR[type_name], (size, sign)


@pytest.mark.parametrize("type_name", BLOCK_TYPES)
def test_small_weights_keep_most_of_their_precision(type_name: str) -> None:
    """Down to where half precision has hardly any digits for the unit of a block's scales."""
    weights = np.random.default_rng(7).standard_normal((32, 256)).astype(np.float32)

    def error(size: float) -> float:
        scaled = weights * np.float32(size)
        decoded = dequantise(make_tensor("w", scaled, type_name))
        return float(np.linalg.norm(decoded - scaled) / np.linalg.norm(scaled))

    usual = error(1.0)
    for size in (100.0, 0.1, 0.01, 3e-3, 1e-3, 5e-4):
        assert error(size) < 1.3 * usual + 0.002, size


@pytest.mark.parametrize("type_name", BLOCK_TYPES)
@pytest.mark.parametrize("size", [0.0, 1e-11, 1e-40])
def test_tiny_blocks_become_nothing(type_name: str, size: float) -> None:
    weights = np.full((2, 256), size, np.float32)
    weights[1, ::2] *= -1
    with np.errstate(all="raise", under="ignore"):
        values = dequantise(make_tensor("w", weights, type_name))
    assert np.abs(values).max() <= 1e-6


@pytest.mark.parametrize("type_name", BLOCK_TYPES)
def test_single_weight_survives(type_name: str) -> None:
    weights = np.zeros((1, 256), np.float32)
    weights[0, 77] = -3
    values = dequantise(make_tensor("w", weights, type_name))
    assert values[0, 77] == pytest.approx(-3, rel=0.02)
    assert np.abs(np.delete(values, 77)).max() <= 0.1


@pytest.mark.parametrize("type_name", BLOCK_TYPES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e38])
def test_weights_that_no_block_holds(type_name: str, bad: float) -> None:
    weights = np.ones((2, 256), np.float32)
    weights[1, 5] = bad
    with pytest.raises(ModelFileError, match=r"too large" if np.isfinite(bad) else r"at \(1, 5\) is"):
        quantise(weights, type_name)


def test_row_that_is_no_whole_block() -> None:
    with pytest.raises(ValueError, match="no whole blocks of 256"):
        quantise(np.zeros((4, 288)), "Q4_K")


def test_types_without_a_quantiser_are_told() -> None:
    with pytest.raises(UnsupportedModelError, match="IQ2_XS"):
        quantise(np.zeros(256), "IQ2_XS")
