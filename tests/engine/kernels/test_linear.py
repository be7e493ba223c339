"""y = x W^T of every type at every level against float64 products of the dequantised weights."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.errors import ModelFileError, UnsupportedModelError
from engine.gguf.tensor_types import SUPPORTED_TYPES, TENSOR_TYPES, QuantType
from engine.kernels.linear import bind_linear, linear
from engine.kernels.linear_scratch import LinearScratch
from engine.kernels.packing import pack_weight, packed_nbytes, unpack_rows
from engine.quantisation.dequantise import dequantise
from engine.quantisation.registry import FORMATS
from engine.tensor import Tensor
from tests.engine.kernels.guarded import guarded
from tests.helpers.cpu_levels import COMPILED_LEVELS, NATIVE_LEVELS, at_level
from tests.helpers.weight_blocks import KINDS, SCALES_AT, make_weight

Floats = NDArray[np.float32]

COLS = {
    1: (1, 45, 256, 289, 600),
    32: (32, 96, 256, 288, 544),
    64: (64, 192, 256, 320, 576),
    128: (128, 384, 256, 512, 640),
    256: (256, 512, 768, 1024, 1280),
}
"""By block size: one block; some; 256 columns; one block more; several times that and a rest."""


class Case(NamedTuple):
    rows: int
    n: int
    cols: int  # index into COLS
    threads: int
    kind: str = "random"


# Each value of each column beside many of the others.  Rows come in groups of 64, tokens in tiles of 6 and
# 14; 500 rows are too many to be decoded all at once.
CASES = [
    Case(rows=1, n=1, cols=0, threads=1),
    Case(rows=63, n=2, cols=1, threads=2),
    Case(rows=64, n=4, cols=2, threads=3),
    Case(rows=65, n=5, cols=3, threads=7),
    Case(rows=200, n=6, cols=4, threads=2),
    Case(rows=65, n=7, cols=0, threads=3),
    Case(rows=200, n=13, cols=1, threads=1),
    Case(rows=63, n=14, cols=2, threads=9),
    Case(rows=1, n=15, cols=3, threads=2),
    Case(rows=64, n=29, cols=4, threads=1),
    Case(rows=200, n=100, cols=3, threads=3),
    Case(rows=200, n=1, cols=4, threads=9),
    Case(rows=500, n=8, cols=4, threads=1),
    Case(rows=64, n=1, cols=4, threads=1, kind="positive"),
    Case(rows=64, n=20, cols=4, threads=1, kind="positive"),
    Case(rows=65, n=1, cols=3, threads=1, kind="zero"),
    Case(rows=64, n=15, cols=1, threads=2, kind="zero"),
    Case(rows=65, n=1, cols=4, threads=2, kind="denormal"),
    Case(rows=200, n=5, cols=1, threads=1, kind="denormal"),
    Case(rows=64, n=14, cols=3, threads=3, kind="denormal"),
    Case(rows=63, n=1, cols=2, threads=1, kind="extreme"),
    Case(rows=64, n=4, cols=3, threads=2, kind="extreme"),
    Case(rows=65, n=29, cols=1, threads=2, kind="extreme"),
]

EXACT = (1e-5, 2e-5)
FIXED = (1.5e-3, 1e-2)
"""Of float32 and of fixed-point products: how large the errors of all results, and of any one, may be beside
a typical result of weights and tokens of these sizes."""


def activations(n: int, cols: int, seed: int = 1) -> Floats:
    return np.random.default_rng(seed).normal(0, 1, (n, cols)).astype(np.float32)


def reach(tensor: Tensor) -> NDArray[np.float64]:
    """float64[rows, cols]: how large weights with the tensor's scales can be."""
    scales = SCALES_AT.get(tensor.type.name)
    if scales is None:
        return np.abs(dequantise(tensor).astype(np.float64))
    blocks = tensor.as_bytes().reshape(-1, tensor.type.block_bytes)
    largest = np.zeros(tensor.shape)
    for byte in (0x00, 0x7F, 0x80, 0xFF):
        filled = np.full_like(blocks, byte)
        for at in scales:
            filled[:, at : at + 2] = blocks[:, at : at + 2]
        full = Tensor.contiguous(tensor.name, tensor.type, tensor.shape, filled.reshape(-1))
        largest = np.maximum(largest, np.abs(dequantise(full).astype(np.float64)))
    return largest


def check_product(tensor: Tensor, x: Floats, threads: int) -> None:
    truth = x.astype(np.float64) @ dequantise(tensor).astype(np.float64).T
    packed = pack_weight(tensor, threads)
    with guarded(truth.shape) as y:
        bind_linear(packed, x, y, LinearScratch.allocate(*x.shape, threads), threads)()
    check_errors(tensor, x, y, truth)


def check_errors(tensor: Tensor, x: Floats, y: Floats, truth: NDArray[np.float64]) -> None:
    errors = np.abs(y - truth)
    typical = np.linalg.norm(x.astype(np.float64), axis=1)[:, None] * np.linalg.norm(reach(tensor), axis=1)
    typical = typical / np.sqrt(x.shape[1])
    all_together, any_one = FIXED if FORMATS[tensor.type.name].product == "fixed" else EXACT
    # Results may lie between float32's own denormals.
    bounds = any_one * typical + 1e-44
    relative = np.linalg.norm(errors) / max(float(np.linalg.norm(typical)), 1e-300)
    if relative <= all_together + 1e-44 and (errors <= bounds).all():
        return
    token, row = np.unravel_index(np.argmax(errors / bounds), errors.shape)
    pytest.fail(
        f"relative {relative:.1e}; worst: token {token}, row {row}: {y[token, row]}, "
        f"truth {truth[token, row]}; " + worst_block(tensor, x[token : token + 1], int(row))
    )


def worst_block(tensor: Tensor, x: Floats, row: int) -> str:
    """Multiplies one block at a time, and tells the bytes of the one that is most wrong."""
    size = max(tensor.type.block_size, 32)
    weights = dequantise(tensor).astype(np.float64)[row]
    packed = pack_weight(tensor)
    errors = []
    for start in range(0, x.shape[1], size):
        alone = np.zeros_like(x)
        alone[:, start : start + size] = x[:, start : start + size]
        errors.append(
            abs(float(linear(packed, alone)[0, row]) - float(alone[0].astype(np.float64) @ weights))
        )
    worst = int(np.argmax(errors))
    per_block = size // tensor.type.block_size
    block = tensor.as_bytes()[row, worst * per_block : (worst + 1) * per_block].tobytes().hex()
    return f"worst block alone (one token): number {worst}, error {errors[worst]:.1e}, bytes {block}"


OWN_KERNELS = [name for name, format in FORMATS.items() if format.product != "decoded"]
DECODED = [name for name, format in FORMATS.items() if format.product == "decoded"]
"""Types that share all but the reading of a block: they need fewer cases each."""

DECODED_CASES = [
    Case(rows=1, n=1, cols=0, threads=1),
    Case(rows=65, n=6, cols=3, threads=7),
    Case(rows=200, n=7, cols=4, threads=2),
    Case(rows=64, n=15, cols=1, threads=1, kind="zero"),
    Case(rows=63, n=2, cols=2, threads=3, kind="denormal"),
    Case(rows=130, n=3, cols=1, threads=2, kind="extreme"),
]


@pytest.mark.parametrize(
    ("type_name", "case"),
    [*product(OWN_KERNELS, CASES), *product(DECODED, DECODED_CASES)],
    ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value)),
)
@pytest.mark.parametrize("level", COMPILED_LEVELS)
def test_product(level: str, type_name: str, case: Case) -> None:
    cols = COLS[TENSOR_TYPES[type_name].block_size][case.cols]
    tensor = make_weight(type_name, case.rows, cols, case.kind)
    with at_level(level):
        check_product(tensor, activations(case.n, cols), case.threads)


@pytest.mark.parametrize("type_name", SUPPORTED_TYPES)
def test_product_of_the_uncompiled_source(type_name: str) -> None:
    cols = COLS[TENSOR_TYPES[type_name].block_size][0]
    tensor = make_weight(type_name, 3, cols, "random")
    with at_level("python"):
        check_product(tensor, activations(2, cols), 1)
        check_product(tensor, activations(5, cols), 2)


@pytest.mark.parametrize("level", NATIVE_LEVELS)
@settings(max_examples=60)
@given(data=st.data())
def test_product_of_any_shape(level: str, data: st.DataObject) -> None:
    type_name = data.draw(st.sampled_from(SUPPORTED_TYPES), "type")
    block_size = TENSOR_TYPES[type_name].block_size
    cols = block_size * data.draw(st.integers(1, 3 if block_size > 1 else 70), "blocks")
    rows = data.draw(st.integers(1, 140), "rows")
    kind = data.draw(st.sampled_from(KINDS), "kind")
    seed = data.draw(st.integers(0, 1 << 30), "seed")
    x = activations(data.draw(st.integers(1, 31), "tokens"), cols, seed)
    # Columns may vanish, and they may be large.
    x[:, data.draw(st.integers(0, cols - 1), "zero column")] = 0
    x *= np.float32(data.draw(st.sampled_from([1e-3, 1.0, 300.0]), "size of x"))
    with at_level(level):
        check_product(
            make_weight(type_name, rows, cols, kind, seed), x, data.draw(st.integers(1, 5), "threads")
        )


@pytest.mark.parametrize("level", NATIVE_LEVELS)
def test_scratch_is_shared_by_products_of_all_sizes(level: str) -> None:
    """What one product leaves behind does not reach the next, and a bound call reads its arrays anew."""
    large = make_weight("Q4_K", 200, 512, "extreme")
    small = make_weight("Q8_0", 65, 96, "random")
    x = activations(16, 96)
    with at_level(level):
        scratch = LinearScratch.allocate(100, 512, 2)
        into = np.empty((100, 200), np.float32)
        bind_linear(pack_weight(large), activations(100, 512), into, scratch, 2)()
        y = np.empty((16, 65), np.float32)
        call = bind_linear(pack_weight(small), x, y, scratch, 1)
        for seed in (2, 3):
            x[:] = activations(16, 96, seed)
            call()
            truth = x.astype(np.float64) @ dequantise(small).astype(np.float64).T
            check_errors(small, x, y, truth)


@pytest.mark.parametrize("max_cols", [32, 544, 576, 640, 1280, 1536, 8192])
@pytest.mark.parametrize("n", [1, 6, 7, 33])
def test_scratch_is_enough_for_all_smaller_products(max_cols: int, n: int) -> None:
    """Many rows, and fewer columns and tokens than it was made for, as the layers of a model have them."""
    scratch = LinearScratch.allocate(33, max_cols, 2)
    for cols in {32, max_cols // 64 * 32, max_cols // 96 * 32, max_cols} - {0}:
        weight = pack_weight(make_weight("Q4_0", 1100, cols, "random"))
        bind_linear(weight, activations(n, cols), np.empty((n, 1100), np.float32), scratch, 2)


@pytest.mark.parametrize("level", NATIVE_LEVELS)
@pytest.mark.parametrize("n", [1, 17])
def test_the_number_of_threads_never_changes_a_result(level: str, n: int) -> None:
    tensor, x = make_weight("Q6_K", 300, 512, "random"), activations(n, 512)
    with at_level(level):
        packed = pack_weight(tensor)
        alone = linear(packed, x, threads=1)
        assert all(np.array_equal(linear(packed, x, threads), alone) for threads in (2, 3, 8))


@pytest.mark.parametrize("level", NATIVE_LEVELS)
@pytest.mark.parametrize("type_name", SUPPORTED_TYPES)
def test_nan_in_one_token_stays_in_that_token(level: str, type_name: str) -> None:
    cols = COLS[TENSOR_TYPES[type_name].block_size][1]
    packed_type = make_weight(type_name, 65, cols, "random")
    for n in (2, 15):
        x = activations(n, cols)
        x[1, 3] = np.nan
        with at_level(level):
            y = linear(pack_weight(packed_type), x)
        assert np.isnan(y[1]).all()
        assert np.isfinite(np.delete(y, 1, axis=0)).all()


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("type_name", SUPPORTED_TYPES)
def test_unpacked_rows_equal_dequantised_ones(type_name: str, rows: int) -> None:
    cols = COLS[TENSOR_TYPES[type_name].block_size][1]
    tensor = make_weight(type_name, rows, cols, "random", seed=rows)
    packed = pack_weight(tensor, threads=2)
    assert packed.nbytes == packed_nbytes(tensor.type, rows, cols)
    ids = np.array([rows - 1, 0, rows // 2, 0], np.int32)
    assert np.array_equal(unpack_rows(packed, ids), dequantise(tensor)[ids])
    assert unpack_rows(packed, np.array([], np.int32)).shape == (0, cols)


@pytest.mark.parametrize("ids", [[-1], [0, 65], [1 << 30]])
def test_rows_outside_are_refused(ids: list[int]) -> None:
    packed = pack_weight(make_weight("Q4_0", 65, 64, "random"))
    with pytest.raises(IndexError):
        unpack_rows(packed, np.array(ids, np.int64))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize(
    ("type_name", "at"), [(name, at) for name, starts in SCALES_AT.items() for at in starts]
)
def test_scales_that_are_no_numbers_are_refused(type_name: str, at: int, value: float) -> None:
    tensor = make_weight(type_name, 65, 512, "random")
    data = tensor.data.copy().reshape(-1, tensor.type.block_bytes)
    data[-1, at : at + 2] = np.array([value], "<f2").view(np.uint8)
    with pytest.raises(ModelFileError, match="scale"):
        pack_weight(Tensor.contiguous("w", tensor.type, tensor.shape, data.reshape(-1)))


def test_half_weights_that_are_no_numbers_are_refused() -> None:
    halves = np.ones((2, 32), "<f2")
    halves[1, 31] = np.inf
    with pytest.raises(ModelFileError):
        pack_weight(Tensor.contiguous("w", TENSOR_TYPES["F16"], (2, 32), halves.view(np.uint8).reshape(-1)))


def test_other_types_and_shapes_are_refused() -> None:
    type = QuantType("Q9_9", 999, 256, 84)
    with pytest.raises(UnsupportedModelError, match="Q9_9"):
        pack_weight(Tensor.contiguous("w", type, (1, 256), np.zeros(type.block_bytes, np.uint8)))
    plain = TENSOR_TYPES["F32"]
    with pytest.raises(ValueError, match="no matrix"):
        pack_weight(Tensor.contiguous("w", plain, (8,), np.zeros(32, np.uint8)))
    with pytest.raises(ValueError, match="no matrix"):
        pack_weight(Tensor.contiguous("w", plain, (0, 8), np.zeros(0, np.uint8)))


@pytest.mark.parametrize("type_name", ["F32", "Q4_0", "Q6_K"])
def test_weights_are_packed_from_views(type_name: str) -> None:
    """Rows cut out of a larger matrix, as tensors that hold several weights need it."""
    whole = make_weight(type_name, 150, 512, "random")
    view = whole.sliced(0, 30, 100).sliced(1, 256, 512)
    x = activations(3, 256)
    truth = x.astype(np.float64) @ dequantise(whole)[30:100, 256:].astype(np.float64).T
    check_errors(
        Tensor.contiguous("w", view.type, view.shape, np.ascontiguousarray(view.as_bytes()).reshape(-1)),
        x,
        linear(pack_weight(view), x),
        truth,
    )
