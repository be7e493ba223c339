"""Sessions on the cpu backend: reusing the cache gives the logits of a full prefill (S-11)."""

from contextlib import closing

import numpy as np
import pytest

from engine.model import load_model
from engine.requests import LoadSettings
from engine.session import Session
from tests.helpers.tiny_model import write_tiny_model

PROMPT = [int(token) for token in np.random.default_rng(3).integers(3, 300, 60)]


@pytest.fixture(scope="module", params=["llama", "gemma3"])
def model(request, tmp_path_factory):
    path = write_tiny_model(tmp_path_factory.mktemp("models") / "tiny.gguf", request.param)
    model = load_model(path, LoadSettings(context_size=128, prompt_chunk=16))
    yield model
    model.close()


def read(session, ids):
    list(session.prefill(ids, lambda: False))
    return session.logits.copy()


@pytest.mark.parametrize(
    "second",
    [
        pytest.param([*PROMPT[:-1], 7], id="edit the last id"),
        pytest.param([7, *PROMPT[1:]], id="edit the first id"),
        pytest.param(PROMPT, id="the same prompt again"),
        pytest.param([*PROMPT, 7], id="one new id"),
        pytest.param(PROMPT[:20], id="a beginning of it"),
        pytest.param([9, 8, 7], id="another chat"),
    ],
)
def test_reuse_equals_a_full_prefill(model, second):
    session, fresh = Session(model), Session(model)
    first_logits = read(session, PROMPT)
    for token in range(50, 70):
        session.decode(token)
    for ids, wanted in ((second, read(fresh, second)), (PROMPT, first_logits)):
        ours = read(session, ids)
        assert np.abs(ours - wanted).max() < 1e-3
        assert ours.argmax() == wanted.argmax()
    session.close()
    fresh.close()


@pytest.mark.parametrize("family", ["llama", "gemma3"])
def test_eight_bits_change_the_logits_a_little(family, tmp_path):
    """Keys and values are off by up to 0.4% of the largest of 64; these random weights make more of it."""
    path = write_tiny_model(tmp_path / "tiny.gguf", family)
    rows = {}
    for kv in ("f16", "q8"):
        with closing(load_model(path, LoadSettings(128, prompt_chunk=16, kv=kv))) as model:
            session = Session(model)
            rows[kv] = [read(session, PROMPT), *(session.decode(token).copy() for token in range(50, 70))]
            assert session.model.memory.kv_cache == session._context.cache.nbytes
            session.close()
    exact, ours = np.array(rows["f16"]), np.array(rows["q8"])
    distances = np.linalg.norm(ours - exact, axis=1) / np.linalg.norm(exact, axis=1)
    assert distances.min() > 1e-3, "half precision is closer"
    assert distances.max() < 0.05
