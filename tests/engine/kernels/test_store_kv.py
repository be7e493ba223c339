"""Storing keys and values: rounding, slots, what is no number, and batches that a ring cannot hold."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.kernels.layer_kv import LayerKV, bind_store_kv, check_batch
from engine.requests import KVKind
from tests.helpers.cpu_levels import COMPILED_LEVELS, NATIVE_LEVELS, at_level

Floats = NDArray[np.float32]

FLOAT32 = 2.0**-24
"""Relative error of one rounded operation."""


def half_bits(values: Floats) -> NDArray[np.uint16]:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return values.astype(np.float16).view(np.uint16)


def interesting_floats() -> Floats:
    """All exponents that matter, numbers halfway between two float16, and their neighbours."""
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 1 << 23, 60000, np.uint32)
    bits |= rng.integers(98, 146, bits.size, np.uint32) << 23
    bits[::3] &= np.uint32(0xFFFFF000)
    all_halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middles = ((all_halves[1:].astype(np.float64) + all_halves[:-1]) / 2).astype(np.float32)
    special = np.array([0, 65504, 65519.996, 65520, 1e30, np.inf, 2**-24, 2**-25, 2**-26, 1e-45], np.float32)
    positive = [bits.view(np.float32), all_halves, middles, special]
    positive += [np.nextafter(middles, np.float32(np.inf)), np.nextafter(middles, np.float32(0))]
    both = np.concatenate([*positive, *(-part for part in positive)])
    return both[: both.size // 64 * 64]


@pytest.mark.parametrize("level", COMPILED_LEVELS)
def test_keys_and_values_are_rounded_as_numpy_rounds(level: str) -> None:
    v = interesting_floats().reshape(-1, 64)
    k = v[::-1].copy()
    n = len(v)
    with at_level(level):
        cache = LayerKV.allocate(1, 1, n, 64)
        bind_store_kv(k, v, np.arange(n, dtype=np.int32), np.zeros(n, np.int32), cache)()
    stored_keys = cache.keys[0, 0].transpose(0, 2, 1).reshape(-1, 64)[:n]
    assert np.array_equal(cache.values[0, 0, :n], half_bits(v))
    assert np.array_equal(stored_keys, half_bits(k))


@pytest.mark.parametrize("level", [*COMPILED_LEVELS, "python"])
def test_float32_is_kept_bit_for_bit(level: str) -> None:
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 3.4e38, 1 / 3]
    v = np.array(special * 10, np.float32).reshape(2, 5, 8)
    k = -v[::-1]
    with at_level(level):
        cache = LayerKV.allocate(1, 5, 64, 8, "f32")
        bind_store_kv(k, v, np.array([3, 63], np.int32), np.zeros(2, np.int32), cache)()
    assert cache.values[0][:, [3, 63]].swapaxes(0, 1).tobytes() == v.tobytes()
    assert cache.keys[0, :, 0][..., [3, 63]].transpose(2, 0, 1).tobytes() == k.tobytes()


@pytest.mark.parametrize("level", COMPILED_LEVELS)
def test_nan_is_stored_as_nan(level: str) -> None:
    bits = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF], np.uint32)
    v = bits.view(np.float32).reshape(1, 6)
    with at_level(level):
        cache = LayerKV.allocate(1, 1, 64, 6)
        bind_store_kv(v, v, np.array([5], np.int32), np.zeros(1, np.int32), cache)()
    assert np.isnan(cache.values[0, 0, 5].view(np.float16)).all()
    assert np.isnan(cache.keys[0, 0, 0, :, 5].copy().view(np.float16)).all()


@pytest.mark.parametrize("level", COMPILED_LEVELS)
@pytest.mark.parametrize("kind", ["f32", "f16", "q8"])
def test_only_the_slots_of_the_batch_are_written(level: str, kind: KVKind) -> None:
    with at_level(level):
        cache = LayerKV.allocate(2, 2, 128, 32, kind)
        cache.keys[...] = cache.values[...] = 7
        cache.key_scales[...] = cache.value_scales[...] = 7
        ones = np.ones((3, 64), np.float32)
        positions = np.array([127, 128, 300], np.int32)
        bind_store_kv(ones, ones, positions, np.array([0, 1, 1], np.int32), cache)()
    written = np.zeros((2, 128), bool)
    written[[0, 1, 1], [127, 0, 300 % 128]] = True
    one = {"f32": 1, "f16": np.float16(1).view(np.uint16), "q8": 127}[kind]
    values = np.where(written[:, None, :, None], one, 7)
    assert (cache.values == values).all()
    keys = cache.keys.transpose(0, 1, 2, 4, 3).reshape(cache.values.shape)
    assert (keys == values).all()
    if kind == "q8":
        expected = np.where(written[:, None, :, None], np.float32(1) / np.float32(127), np.float32(7))
        assert (cache.value_scales == expected).all()
        assert (
            cache.key_scales.transpose(0, 1, 2, 4, 3).reshape(expected.shape[0], 2, 128, 1) == expected
        ).all()


def store_one_by_one(k: Floats, v: Floats, cache: LayerKV) -> None:
    n = len(k)
    bind_store_kv(k, v, np.arange(n, dtype=np.int32), np.zeros(n, np.int32), cache)()


@pytest.mark.parametrize("level", [*COMPILED_LEVELS, "python"])
@pytest.mark.parametrize("head_size", [6, 64, 80, 256])
def test_eight_bits_are_within_half_a_step(level: str, head_size: int) -> None:
    """The largest of 64 numbers becomes 127 or -127, and each is off by half of a 127th of it at most."""
    rng = np.random.default_rng(head_size)
    n, heads, blocks = (3 if level == "python" else 70), 2, -(-head_size // 64)
    k, v = (rng.normal(0, 10.0 ** rng.uniform(-6, 4, (n, heads, 1)), (n, heads, head_size)) for _ in range(2))
    k, v = k.astype(np.float32), v.astype(np.float32)
    with at_level(level):
        cache = LayerKV.allocate(1, heads, n, head_size, "q8")
        store_one_by_one(k, v, cache)
    keys = cache.keys[0].transpose(0, 1, 3, 2).reshape(heads, -1, head_size)[:, :n].swapaxes(0, 1)
    key_scales = cache.key_scales[0].transpose(0, 1, 3, 2).reshape(heads, -1, blocks)[:, :n].swapaxes(0, 1)
    values, value_scales = (array[0, :, :n].swapaxes(0, 1) for array in (cache.values, cache.value_scales))
    for numbers, scales, truth in ((keys, key_scales, k), (values, value_scales, v)):
        for block in range(blocks):
            part = slice(block * 64, min(head_size, block * 64 + 64))
            scale, exact = scales[..., block, None].astype(np.float64), truth[..., part].astype(np.float64)
            largest = np.abs(exact).max(axis=-1, keepdims=True)
            np.testing.assert_allclose(scale, largest / 127, rtol=2 * FLOAT32)
            assert (np.abs(numbers[..., part]).max(axis=-1) == 127).all()
            # Of a sum up to 255.5, one bit is lost to rounding.
            assert (np.abs(numbers[..., part] * scale - exact) <= scale * (0.5 + 512 * FLOAT32)).all()


@pytest.mark.parametrize("level", COMPILED_LEVELS)
@pytest.mark.parametrize("size", [0.0, 1e-45, 1e-38])
def test_numbers_too_small_for_a_scale_become_zero(level: str, size: float) -> None:
    k = np.full((1, 1, 64), size, np.float32)
    with at_level(level):
        cache = LayerKV.allocate(1, 1, 64, 64, "q8")
        cache.keys[...] = cache.values[...] = 5
        store_one_by_one(k, -k, cache)
    assert not cache.keys[0, 0, 0, :, 0].any() and not cache.values[0, 0, 0].any()
    assert np.isfinite(cache.key_scales).all() and np.isfinite(cache.value_scales).all()


@pytest.mark.parametrize("level", NATIVE_LEVELS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 63, 64, 79])
def test_what_is_no_number_shows_in_eight_bits(level: str, bad: float, place: int) -> None:
    k = np.ones((1, 1, 80), np.float32)
    k[0, 0, place] = bad
    with at_level(level):
        cache = LayerKV.allocate(1, 1, 64, 80, "q8")
        store_one_by_one(k, k, cache)
    damaged = [block == place // 64 for block in range(2)]
    assert np.isnan(cache.value_scales[0, 0, 0]).tolist() == damaged
    assert np.isnan(cache.key_scales[0, 0, 0, :, 0]).tolist() == damaged


@pytest.mark.parametrize("kind", ["f32", "f16", "q8"])
def test_bytes_are_known_before_they_are_taken(kind: KVKind) -> None:
    for shape in ((1, 1, 1, 1), (3, 2, 100, 80), (1, 4, 640, 256)):
        assert LayerKV.allocate(*shape, kind).nbytes == LayerKV.bytes_of(*shape, kind)


def test_capacity_is_rounded_up_to_whole_tiles() -> None:
    assert [LayerKV.allocate(1, 1, asked, 8).capacity for asked in (1, 64, 65)] == [64, 64, 128]


@pytest.mark.parametrize(
    ("positions", "sequences", "window", "complaint"),
    [
        ([-1], [0], 0, "negative"),
        ([0, 1], [0, 2], 0, "sequences"),
        ([0], [-1], 0, "sequences"),
        ([128], [0], 0, "do not fit"),
        ([200, 300], [1, 1], 50, "do not fit"),
        ([200], [1], 129, "do not fit"),
    ],
)
def test_batches_that_the_ring_cannot_hold_are_refused(
    positions: list[int], sequences: list[int], window: int, complaint: str
) -> None:
    cache = LayerKV.allocate(2, 1, 128, 8)
    with pytest.raises(ValueError, match=complaint):
        check_batch(np.array(positions, np.int32), np.array(sequences, np.int32), cache, window)


@pytest.mark.parametrize(
    ("positions", "sequences", "window"),
    [([], [], 0), ([127], [1], 0), ([200, 220], [0, 0], 100), ([200, 0], [0, 1], 128)],
)
def test_batches_that_fit_are_taken(positions: list[int], sequences: list[int], window: int) -> None:
    cache = LayerKV.allocate(2, 1, 128, 8)
    check_batch(np.array(positions, np.int32), np.array(sequences, np.int32), cache, window)
