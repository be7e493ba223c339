"""Attention over the KV cache against an obvious float64 one that keeps the whole history."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.kernels.attention import SPLIT_TOKENS, AttentionScratch, bind_attention
from engine.kernels.layer_kv import TILE, LayerKV, bind_store_kv, check_batch
from engine.requests import KVKind
from tests.engine.kernels.guarded import guarded
from tests.helpers.cpu_levels import COMPILED_LEVELS, NATIVE_LEVELS, at_level

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Ints = NDArray[np.int32]

RELATIVE_L2 = 1e-5
WORST = 2e-5
"""Bound of an element's error, relative to the largest value of the cache."""


def as_halves(values: Floats) -> Doubles:
    with np.errstate(over="ignore"):
        return values.astype(np.float16).astype(np.float64)


def stored(cache: LayerKV, sequence: int, position: int) -> tuple[Doubles, Doubles]:
    """Keys and values [kv_heads, head_size] as an 8-bit cache holds them."""
    slot, head_size = position % cache.capacity, cache.values.shape[3]
    key_scales = cache.key_scales[sequence, :, slot // TILE, :, slot % TILE]
    scales = [
        np.repeat(s, TILE, axis=1)[:, :head_size] for s in (key_scales, cache.value_scales[sequence, :, slot])
    ]
    numbers = cache.keys[sequence, :, slot // TILE, :, slot % TILE], cache.values[sequence, :, slot]
    keys, values = (number * scale.astype(np.float64) for number, scale in zip(numbers, scales, strict=True))
    return keys, values


KINDS: list[KVKind] = ["f32", "f16", "q8"]


def slow_attention(
    q: Floats,
    positions: Ints,
    keys: Doubles,
    values: Doubles,
    window: int,
    scale: float,
    cap: float,
    sinks: Floats | None,
) -> Doubles:
    """q: [n, heads, head_size]; keys, values: [positions, kv_heads, head_size] of one sequence, all of it."""
    group = q.shape[1] // keys.shape[1]
    out = np.empty(q.shape, np.float64)
    for token, position in enumerate(positions):
        first = max(0, position - window + 1) if window else 0
        for head in range(q.shape[1]):
            seen = slice(first, position + 1)
            scores = keys[seen, head // group] @ q[token, head].astype(np.float64) * scale
            if cap:
                scores = cap * np.tanh(scores / cap)
            sink = -np.inf if sinks is None else float(sinks[head])
            peak = max(scores.max(), sink)
            weights = np.exp(scores - peak)
            out[token, head] = weights @ values[seen, head // group] / (weights.sum() + np.exp(sink - peak))
    return out


class History:
    """One layer's cache, fed through `bind_store_kv`, and all that was ever put into it."""

    def __init__(
        self,
        sequences: int,
        kv_heads: int,
        capacity: int,
        head_size: int,
        seed: int = 0,
        kind: KVKind = "f16",
    ) -> None:
        self.cache = LayerKV.allocate(sequences, kv_heads, capacity, head_size, kind)
        self.keys = [np.zeros((0, kv_heads, head_size)) for _ in range(sequences)]
        self.values = [np.zeros((0, kv_heads, head_size)) for _ in range(sequences)]
        self.rng = np.random.default_rng(seed)

    def append(self, sequence_of_token: list[int]) -> tuple[Ints, Ints]:
        """New random keys and values, one per entry.  Gives positions and sequences of the batch."""
        n = len(sequence_of_token)
        _, kv_heads, _, head_size = self.cache.values.shape
        k = self.rng.normal(0, 1, (n, kv_heads, head_size)).astype(np.float32)
        v = self.rng.normal(0, 1, (n, kv_heads, head_size)).astype(np.float32)
        positions = np.empty(n, np.int32)
        lengths = [len(keys) for keys in self.keys]
        for token, sequence in enumerate(sequence_of_token):
            positions[token] = lengths[sequence]
            lengths[sequence] += 1
        sequences = np.array(sequence_of_token, np.int32)
        bind_store_kv(k, v, positions, sequences, self.cache)()
        for token, sequence in enumerate(sequence_of_token):
            if self.cache.kind == "f32":
                key, value = k[token].astype(np.float64), v[token].astype(np.float64)
            elif self.cache.kind == "f16":
                key, value = as_halves(k[token]), as_halves(v[token])
            else:
                key, value = stored(self.cache, sequence, int(positions[token]))
            self.keys[sequence] = np.concatenate([self.keys[sequence], key[None]])
            self.values[sequence] = np.concatenate([self.values[sequence], value[None]])
        return positions, sequences

    def check(
        self,
        positions: Ints,
        sequences: Ints,
        group: int,
        window: int = 0,
        cap: float = 0.0,
        threads: int = 1,
        size_of_q: float = 1.0,
        tolerance: float = 1.0,
        scratch: AttentionScratch | None = None,
        sinks: Floats | None = None,
    ) -> None:
        _, kv_heads, _, head_size = self.cache.values.shape
        n = len(positions)
        shape = (n, kv_heads * group, head_size)
        q = (self.rng.normal(0, size_of_q, shape)).astype(np.float32)
        scale = head_size**-0.5
        check_batch(positions, sequences, self.cache, window)
        scratch = scratch or AttentionScratch.allocate(
            n, self.cache.capacity, kv_heads * group, kv_heads, head_size, threads
        )
        truth = np.empty(shape)
        largest = 0.0
        for sequence in np.unique(sequences):
            own = sequences == sequence
            keys, values = self.keys[sequence], self.values[sequence]
            truth[own] = slow_attention(q[own], positions[own], keys, values, window, scale, cap, sinks)
            largest = max(largest, float(np.abs(values).max()))
        with guarded(shape) as out:
            bind_attention(q, out, positions, sequences, self.cache, scratch, window, scale, cap, sinks)()
        errors = np.abs(out - truth)
        token, head, i = np.unravel_index(np.argmax(errors), errors.shape)
        told = f"worst: token {token} (position {positions[token]}), head {head}, element {i}"
        assert np.linalg.norm(errors) <= tolerance * RELATIVE_L2 * np.linalg.norm(truth), told
        assert errors.max() <= tolerance * WORST * largest, told


class Case(NamedTuple):
    group: int
    kv_heads: int
    head_size: int
    window: int
    n: int
    before: int  # positions in the cache before the batch
    threads: int
    cap: float = 0.0


# Every value of a column with many of the others.  80 is no multiple of 32, what a product computes at once.
CASES = [
    Case(group=1, kv_heads=1, head_size=32, window=0, n=1, before=0, threads=1),
    Case(group=3, kv_heads=3, head_size=64, window=0, n=130, before=0, threads=2),
    Case(group=8, kv_heads=1, head_size=128, window=0, n=15, before=100, threads=3),
    Case(group=1, kv_heads=4, head_size=256, window=0, n=64, before=37, threads=1),
    Case(group=3, kv_heads=2, head_size=80, window=0, n=2, before=1000, threads=2),
    Case(group=8, kv_heads=2, head_size=32, window=0, n=1, before=511, threads=2),
    Case(group=4, kv_heads=1, head_size=256, window=1, n=15, before=63, threads=2),
    Case(group=1, kv_heads=2, head_size=80, window=1, n=64, before=64, threads=1),
    Case(group=3, kv_heads=1, head_size=32, window=5, n=130, before=65, threads=4),
    Case(group=8, kv_heads=1, head_size=64, window=5, n=2, before=62, threads=1),
    Case(group=1, kv_heads=3, head_size=128, window=64, n=130, before=0, threads=2),
    Case(group=3, kv_heads=1, head_size=256, window=64, n=1, before=200, threads=3),
    Case(group=8, kv_heads=1, head_size=80, window=100, n=130, before=300, threads=2),
    Case(group=1, kv_heads=1, head_size=64, window=100, n=15, before=190, threads=9),
    Case(group=3, kv_heads=3, head_size=128, window=0, n=64, before=20, threads=2, cap=50.0),
    Case(group=8, kv_heads=1, head_size=32, window=100, n=2, before=128, threads=1, cap=0.7),
    Case(group=1, kv_heads=2, head_size=256, window=5, n=130, before=0, threads=1, cap=2.0),
    Case(group=100, kv_heads=1, head_size=32, window=0, n=15, before=3, threads=2),
    Case(group=2, kv_heads=1, head_size=6, window=0, n=7, before=60, threads=1),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", COMPILED_LEVELS)
def test_attention(level: str, kind: KVKind, case: Case) -> None:
    with at_level(level):
        history = History(1, case.kv_heads, case.before + case.n, case.head_size, kind=kind)
        if case.before:
            history.append([0] * case.before)
        positions, sequences = history.append([0] * case.n)
        history.check(positions, sequences, case.group, case.window, case.cap, case.threads)


WITH_SINKS = [
    Case(group=4, kv_heads=2, head_size=32, window=0, n=1, before=700, threads=2),
    Case(group=8, kv_heads=1, head_size=64, window=128, n=1, before=300, threads=3),
    Case(group=3, kv_heads=2, head_size=80, window=5, n=7, before=60, threads=1),
    Case(group=8, kv_heads=2, head_size=64, window=0, n=130, before=20, threads=2),
    Case(group=2, kv_heads=3, head_size=32, window=14, n=40, before=0, threads=2, cap=5.0),
]
"""Contexts that are split among threads, and queries that are."""


@pytest.mark.parametrize("case", WITH_SINKS, ids=lambda case: "-".join(map(str, case)))
@pytest.mark.parametrize("level", [*COMPILED_LEVELS])
def test_attention_with_sinks(level: str, case: Case) -> None:
    """Among them scores that are lost beside the others, and one that leaves nearly nothing to them."""
    with at_level(level):
        history = History(1, case.kv_heads, case.before + case.n, case.head_size)
        if case.before:
            history.append([0] * case.before)
        positions, sequences = history.append([0] * case.n)
        sinks = np.resize(np.array([0.0, 3.0, -5.0, 9.0, -1e4, 1.5], np.float32), case.kv_heads * case.group)
        history.check(positions, sequences, case.group, case.window, case.cap, case.threads, sinks=sinks)


@pytest.mark.parametrize("level", [*COMPILED_LEVELS])
@pytest.mark.parametrize("n", [1, 30])
def test_a_sink_far_above_all_scores_leaves_zeros(level: str, n: int) -> None:
    with at_level(level):
        history = History(1, 1, 64, 16)
        positions, sequences = history.append([0] * n)
        scratch = AttentionScratch.allocate(n, 64, 2, 1, 16, 1)
        q, out = np.ones((n, 2, 16), np.float32), np.full((n, 2, 16), np.nan, np.float32)
        sinks = np.array([1e30, 0.0], np.float32)
        bind_attention(q, out, positions, sequences, history.cache, scratch, 0, 0.25, 0.0, sinks)()
    assert np.abs(out[:, 0]).max() < 1e-30
    assert np.abs(out[:, 1]).max() > 1e-3


def test_sinks_must_fit_the_heads() -> None:
    history = History(1, 1, 64, 16)
    positions, sequences = history.append([0])
    scratch = AttentionScratch.allocate(1, 64, 2, 1, 16, 1)
    q, out = np.ones((1, 2, 16), np.float32), np.empty((1, 2, 16), np.float32)
    rest = positions, sequences, history.cache, scratch, 0, 0.25, 0.0
    with pytest.raises(ValueError, match="sinks"):
        bind_attention(q, out, *rest, np.zeros(3, np.float32))
    with pytest.raises(TypeError, match="sinks"):
        bind_attention(q, out, *rest, np.zeros(2))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_attention_of_the_uncompiled_source(kind: KVKind) -> None:
    with at_level("python"):
        history = History(1, 1, 70, 6, kind=kind)
        history.append([0] * 63)
        history.check(*history.append([0] * 3), group=2)
        history.check(*history.append([0]), group=1, window=2, cap=3.0)
        history.check(*history.append([0]), group=2, sinks=np.array([0.5, -2.0], np.float32))


@pytest.mark.parametrize("level", COMPILED_LEVELS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 30])
def test_the_ring_goes_round(level: str, n: int, kind: KVKind) -> None:
    """Positions beyond the capacity take the slots of positions that the window no longer reaches."""
    with at_level(level):
        history = History(1, 2, 2 * TILE, 32, kind=kind)
        scratch = AttentionScratch.allocate(n, 2 * TILE, 6, 2, 32, threads=2)
        history.append([0] * 100)
        while len(history.keys[0]) < 5 * TILE + 7:
            positions, sequences = history.append([0] * n)
            if n > 1 or positions[0] % 7 == 0:
                history.check(positions, sequences, group=3, window=80, threads=2, scratch=scratch)


@pytest.mark.parametrize("level", COMPILED_LEVELS)
@pytest.mark.parametrize("window", [0, 20])
def test_sequences_of_one_batch_do_not_see_each_other(level: str, window: int) -> None:
    with at_level(level):
        history = History(3, 2, 3 * TILE, 64)
        history.append([0] * 70 + [2] * 11)
        history.check(*history.append([0] * 20 + [2] * 5 + [1] * 3), group=3, window=window, threads=2)
        # One token each, and in turns.
        history.check(*history.append([0, 1, 2]), group=3, window=window)
        history.check(*history.append([2, 0, 2, 0, 1, 2]), group=3, window=window)


@pytest.mark.parametrize("level", NATIVE_LEVELS)
@pytest.mark.parametrize("n", [1, SPLIT_TOKENS, SPLIT_TOKENS + 1])
def test_the_number_of_threads_changes_nothing(level: str, n: int) -> None:
    """Neither where queries are shared among threads nor where the context is."""
    with at_level(level):
        history = History(1, 2, 700, 64)
        history.append([0] * (700 - n))
        positions, sequences = history.append([0] * n)
        q = history.rng.normal(0, 1, (n, 6, 64)).astype(np.float32)
        results = []
        for threads in (1, 2, 3, 16):
            scratch = AttentionScratch.allocate(n, 704, 6, 2, 64, threads)
            out = np.empty_like(q)
            bind_attention(q, out, positions, sequences, history.cache, scratch, 0, 0.125)()
            results.append(out)
    assert all(np.array_equal(results[0], other) for other in results[1:])


@pytest.mark.parametrize("level", COMPILED_LEVELS)
def test_truncated_positions_are_written_again(level: str) -> None:
    """After a truncation the batch begins inside what the cache still holds; what follows it is not seen."""
    with at_level(level):
        history = History(1, 1, 2 * TILE, 32)
        history.append([0] * 100)
        history.keys[0], history.values[0] = history.keys[0][:50], history.values[0][:50]
        history.check(*history.append([0] * 5), group=2)


@pytest.mark.parametrize("level", COMPILED_LEVELS)
@pytest.mark.parametrize("cap", [0.0, 30.0])
def test_large_scores(level: str, cap: float) -> None:
    """Scores around 100, where all but one weight vanish; an error of a score is one of the exponent."""
    with at_level(level):
        history = History(1, 2, 200, 64)
        history.append([0] * 180)
        history.check(*history.append([0] * 9), group=2, cap=cap, size_of_q=100.0, tolerance=30.0)


@pytest.mark.parametrize("level", COMPILED_LEVELS)
@pytest.mark.parametrize("key", [-60000.0, 0.0, 60000.0])
def test_equal_scores_give_the_mean(level: str, key: float) -> None:
    """Also where every score is as low or high as scores get: a softmax knows differences only."""
    with at_level(level):
        cache = LayerKV.allocate(1, 1, 128, 32)
        n = 100
        positions, sequences = np.arange(n, dtype=np.int32), np.zeros(n, np.int32)
        v = np.arange(n, dtype=np.float32)[:, None].repeat(32, axis=1)
        bind_store_kv(np.full((n, 32), key, np.float32), v, positions, sequences, cache)()
        q = np.full((1, 32), 100.0, np.float32)
        scratch = AttentionScratch.allocate(1, 128, 1, 1, 32, 1)
        with guarded((1, 32)) as out:
            last = np.array([n - 1], np.int32)
            bind_attention(q, out, last, np.zeros(1, np.int32), cache, scratch, 0, 1.0)()
        np.testing.assert_allclose(out, (n - 1) / 2, rtol=1e-5)


@pytest.mark.parametrize("level", NATIVE_LEVELS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_query_that_is_no_number_shows_in_its_own_output(level: str, value: float) -> None:
    """Hiding it would let a damaged model talk on."""
    with at_level(level):
        history = History(1, 1, 128, 32)
        positions, sequences = history.append([0] * 100)
        q, out = np.ones((100, 64), np.float32), np.empty((100, 64), np.float32)
        q[70, 40] = value
        scratch = AttentionScratch.allocate(100, 128, 2, 1, 32, 2)
        bind_attention(q, out, positions, sequences, history.cache, scratch, 0, 0.2)()
    assert np.isnan(out[70, 32:]).all()
    assert np.isfinite(np.delete(out, 70, axis=0)).all()
    assert np.isfinite(out[70, :32]).all()


@pytest.mark.parametrize("level", NATIVE_LEVELS)
@settings(max_examples=40)
@given(data=st.data())
def test_attention_of_any_shape(level: str, data: st.DataObject) -> None:
    integers = st.integers
    kv_heads = data.draw(integers(1, 3), "KV heads")
    head_size = 2 * data.draw(integers(1, 24), "half head size")
    n_sequences = data.draw(integers(1, 3), "sequences")
    window = data.draw(integers(0, 90), "window")
    before = data.draw(st.lists(integers(0, 150), min_size=n_sequences, max_size=n_sequences), "before")
    batch = data.draw(st.lists(integers(0, n_sequences - 1), min_size=1, max_size=40), "batch")
    # A ring is only as long as it must be where a window bounds what is seen.
    capacity = (window if window else max(before)) + len(batch)
    with at_level(level):
        seed = data.draw(integers(0, 1 << 30), "seed")
        kind = data.draw(st.sampled_from(KINDS), "kind")
        history = History(n_sequences, kv_heads, capacity, head_size, seed, kind)
        for sequence, count in enumerate(before):
            for start in range(0, count, capacity):
                history.append([sequence] * min(capacity, count - start))
        history.check(
            *history.append(batch),
            group=data.draw(integers(1, 9), "group"),
            window=window,
            cap=data.draw(st.sampled_from([0.0, 0.0, 5.0]), "cap"),
            threads=data.draw(integers(1, 4), "threads"),
        )
