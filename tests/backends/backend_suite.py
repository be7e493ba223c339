"""The conformance suite: what every backend must do, run by one test file per backend.

A test file inherits `BackendSuite`, says how to make the backend, and how closely two ways of computing the
same logits must agree.  The suite compares a backend with itself only; that its numbers are right is shown
against the slow reference.
"""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from engine.backends.interface import Backend, Batch, CacheSpec, LayerCache, Probe
from engine.errors import Cancelled, OutOfMemoryError, UnsupportedByBackendError
from engine.gguf.reader import GGUFFile
from engine.gguf.tensor_types import TENSOR_TYPES, QuantType
from engine.graph.operations import BatchShape
from engine.models.description import describe
from engine.models.registry import cache_spec, plan_layers
from engine.tensor import Tensor
from tests.helpers.tiny_model import write_tiny_model

MODELS = [("llama", "F32"), ("gemma3", "F32"), ("llama", "Q8_0"), ("gemma3", "Q4_1"), ("gemma3", "Q4_K")]
MAX_BATCH = 16
CONTEXT_SIZE = 256
TEXT = [int(token) for token in np.random.default_rng(5).integers(3, 300, 200)]


class Rig:
    """A tiny model on a backend: makes contexts and runs ids in them."""

    def __init__(self, backend, path, tolerance):
        self.backend = backend
        self.tolerance = tolerance
        self.file = GGUFFile.open(path)
        self.tensors = dict(self.file.tensors)
        n_vocabulary = self.tensors["token_embd.weight"].shape[0]
        self.description = describe(self.file.metadata, n_vocabulary)
        self.weights = {name: self.tensors[name] for name in self.plan(1, 1).weights}
        self.loaded = backend.load_weights(self.weights, lambda share: None)
        self.contexts = []

    def spec(self, context_size=CONTEXT_SIZE, max_batch=MAX_BATCH, n_sequences=1):
        return cache_spec(self.description, context_size, max_batch, n_sequences)

    def plan(self, n_tokens, n_outputs):
        return plan_layers(self.description, self.tensors, BatchShape(n_tokens, n_outputs))

    def context(self, **spec):
        self.contexts.append(self.loaded.new_context(self.spec(**spec)))
        return self.contexts[-1]

    def run(self, context, ids, position=0, sequence=0, outputs=None):
        """Logits of the outputs (all tokens where None), for ids at most MAX_BATCH long."""
        outputs = range(len(ids)) if outputs is None else outputs
        batch = batch_of(ids, position, sequence, outputs)
        return context.run(self.plan(len(ids), len(batch.outputs)), batch).copy()

    def read(self, context, ids, position=0, sequence=0, chunk=MAX_BATCH):
        """Logits of all ids, read chunk by chunk."""
        parts = []
        for start in range(0, len(ids), chunk):
            part = ids[start : start + chunk]
            parts.append(self.run(context, part, position + start, sequence))
        return np.concatenate(parts)

    def assert_close(self, ours, wanted):
        assert largest_difference(ours, wanted) <= self.tolerance

    def close(self):
        for context in self.contexts:
            context.close()
        self.loaded.close()
        self.backend.close()
        self.file.close()


def batch_of(ids, position=0, sequence=0, outputs=(0,)):
    n = len(ids)
    return Batch(
        tokens=np.array(ids, np.int32),
        positions=np.arange(position, position + n, dtype=np.int32),
        sequences=np.full(n, sequence, np.int32),
        outputs=np.array(list(outputs), np.int32),
    )


def stop_when_asked(times):
    """A should_stop that says so when it is asked for that time."""
    answers = iter([False] * (times - 1) + [True])
    return lambda: next(answers)


def largest_difference(ours, wanted):
    """The largest relative L2 distance of two rows of logits."""
    assert ours.shape == wanted.shape
    distances = np.linalg.norm(ours - wanted, axis=-1) / np.linalg.norm(wanted, axis=-1)
    return float(distances.max(initial=0.0))


class BackendSuite:
    """Inherit it as Test…; define make_backend and tolerance."""

    def make_backend(self) -> Backend:
        raise NotImplementedError

    def tolerance(self, quant_type):
        """Relative L2 between two ways of computing the same logits."""
        raise NotImplementedError

    @pytest.fixture(params=MODELS, ids="-".join)
    def rig(self, request, tmp_path):
        family, quant_type = request.param
        path = write_tiny_model(tmp_path / "tiny.gguf", family, quant_type=quant_type)
        rig = Rig(self.make_backend(), path, self.tolerance(quant_type))
        yield rig
        rig.close()

    @pytest.fixture
    def llama(self, tmp_path):
        path = write_tiny_model(tmp_path / "tiny.gguf", quant_type="F32")
        rig = Rig(self.make_backend(), path, self.tolerance("F32"))
        yield rig
        rig.close()

    def test_the_probe_answers(self):
        probe = type(self.make_backend()).probe()
        assert isinstance(probe, Probe)
        assert probe.available, probe.reason
        assert probe.memory_free >= 0

    def test_capabilities_name_known_things(self):
        capabilities = self.make_backend().capabilities()
        assert {"F32", "Q8_0", "Q4_K"} <= capabilities.quant_types <= set(TENSOR_TYPES)
        assert {"embed", "linear", "attention"} <= capabilities.operations

    def test_logits_are_numbers_of_the_vocabulary(self, rig):
        logits = rig.run(rig.context(), TEXT[:5])
        assert logits.shape == (5, 300)
        assert logits.dtype == np.float32
        assert np.isfinite(logits).all()

    def test_another_token_gives_other_logits(self, rig):
        one = rig.run(rig.context(), TEXT[:5])
        other = rig.run(rig.context(), [TEXT[9], *TEXT[1:5]])
        for row, other_row in zip(one, other, strict=True):
            assert largest_difference(row, other_row) > 10 * rig.tolerance

    def test_the_same_work_twice_gives_the_same_bits(self, rig):
        np.testing.assert_array_equal(rig.read(rig.context(), TEXT), rig.read(rig.context(), TEXT))

    def test_a_batch_equals_its_tokens_one_by_one(self, rig):
        ids = TEXT[:MAX_BATCH]
        rig.assert_close(rig.read(rig.context(), ids, chunk=1), rig.run(rig.context(), ids))

    @pytest.mark.parametrize("chunk", [1, 3, 7])
    def test_chunks_of_any_size_give_the_same(self, rig, chunk):
        rig.assert_close(rig.read(rig.context(), TEXT, chunk=chunk), rig.read(rig.context(), TEXT))

    def test_outputs_select_rows(self, rig):
        ids = TEXT[:9]
        every = rig.run(rig.context(), ids)
        rig.assert_close(rig.run(rig.context(), ids, outputs=[0, 4, 8]), every[[0, 4, 8]])
        rig.assert_close(rig.run(rig.context(), ids, outputs=[8]), every[[8]])

    def test_a_batch_without_outputs_still_fills_the_cache(self, rig):
        context = rig.context()
        assert rig.run(context, TEXT[:9], outputs=[]).shape == (0, 300)
        rig.assert_close(rig.run(context, TEXT[9:12], 9), rig.run(rig.context(), TEXT[:12])[9:])

    def test_an_earlier_context_size_does_not_matter(self, rig):
        small = rig.read(rig.context(context_size=40), TEXT[:40])
        rig.assert_close(small, rig.read(rig.context(), TEXT[:40]))

    @pytest.mark.parametrize(("read", "kept"), [(12, 5), (12, 11), (12, 12), (30, 1), (12, 0), (200, 195)])
    def test_truncate_and_go_on_equals_fresh(self, rig, read, kept):
        context = rig.context()
        rig.read(context, TEXT[:read])
        usable = context.truncate(0, kept)
        assert usable == kept or 0 <= usable < kept, usable
        ids = [*TEXT[:kept], 7, 8, 9]
        ours = rig.read(context, ids[usable:], usable)
        rig.assert_close(ours[-3:], rig.read(rig.context(), ids)[-3:])

    def test_truncate_keeps_what_was_not_overwritten(self, rig):
        context = rig.context()
        rig.read(context, TEXT[:20])
        assert context.truncate(0, 20) == 20
        assert context.truncate(0, 12) == 12
        assert context.truncate(0, 50) == 12, "there is nothing beyond what was read"

    @pytest.mark.parametrize("asked", [1, 7, 12])
    @pytest.mark.parametrize("kept", [100, 60])
    def test_a_stopped_batch_leaves_the_sequence_as_it_was(self, rig, asked, kept):
        """Also where it has taken ring slots of older positions, which a cut must then know."""
        context = rig.context()
        rig.read(context, TEXT[:100])
        batch = batch_of(TEXT[150 : 150 + MAX_BATCH], 100)
        with pytest.raises(Cancelled):
            context.run(rig.plan(MAX_BATCH, 1), batch, stop_when_asked(asked))
        usable = context.truncate(0, kept)
        assert usable <= kept
        assert usable == 100 or kept < 100, "nothing that the next query sees was lost"
        ids = [*TEXT[:kept], *TEXT[100:110]]
        ours = rig.read(context, ids[usable:], usable)
        rig.assert_close(ours[-10:], rig.read(rig.context(), ids)[-10:])

    def test_a_batch_that_need_not_stop_runs_to_its_end(self, rig):
        asked = []

        def never():
            asked.append(True)
            return False

        context = rig.context()
        ours = context.run(rig.plan(5, 5), batch_of(TEXT[:5], outputs=range(5)), never).copy()
        np.testing.assert_array_equal(ours, rig.run(rig.context(), TEXT[:5]))
        assert len(asked) >= 5

    def test_truncate_far_back(self, rig):
        context = rig.context()
        rig.read(context, TEXT)
        usable = context.truncate(0, 20)
        windows = [layer.window for layer in rig.spec().layers]
        assert usable == 20 if not any(windows) else usable <= 20
        again = rig.read(context, TEXT[usable:60], usable)
        rig.assert_close(again[-40:], rig.read(rig.context(), TEXT[:60])[-40:])

    def test_two_contexts_do_not_disturb_each_other(self, rig):
        one, other = rig.context(), rig.context()
        rig.run(one, TEXT[:8])
        rig.run(other, TEXT[20:30])
        rig.assert_close(rig.run(one, TEXT[8:12], 8), rig.run(rig.context(), TEXT[:12])[8:])
        other.close()
        rig.assert_close(rig.run(one, TEXT[12:14], 12), rig.run(rig.context(), TEXT[:14])[12:])

    def test_two_sequences_do_not_disturb_each_other(self, rig):
        context = rig.context(n_sequences=2)
        rig.run(context, TEXT[:8], sequence=0)
        rig.run(context, TEXT[20:30], sequence=1)
        rig.assert_close(rig.run(context, TEXT[8:12], 8, 0), rig.run(rig.context(), TEXT[:12])[8:])
        context.truncate(0, 0)
        rig.assert_close(rig.run(context, TEXT[30:34], 10, 1), rig.run(rig.context(), TEXT[20:34])[10:])

    def test_one_batch_of_two_sequences(self, rig):
        context = rig.context(n_sequences=2)
        rig.run(context, TEXT[:8], sequence=0)
        rig.run(context, TEXT[20:25], sequence=1)
        batch = Batch(
            tokens=np.array([TEXT[8], TEXT[25], TEXT[9]], np.int32),
            positions=np.array([8, 5, 9], np.int32),
            sequences=np.array([0, 1, 0], np.int32),
            outputs=np.array([0, 1, 2], np.int32),
        )
        ours = context.run(rig.plan(3, 3), batch).copy()
        rig.assert_close(ours[[0, 2]], rig.run(rig.context(), TEXT[:10])[8:])
        rig.assert_close(ours[[1]], rig.run(rig.context(), TEXT[20:26])[5:])

    def test_the_last_place_of_the_context_is_usable(self, rig):
        context = rig.context(context_size=10)
        rig.run(context, TEXT[:9])
        rig.assert_close(rig.run(context, TEXT[9:10], 9), rig.run(rig.context(), TEXT[:10])[9:])
        with pytest.raises(ValueError):
            rig.run(context, TEXT[10:11], 10)

    @pytest.mark.parametrize(
        ("shape", "batch"),
        [
            pytest.param((2, 1), batch_of([5, 6, 7]), id="more tokens than planned"),
            pytest.param((3, 2), batch_of([5, 6, 7]), id="fewer outputs than planned"),
            pytest.param((3, 1), batch_of([5, 6, 7], outputs=[3]), id="output outside"),
            pytest.param((3, 1), batch_of([5, 6, 7], outputs=[-1]), id="output negative"),
            pytest.param((3, 2), batch_of([5, 6, 7], outputs=[2, 0]), id="outputs descending"),
            pytest.param((3, 1), batch_of([5, 6, 7], position=1), id="a gap before it"),
            pytest.param((3, 1), batch_of([5, 6, 7], position=-1), id="negative position"),
            pytest.param((3, 1), batch_of([5, 6, 7], sequence=1), id="no such sequence"),
            pytest.param((3, 1), batch_of([5, 6, 7], sequence=-1), id="negative sequence"),
            pytest.param((3, 1), batch_of([5, 300, 7]), id="token outside the vocabulary"),
            pytest.param((3, 1), batch_of([5, -1, 7]), id="negative token"),
            pytest.param((17, 1), batch_of([5] * 17), id="larger than max_batch"),
        ],
    )
    def test_a_batch_that_does_not_fit_is_refused_and_does_no_harm(self, llama, shape, batch):
        context = llama.context()
        with pytest.raises(ValueError):
            context.run(llama.plan(*shape), batch)
        llama.assert_close(llama.run(context, TEXT[:4]), llama.run(llama.context(), TEXT[:4]))

    def test_the_estimate_covers_what_is_allocated(self, tmp_path):
        path = write_tiny_model(tmp_path / "tiny.gguf", quant_type="Q8_0", width=256)
        backend = self.make_backend()
        with GGUFFile.open(path) as file:
            description = describe(file.metadata, 300)
            spec = cache_spec(description, 4096, 32)
            plan = plan_layers(description, file.tensors, BatchShape(32, 1))
            weights = {name: file.tensors[name] for name in plan.weights}
            estimate = backend.estimate_memory(weights, spec, plan)
            allocated = self.allocated_bytes(backend, weights, spec, plan)
        assert allocated <= estimate.total <= 1.1 * allocated

    def allocated_bytes(self, backend, weights, spec, plan):
        """Bytes of all arrays that live after loading and one run."""
        backend.estimate_memory(weights, spec, plan)  # what is made once per process is not counted
        tracemalloc.start()
        try:
            loaded = backend.load_weights(weights, lambda share: None)
            context = loaded.new_context(spec)
            context.run(plan, batch_of(TEXT[:32], outputs=[31]))
            snapshot = tracemalloc.take_snapshot()
        finally:
            tracemalloc.stop()
        arrays = snapshot.filter_traces([tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)])
        context.close()
        loaded.close()
        backend.close()
        return sum(trace.size for trace in arrays.traces)

    def test_an_absurd_context_is_refused_before_anything_is_allocated(self, llama):
        layers = tuple(LayerCache(index, 8, 128, 0) for index in range(64))
        spec = CacheSpec(layers, context_size=10_000_000, max_batch=16)
        estimate = llama.backend.estimate_memory(llama.weights, spec, llama.plan(16, 1))
        assert estimate.kv_cache > 10_000_000
        tracemalloc.start()
        try:
            with pytest.raises(OutOfMemoryError) as caught:
                llama.loaded.new_context(spec)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert caught.value.title and caught.value.advice
        assert peak < 1_000_000

    def test_an_unsupported_type_is_refused_by_name_before_any_work(self, llama):
        nothing = QuantType("Q9_9", 999, 256, 56)
        tensor = Tensor.contiguous("late.weight", nothing, (1, 256), np.zeros(nothing.block_bytes, np.uint8))
        shares = []
        with pytest.raises(UnsupportedByBackendError) as caught:
            llama.backend.load_weights({**llama.weights, "late.weight": tensor}, shares.append)
        assert "Q9_9" in caught.value.title
        assert not [share for share in shares if share > 0]

    def test_loading_reports_rising_shares(self, llama):
        shares = []
        llama.backend.load_weights(llama.weights, shares.append).close()
        assert shares == sorted(shares)
        assert len(shares) > 5
        assert 0 <= shares[0] < 0.5
        assert shares[-1] == 1

    def test_loading_stops_where_progress_raises_cancelled(self, llama):
        def stop_half_way(share):
            if share > 0.3:
                raise Cancelled("enough")

        with pytest.raises(Cancelled):
            llama.backend.load_weights(llama.weights, stop_half_way)
        llama.backend.load_weights(llama.weights, lambda share: None).close()

    def test_the_file_may_be_closed_after_loading(self, llama):
        wanted = llama.run(llama.context(), TEXT[:5])
        copies = {name: replace(tensor, data=tensor.data.copy()) for name, tensor in llama.weights.items()}
        loaded = llama.backend.load_weights(copies, lambda share: None)
        for copy in copies.values():
            copy.data[:] = 255
        context = loaded.new_context(llama.spec())
        np.testing.assert_array_equal(llama.run(context, TEXT[:5]), wanted)

    def test_everything_may_be_closed_twice_and_not_used_after(self, llama):
        context = llama.context()
        llama.run(context, TEXT[:3])
        for _ in range(2):
            context.close()
        with pytest.raises(ValueError):
            llama.run(context, TEXT[3:5], 3)
        for _ in range(2):
            llama.loaded.close()
        with pytest.raises(ValueError):
            llama.loaded.new_context(llama.spec())
        for _ in range(2):
            llama.backend.close()
