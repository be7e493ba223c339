"""Reusing the KV cache on real models gives the logits of a fresh session (case S-11).

The same sums in another order differ by 1e-7, and half precision in the cache enlarges that, as
tests/helpers/truth.py says; so logits are compared relative to their length.  In absolute terms they
differ by up to 5e-3 of 30.  Where nothing is reused they are the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.model import LoadedModel, load_model
from engine.requests import LoadSettings
from engine.session import Session
from tests.helpers.truth import RUNNING_TEXT, relative_l2

pytestmark = pytest.mark.slow

TOLERANCE = 1e-2
"""Relative L2.  Measured: 2.3e-3 at most: Q6_K rounds one token and many differently."""
N_PROMPT, N_FAR = 100, 700


@pytest.fixture(scope="module", params=["smollm2", "gemma3"])
def model(request: pytest.FixtureRequest) -> Iterator[LoadedModel]:
    path: Path = request.getfixturevalue(f"{request.param}_path")
    with closing(load_model(path, LoadSettings(context_size=1024))) as model:
        yield model


@pytest.fixture(scope="module")
def ids(model: LoadedModel) -> list[int]:
    return model.tokenizer.encode(RUNNING_TEXT, parse_special=False, add_special=True)


@pytest.fixture(scope="module")
def other_word(model: LoadedModel) -> int:
    return model.tokenizer.encode(" winter", parse_special=False)[-1]


@pytest.fixture
def session(model: LoadedModel) -> Iterator[Session]:
    with closing(Session(model)) as session:
        yield session


@pytest.fixture
def fresh(model: LoadedModel) -> Iterator[Session]:
    with closing(Session(model)) as fresh:
        yield fresh


def read(session: Session, ids: list[int]) -> tuple[int, NDArray[np.float32]]:
    """How many ids were reused, and the logits after the last."""
    reused = [progress.reused for progress in session.prefill(ids, lambda: False)][-1]
    assert session.logits is not None
    return reused, session.logits.copy()


def assert_same(ours: NDArray[np.float32], wanted: NDArray[np.float32], reused: int) -> None:
    distance = float(relative_l2(ours, wanted))
    print(f"{reused} reused: relative {distance:.1e}, absolute {np.abs(ours - wanted).max():.1e}")
    assert distance <= (TOLERANCE if reused > 1 else 0)
    assert ours.argmax() == wanted.argmax()


def reply_after(session: Session, ids: list[int], reply: list[int]) -> NDArray[np.float32]:
    """Reads ids, writes a reply, and gives the logits between the two."""
    _, logits = read(session, ids)
    for token in reply:
        session.decode(token)
    return logits


def test_the_last_word_edited(session: Session, fresh: Session, ids: list[int], other_word: int) -> None:
    reply_after(session, ids[:N_PROMPT], ids[N_PROMPT : N_PROMPT + 10])
    edited = [*ids[: N_PROMPT - 1], other_word]
    reused, ours = read(session, edited)
    assert reused == N_PROMPT - 1
    assert_same(ours, read(fresh, edited)[1], reused)


def test_the_first_word_edited(session: Session, fresh: Session, ids: list[int], other_word: int) -> None:
    reply_after(session, ids[:N_PROMPT], ids[N_PROMPT : N_PROMPT + 10])
    begin_of_sequence = session.model.tokenizer.add_bos
    edited = [*ids[: int(begin_of_sequence)], other_word, *ids[int(begin_of_sequence) + 1 : N_PROMPT]]
    reused, ours = read(session, edited)
    assert reused == int(begin_of_sequence)
    assert_same(ours, read(fresh, edited)[1], reused)


def test_regenerated(session: Session, ids: list[int]) -> None:
    first = reply_after(session, ids[:N_PROMPT], ids[N_PROMPT : N_PROMPT + 10])
    reused, again = read(session, ids[:N_PROMPT])
    assert reused == N_PROMPT - 1
    assert_same(again, first, reused)


def test_the_reply_becomes_part_of_the_prompt(session: Session, fresh: Session, ids: list[int]) -> None:
    reply_after(session, ids[:N_PROMPT], ids[N_PROMPT : N_PROMPT + 10])
    reused, ours = read(session, ids[: N_PROMPT + 20])
    assert reused == N_PROMPT + 10
    assert_same(ours, read(fresh, ids[: N_PROMPT + 20])[1], reused)


def test_another_chat_in_between(session: Session, fresh: Session, ids: list[int]) -> None:
    """Both chats begin with the same system prompt, as chats do."""
    system, chat, other = ids[:40], ids[40:N_PROMPT], ids[200:240]
    first = reply_after(session, system + chat, ids[N_PROMPT : N_PROMPT + 10])
    reused, ours = read(session, system + other)
    assert reused == len(system)
    assert_same(ours, read(fresh, system + other)[1], reused)
    reused, again = read(session, system + chat)
    assert reused == len(system)
    assert_same(again, first, reused)


def test_beyond_the_window_of_gemma3(gemma3_path: Path) -> None:
    """A ring of 640 positions still has what position 690 looks back to, and lacks that of position 100."""
    with (
        closing(load_model(gemma3_path, LoadSettings(context_size=1024, prompt_chunk=128))) as model,
        closing(Session(model)) as session,
        closing(Session(model)) as fresh,
    ):
        ids = model.tokenizer.encode(RUNNING_TEXT, parse_special=False, add_special=True)
        other_word = model.tokenizer.encode(" winter", parse_special=False)[-1]
        _, first = read(session, ids[:N_FAR])
        assert read(session, [*ids[: N_FAR - 10], other_word])[0] == N_FAR - 10
        reused, again = read(session, ids[:N_FAR])
        assert reused == N_FAR - 10
        assert_same(again, first, reused)
        edited = [*ids[:100], other_word]
        reused, ours = read(session, edited)
        assert reused == 0
        assert_same(ours, read(fresh, edited)[1], reused)
