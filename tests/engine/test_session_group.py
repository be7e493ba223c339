"""Conversations written together have the logits that each of them has alone."""

from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ContextOverflowError, DeviceLostError
from engine.model import load_model
from engine.requests import LoadSettings
from engine.session import Session
from engine.session_group import SessionGroup
from tests.helpers.fake_model import FakeModel
from tests.helpers.tiny_model import write_tiny_model

WINDOWED = {"windows": (0, 6), "prompt_chunk": 4}


def never():
    return False


def read(session, ids):
    list(session.prefill(ids, never))
    return session.logits.copy()


def alone(model, ids):
    """Logits after ids in a session of its own."""
    with closing(Session(model)) as session:
        return read(session, ids)


@given(
    st.lists(st.lists(st.integers(0, 10), min_size=1, max_size=24), min_size=1, max_size=5),
    st.lists(st.dictionaries(st.integers(0, 4), st.integers(0, 10), max_size=5), max_size=5),
    st.sampled_from([{}, WINDOWED]),
)
def test_any_prompts_and_steps_equal_sessions_alone(prompts, steps, model):
    model = FakeModel(context_size=30, n_vocabulary=11, **model)
    group = SessionGroup(model, len(prompts))
    texts = [list(ids) for ids in prompts]
    for session, ids in zip(group.sessions, texts, strict=True):
        read(session, ids)
    for step in steps:
        step = {index: token for index, token in step.items() if index < len(prompts)}
        logits = group.decode(step)
        assert sorted(logits) == sorted(step)
        for index, token in step.items():
            texts[index].append(token)
    for session, ids in zip(group.sessions, texts, strict=True):
        assert list(session.tokens) == ids
        np.testing.assert_array_equal(session.logits, alone(model, ids))


@pytest.fixture(scope="module", params=["llama", "gemma3"])
def tiny(request, tmp_path_factory):
    path = write_tiny_model(tmp_path_factory.mktemp("models") / "tiny.gguf", request.param)
    with closing(load_model(path, LoadSettings(context_size=128, prompt_chunk=16))) as model:
        yield model


@pytest.mark.parametrize("size", [1, 2, 4, 10, 20])
def test_the_cpu_backend_computes_members_as_if_alone(tiny, size):
    """Of different lengths, also beyond a window, and more of them than products of few tokens take."""
    rng = np.random.default_rng(size)
    prompts = [[int(token) for token in rng.integers(3, 300, 5 + 7 * index % 60)] for index in range(size)]
    with closing(SessionGroup(tiny, size)) as group:
        for session, ids in zip(group.sessions, prompts, strict=True):
            read(session, ids)
        for _ in range(3):
            step = {index: int(rng.integers(3, 300)) for index in range(size)}
            logits = group.decode(step)
            for index, token in step.items():
                prompts[index].append(token)
        for index, ids in enumerate(prompts):
            wanted = alone(tiny, ids)
            distance = np.linalg.norm(logits[index] - wanted) / np.linalg.norm(wanted)
            assert distance < 2e-3, "as two ways of computing the same logits, tests/backends/test_cpu.py"


def test_a_member_may_be_read_again_and_written_alone(tiny):
    with closing(SessionGroup(tiny, 2)) as group:
        one, other = group.sessions
        read(one, [5, 6, 7, 8])
        kept = read(other, [9, 10])
        read(one, [5, 6, 11])
        one.decode(12)
        assert np.array_equal(other.logits, kept), "a run of one member leaves the logits of the others"
        np.testing.assert_allclose(one.logits, alone(tiny, [5, 6, 11, 12]), rtol=0, atol=1e-3)
        np.testing.assert_allclose(group.decode({1: 13})[1], alone(tiny, [9, 10, 13]), rtol=0, atol=1e-3)


def test_a_stop_leaves_the_other_members_alone():
    model = FakeModel()
    group = SessionGroup(model, 2)
    read(group.sessions[0], [1, 2, 3])
    answers = iter([False] * 5 + [True])
    list(group.sessions[1].prefill(list(range(20)), lambda: next(answers)))
    assert not group.sessions[1].tokens
    np.testing.assert_array_equal(group.decode({0: 4})[0], alone(model, [1, 2, 3, 4]))


def test_a_full_member_is_refused_before_anything_is_evaluated():
    group = SessionGroup(FakeModel(context_size=4), 3)
    read(group.sessions[0], [1, 2])
    read(group.sessions[1], [1, 2, 3, 4])
    with pytest.raises(ContextOverflowError, match="conversation 1"):
        group.decode({0: 3, 1: 5})
    assert [len(session.tokens) for session in group.sessions] == [2, 4, 0]


def test_members_of_a_failed_run_are_read_again():
    model = FakeModel()
    group = SessionGroup(model, 3)
    for session in group.sessions:
        read(session, [1, 2, 3])
    model.behaviour.lost = True
    with pytest.raises(DeviceLostError):
        group.decode({0: 4, 1: 4})
    model.behaviour.lost = False
    assert [len(session.tokens) for session in group.sessions] == [0, 0, 3]
    np.testing.assert_array_equal(read(group.sessions[0], [1, 2, 3, 4]), alone(model, [1, 2, 3, 4]))
    np.testing.assert_array_equal(group.decode({2: 4})[2], alone(model, [1, 2, 3, 4]))


def test_closing_twice_and_nobody_to_write_for():
    group = SessionGroup(FakeModel(), 2)
    assert group.decode({}) == {}
    group.close()
    group.close()
    with pytest.raises(ValueError, match="closed"):
        group.decode({0: 1})
