"""Experts on the cpu backend: what is held, what is read, and when it can be stopped."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from engine.backends.cpu import experts
from engine.backends.cpu.backend import CpuWeights
from engine.backends.cpu.context import CpuContext
from engine.backends.interface import Batch
from engine.errors import Cancelled
from engine.gguf.reader import GGUFFile
from engine.kernels.packing import PackedWeight
from engine.model import LoadedModel, load_model
from engine.quantisation.quantise import make_tensor
from engine.requests import LoadSettings
from engine.session import Session
from engine.tensor import Tensor
from tests.helpers.tiny_experts import N_EXPERTS, N_LAYERS, N_USED, write_tiny_mixtral
from tests.helpers.truth import read_logits

IDS = [int(token) for token in np.random.default_rng(4).integers(3, 300, 60)]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_mixtral(tmp_path_factory.mktemp("models") / "tiny.gguf", "Q8_0")


@pytest.fixture(params=[True, False], ids=["repacked", "mapped"])
def model(request: pytest.FixtureRequest, path: Path) -> Iterator[LoadedModel]:
    settings = LoadSettings(context_size=256, repack=request.param)
    with closing(load_model(path, settings)) as model:
        yield model


def context_of(model: LoadedModel) -> CpuContext:
    context = model.new_context()
    assert isinstance(context, CpuContext)
    return context


def batch(ids: list[int], position: int = 0) -> Batch:
    n = len(ids)
    positions = np.arange(position, position + n, dtype=np.int32)
    return Batch(np.array(ids, np.int32), positions, np.zeros(n, np.int32), np.array([n - 1], np.int32))


# ---- memory


def test_the_estimate_is_what_is_held(model: LoadedModel) -> None:
    """Once a batch as large as can be has run."""
    assert model.memory.weights == model.weights.nbytes
    with closing(context_of(model)) as context:
        for n in (1, 8, model.cache_spec.max_batch):
            context.run(model.plan_for(n, 1), batch((IDS * 5)[:n]))
            context.truncate(0, 0)
        assert model.memory.kv_cache == context.cache.nbytes
        assert model.memory.arena == pytest.approx(context.nbytes - context.cache.nbytes, rel=1e-3)


def test_every_expert_is_packed_in_one_allocation(path: Path) -> None:
    with closing(load_model(path)) as model:
        assert isinstance(model.weights, CpuWeights)
        weights = model.weights._weights
        assert weights is not None
        for name in ("gate", "up", "down"):
            matrices = weights.experts[f"blk.1.ffn_{name}_exps.weight"]
            assert len(matrices) == N_EXPERTS
            for matrix in matrices:
                assert isinstance(matrix, PackedWeight)
                assert np.may_share_memory(matrix.data, weights.arena.memory)


def test_writing_tokens_allocates_nothing(model: LoadedModel) -> None:
    with closing(Session(model)) as session:
        list(session.prefill(IDS, lambda: False))
        tracemalloc.start()
        try:
            for token in IDS[:20]:
                session.decode(token)
            gc.collect()
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            for token in range(3, 103):
                session.decode(token)
            gc.collect()
            after, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert after - before < 20_000  # the ids themselves
    assert peak - before < 64_000


# ---- what is read


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> Counter[object]:
    """How often each matrix of an expert has been multiplied with."""
    counts: Counter[object] = Counter()
    original = experts.product_of

    def counted(*arguments: object) -> experts.Multiply:
        multiply = original(*arguments)  # type: ignore[arg-type]

        def run(matrix: object) -> object:
            counts[matrix] += 1
            return multiply(matrix)  # type: ignore[arg-type]

        return run

    monkeypatch.setattr(experts, "product_of", counted)
    return counts


def test_a_prompt_reads_each_expert_once(model: LoadedModel, products: Counter[object]) -> None:
    with closing(context_of(model)) as context:
        context.run(model.plan_for(60, 1), batch(IDS))
    assert set(products.values()) == {1}
    assert 3 * N_LAYERS * N_USED < len(products) <= 3 * N_LAYERS * N_EXPERTS


def test_one_token_reads_the_chosen_experts_only(model: LoadedModel, products: Counter[object]) -> None:
    with closing(context_of(model)) as context:
        context.run(model.plan_for(1, 1), batch(IDS[:1]))
    assert set(products.values()) == {1}
    assert len(products) == 3 * N_LAYERS * N_USED


@pytest.mark.parametrize("chunk", [60, 1])
def test_experts_that_nobody_chooses_change_nothing(chunk: int, tmp_path: Path) -> None:
    """Their weights are no numbers at all."""
    path = write_tiny_mixtral(tmp_path / "whole.gguf")
    with GGUFFile.open(path) as file:
        damaged: dict[str, Tensor | None] = {}
        for layer in range(N_LAYERS):
            router = f"blk.{layer}.ffn_gate_inp"
            favour = np.where(np.arange(N_EXPERTS) % 3 == 1, 100, 0)  # experts 1 and 4
            damaged[f"{router}.bias"] = make_tensor(f"{router}.bias", favour)
            for kind in ("gate", "up", "down"):
                tensor = file.tensors[f"blk.{layer}.ffn_{kind}_exps.weight"].in_memory()
                numbers = tensor.data.view(np.float32).reshape(tensor.shape).copy()
                numbers[[0, 2, 3, 5]] = np.nan
                data = numbers.view(np.uint8).reshape(-1)
                damaged[tensor.name] = Tensor.contiguous(tensor.name, tensor.type, tensor.shape, data)
    path = write_tiny_mixtral(tmp_path / "damaged.gguf", extra_tensors=damaged)
    with closing(load_model(path)) as model, closing(context_of(model)) as context:
        assert np.isfinite(read_logits(model, context, IDS, chunk)).all()


# ---- stopping


class Countdown:
    """Says stop once it was asked often enough."""

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.asked = 0

    def __call__(self) -> bool:
        self.asked += 1
        return self.asked > self.patience


def test_a_prompt_can_be_stopped_between_experts(model: LoadedModel) -> None:
    plan = model.plan_for(60, 1)
    with closing(context_of(model)) as context:
        everything = Countdown(1_000_000)
        wanted = context.run(plan, batch(IDS), everything).copy()
        n_products = 3 * N_LAYERS * N_EXPERTS
        assert everything.asked > n_products
        for patience in range(0, everything.asked, 5):
            context.truncate(0, 0)
            with pytest.raises(Cancelled):
                context.run(plan, batch(IDS), Countdown(patience))
            assert context.cache.lengths == [0]
        np.testing.assert_array_equal(context.run(plan, batch(IDS)), wanted)


def test_contexts_of_one_model_do_not_share_memory(model: LoadedModel) -> None:
    with closing(context_of(model)) as one, closing(context_of(model)) as other:
        wanted = one.run(model.plan_for(60, 1), batch(IDS)).copy()
        other.run(model.plan_for(60, 1), batch(IDS[::-1]))
        one.truncate(0, 0)
        np.testing.assert_array_equal(one.run(model.plan_for(60, 1), batch(IDS)), wanted)
