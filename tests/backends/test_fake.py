"""The fake backend passes the same suite as a real one, and does what its behaviour says."""

import numpy as np
import pytest

from engine.backends.fake import FakeBackend, FakeBehaviour
from engine.errors import DeviceLostError, OutOfMemoryError
from engine.session import Session
from tests.backends.backend_suite import TEXT, BackendSuite, batch_of
from tests.helpers.fake_model import FakeModel


class TestFake(BackendSuite):
    def make_backend(self):
        return FakeBackend(behaviour=FakeBehaviour(memory_bytes=64_000_000))

    def tolerance(self, quant_type):
        return 0.0

    def allocated_bytes(self, backend, weights, spec, plan):
        """Weights only pretend to be copied, so the fake is asked."""
        loaded = backend.load_weights(weights, lambda share: None)
        context = loaded.new_context(spec)
        context.run(plan, batch_of(TEXT[:32], outputs=[31]))
        return loaded.nbytes + context.nbytes


def continuation(model, prompt, count):
    session = Session(model)
    list(session.prefill(prompt, lambda: False))
    ids = [int(session.logits.argmax())]
    while len(ids) < count:
        ids.append(int(session.decode(ids[-1]).argmax()))
    return ids


def test_a_script_is_recited_after_any_prompt():
    model = FakeModel(behaviour=FakeBehaviour(script=[5, 5, 9, 2]))
    assert continuation(model, [100, 101], 4) == [5, 5, 9, 2]
    assert continuation(model, [200], 4) == [5, 5, 9, 2]


def test_logits_turn_invalid_when_told():
    session = Session(FakeModel(behaviour=FakeBehaviour(invalid_after=3)))
    list(session.prefill([1, 2], lambda: False))
    assert np.isfinite(session.logits).all()
    assert np.isnan(session.decode(3)).all()


def test_a_lost_device_says_so_when_loading_and_when_running():
    behaviour = FakeBehaviour(lost=True)
    with pytest.raises(DeviceLostError):
        FakeModel(behaviour=behaviour)


def test_the_memory_limit_counts_the_cache():
    model = FakeModel(context_size=1000, behaviour=FakeBehaviour(memory_bytes=8000))
    model.new_context()
    model.behaviour.memory_bytes = 7999
    with pytest.raises(OutOfMemoryError, match="8000"):
        model.new_context()


def test_a_window_of_three_sees_three_tokens():
    def logits(ids):
        session = Session(FakeModel(windows=(3,)))
        list(session.prefill(ids, lambda: False))
        return session.logits.copy()

    np.testing.assert_array_equal(logits([1, 2, 3, 4]), logits([9, 2, 3, 4]))
    assert (logits([1, 2, 3, 4]) != logits([1, 9, 3, 4])).any()
