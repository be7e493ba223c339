"""Sessions: every prompt gives the logits of a fresh session, whatever was in the cache (S-09, S-11)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ContextOverflowError, DeviceLostError, SettingsError
from engine.session import Session
from tests.helpers.fake_model import FakeModel


def never():
    return False


def read(session, ids):
    """Prefills without stopping; returns the progress records and a copy of the logits."""
    records = list(session.prefill(ids, never))
    return records, session.logits.copy()


def fresh_logits(ids, **model):
    session = Session(FakeModel(**model))
    return read(session, ids)[1]


PROMPT = list(range(10, 40))
WINDOWED = {"windows": (0, 6), "prompt_chunk": 4}


@pytest.mark.parametrize("model", [{}, WINDOWED], ids=["global", "windowed"])
@pytest.mark.parametrize(
    "second",
    [
        pytest.param([*PROMPT[:-1], 7], id="edit the last id"),
        pytest.param([7, *PROMPT[1:]], id="edit the first id"),
        pytest.param(PROMPT, id="the same prompt again"),
        pytest.param([*PROMPT, 7], id="one new id"),
        pytest.param(PROMPT[:12], id="a beginning of it"),
        pytest.param([*PROMPT[:12], 7, 8], id="edit in the middle"),
        pytest.param([99], id="another chat"),
    ],
)
def test_reuse_gives_the_logits_of_a_fresh_session(model, second):
    session = Session(FakeModel(**model))
    first_logits = read(session, PROMPT)[1]
    for token in (50, 51, 52):
        session.decode(token)
    _, logits = read(session, second)
    np.testing.assert_array_equal(logits, fresh_logits(second, **model))
    assert list(session.tokens) == second
    _, again = read(session, PROMPT)
    np.testing.assert_array_equal(again, first_logits)


def test_only_what_is_new_is_evaluated():
    session = Session(FakeModel())
    records, _ = read(session, PROMPT)
    assert [(record.done, record.reused) for record in records] == [(0, 0), (8, 0), (16, 0), (24, 0), (30, 0)]
    session.decode(40)
    records, _ = read(session, [*PROMPT, 40, 41])
    assert [(record.done, record.total, record.reused) for record in records] == [(31, 32, 31), (32, 32, 31)]
    records, _ = read(session, [*PROMPT, 40, 41])
    assert records[0].reused == 31, "the last id is evaluated again, for its logits"


def test_a_lost_window_is_read_again():
    session = Session(FakeModel(**WINDOWED))
    read(session, PROMPT)
    records, _ = read(session, PROMPT[:12])
    assert records[0].reused == 0


@given(
    st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=24), min_size=1, max_size=6),
    st.sampled_from([(0,), (3,), (0, 5), (1,), (24,)]),
    st.integers(1, 9),
    st.integers(0, 4),
)
def test_any_prompts_in_any_order_equal_fresh_sessions(prompts, windows, prompt_chunk, n_decoded):
    model = {"windows": windows, "prompt_chunk": prompt_chunk, "context_size": 30, "n_vocabulary": 11}
    session = Session(FakeModel(**model))
    for ids in prompts:
        ids = list(ids)
        _, logits = read(session, ids)
        for _ in range(n_decoded):
            ids.append(int(logits.argmax()) % 2)
            logits = session.decode(ids[-1])
        np.testing.assert_array_equal(logits, fresh_logits(ids, **model))
        assert list(session.tokens) == ids


def test_stop_between_chunks_keeps_what_was_read():
    session = Session(FakeModel())
    # Asked before each chunk and, by the fake backend, before each of its 8 tokens.
    answers = iter([False] * 18 + [True])
    records = list(session.prefill(PROMPT, lambda: next(answers)))
    assert records[-1].done == 16
    assert session.logits is None
    assert list(session.tokens) == PROMPT[:16]
    records, logits = read(session, PROMPT)
    assert records[0].reused == 16
    np.testing.assert_array_equal(logits, fresh_logits(PROMPT))


@pytest.mark.parametrize("model", [{}, WINDOWED], ids=["global", "windowed"])
@pytest.mark.parametrize("asked", range(2, 34, 5))
def test_stop_within_a_chunk_keeps_the_chunks_before_it(model, asked):
    session = Session(FakeModel(**model))
    answers = iter([False] * (asked - 1) + [True] * 2)
    done = list(session.prefill(PROMPT, lambda: next(answers)))[-1].done
    assert session.logits is None
    assert list(session.tokens) == PROMPT[:done]
    records, logits = read(session, PROMPT)
    assert records[0].reused == done < len(PROMPT)
    np.testing.assert_array_equal(logits, fresh_logits(PROMPT, **model))


def test_a_prefill_left_alone_half_way_does_no_harm():
    session = Session(FakeModel())
    for record in session.prefill(PROMPT, never):
        if record.done == 8:
            break
    _, logits = read(session, [*PROMPT[:4], 3])
    np.testing.assert_array_equal(logits, fresh_logits([*PROMPT[:4], 3]))


@pytest.mark.parametrize("length", [63, 64])
def test_a_prompt_may_fill_the_context(length):
    session = Session(FakeModel(context_size=64))
    read(session, [1] * length)
    assert session.is_full == (length == 64)
    for _ in range(64 - length):
        session.decode(1)
    with pytest.raises(ContextOverflowError):
        session.decode(1)
    assert len(session.tokens) == 64


@pytest.mark.parametrize("length", [65, 200])
def test_a_longer_prompt_is_refused_with_both_numbers(length):
    session = Session(FakeModel(context_size=64))
    read(session, PROMPT)
    with pytest.raises(ContextOverflowError, match=rf"{length}.*64"):
        read(session, [1] * length)
    assert list(session.tokens) == PROMPT, "a refused prompt leaves the cache alone"


@pytest.mark.parametrize("ids", [[], [300], [-1], [5, 2**40]])
def test_prompts_that_are_none_are_refused(ids):
    with pytest.raises(SettingsError):
        read(Session(FakeModel()), ids)


def test_a_context_of_one_token():
    session = Session(FakeModel(context_size=1))
    read(session, [4])
    assert session.is_full


def test_after_a_failure_everything_is_read_again():
    model = FakeModel()
    session = Session(model)
    read(session, PROMPT)
    model.behaviour.lost = True
    with pytest.raises(DeviceLostError):
        session.decode(5)
    model.behaviour.lost = False
    records, logits = read(session, PROMPT)
    assert records[0].reused == 0
    np.testing.assert_array_equal(logits, fresh_logits(PROMPT))


def test_two_sessions_of_one_model_do_not_meet():
    model = FakeModel()
    one, other = Session(model), Session(model)
    read(one, PROMPT)
    read(other, [5, 6])
    np.testing.assert_array_equal(one.decode(9), fresh_logits([*PROMPT, 9]))
    one.close()
    one.close()
    np.testing.assert_array_equal(other.decode(9), fresh_logits([5, 6, 9]))
