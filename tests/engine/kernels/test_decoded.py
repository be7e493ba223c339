"""Types without kernels of their own, and the values of IQ4 that are computed instead of looked up."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.errors import ModelFileError
from engine.gguf.tensor_types import TENSOR_TYPES
from engine.kernels.linear import bind_linear, linear
from engine.kernels.linear_decoded import KINDS
from engine.kernels.linear_scratch import LinearScratch
from engine.kernels.mapped import MappedWeight, Window, bind_mapped_linear
from engine.kernels.packing import PackedWeight, pack_weight, packed_nbytes
from engine.kernels.source.iq4_values import hidden_zero, iq4_value
from engine.quantisation.dequantise import dequantise
from engine.quantisation.registry import FORMATS
from engine.quantisation.table_types import IQ4_VALUES
from engine.tensor import Tensor
from tests.helpers.cpu_levels import COMPILED_LEVELS, at_level
from tests.helpers.weight_blocks import make_weight


def test_every_decoded_type_has_a_number() -> None:
    assert set(KINDS) == {name for name, format in FORMATS.items() if format.product == "decoded"}


@pytest.mark.parametrize("kind", ["random", "denormal", "extreme"])
@pytest.mark.parametrize("type_name", KINDS)
@pytest.mark.parametrize("level", COMPILED_LEVELS)
def test_decoded_values_are_exact(level: str, type_name: str, kind: str) -> None:
    """A token that is 1 in one column and 0 elsewhere gives the weights of that column."""
    cols = 2 * TENSOR_TYPES[type_name].block_size if TENSOR_TYPES[type_name].block_size > 1 else 300
    tensor = make_weight(type_name, 67, cols, kind)
    with at_level(level):
        y = linear(pack_weight(tensor, 2), np.eye(cols, dtype=np.float32), 2)
    np.testing.assert_array_equal(y.T, dequantise(tensor))


@pytest.mark.parametrize("type_name", KINDS)
def test_memory_does_not_grow(type_name: str) -> None:
    tensor = make_weight(type_name, 3, 512, "random")
    packed = pack_weight(tensor)
    assert packed.nbytes == packed_nbytes(tensor.type, 3, 512) == tensor.nbytes
    assert Window([MappedWeight(tensor)], 8, 2).nbytes == 0


@pytest.mark.parametrize("type_name", ["MXFP4", "IQ3_S"])
def test_an_expert_is_a_slice_of_a_tensor(type_name: str) -> None:
    """Read from the middle of a larger tensor, in memory or from a map."""
    flat = make_weight(type_name, 3 * 70, 512, "random")
    whole = Tensor.contiguous("experts", flat.type, (3, 70, 512), flat.data)
    x = np.random.default_rng(0).standard_normal((2, 512), np.float32)
    expert = whole.part(1)
    wanted = linear(pack_weight(make_weight(type_name, 3 * 70, 512, "random")), x)[:, 70:140]
    np.testing.assert_array_equal(linear(pack_weight(expert), x), wanted)
    y = np.empty((2, 70), np.float32)
    weight, scratch = MappedWeight(expert), LinearScratch.allocate(2, 512, 1)
    bind_mapped_linear(weight, x, y, Window([weight], 2, 1), scratch, 1)()
    np.testing.assert_array_equal(y, wanted)


def _halves(at: int) -> Callable[[NDArray[np.uint8], float], None]:
    def damage(block: NDArray[np.uint8], value: float) -> None:
        block[at : at + 2] = np.array([value], "<f2").view(np.uint8)

    return damage


def _float32(block: NDArray[np.uint8], value: float) -> None:
    block[:4] = np.array([value], "<f4").view(np.uint8)


def _spread(block: NDArray[np.uint8], value: float) -> None:
    bits = int(np.array([value], "<f2").view("<u2")[0])
    for i in range(4):
        block[49 + 2 * i] = block[49 + 2 * i] & 15 | (bits >> 4 * i & 15) << 4


def _exponent(block: NDArray[np.uint8], value: float) -> None:
    block[0] = 255


DAMAGES = {
    "Q8_K": _float32, "IQ1_M": _spread, "MXFP4": _exponent, "IQ2_XS": _halves(0), "TQ1_0": _halves(52),
    "Q8_1": _halves(0), "Q1_0": _halves(0),
}  # fmt: skip


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("type_name", DAMAGES)
def test_scales_that_are_no_numbers(type_name: str, value: float) -> None:
    """Told when a weight is packed, or by a product from the map; the next product is whole again."""
    tensor = make_weight(type_name, 130, 512, "random")
    DAMAGES[type_name](tensor.data.reshape(-1, tensor.type.block_bytes)[-1], value)
    with pytest.raises(ModelFileError, match="scale"):
        pack_weight(tensor)
    x, y = np.ones((1, 512), np.float32), np.empty((1, 130), np.float32)
    scratch = LinearScratch.allocate(1, 512, 2)
    damaged, sound = MappedWeight(tensor), MappedWeight(make_weight(type_name, 130, 512, "random"))
    window = Window([damaged, sound], 1, 2)
    for _ in range(2):
        with pytest.raises(ModelFileError, match="scale"):
            bind_mapped_linear(damaged, x, y, window, scratch, 2)()
        bind_mapped_linear(sound, x, y, window, scratch, 2)()


def test_products_of_all_kinds_share_their_scratch() -> None:
    """Tokens prepared for one kind of product, or tile, are not taken for another."""
    x = np.random.default_rng(1).standard_normal((4, 512), np.float32)
    scratch, source = LinearScratch.allocate(20, 512, 1), object()
    weights: list[PackedWeight] = []
    for name in ("IQ3_S", "Q4_0", "F32", "MXFP4", "Q2_K"):
        weights.append(pack_weight(make_weight(name, 70, 512, "random")))
    alone = [linear(weight, x) for weight in weights]
    together = [np.empty((4, 70), np.float32) for _ in weights]
    calls = [bind_linear(w, x, y, scratch, 1, source) for w, y in zip(weights, together, strict=True)]
    for call in calls:
        call()
    np.testing.assert_array_equal(together, alone)


def test_computed_values_of_iq4() -> None:
    nibbles = (np.arange(16, dtype=np.uint16) ^ 8) << 12
    values = iq4_value(nibbles.astype(np.uint16), hidden_zero(np.int64(10**9)))
    assert values.tolist() == (256 * IQ4_VALUES.astype(np.int64)).tolist()


@pytest.mark.parametrize("type_name", ["IQ4_NL", "IQ4_XS"])
@pytest.mark.parametrize("n", [1, 20])
@pytest.mark.parametrize("level", COMPILED_LEVELS)
def test_compiled_values_of_iq4(level: str, n: int, type_name: str) -> None:
    """One column alone is off by far less than the distance of two values."""
    tensor = make_weight(type_name, 128, 256, "positive")
    truth = dequantise(tensor)
    scales = np.abs(truth).max(axis=1) / 113
    with at_level(level):
        packed = pack_weight(tensor)
        for col in (0, 15, 16, 31):
            x = np.zeros((n, 256), np.float32)
            x[:, col] = 1
            assert (np.abs(linear(packed, x) - truth[:, col]) < 0.03 * scales).all()
