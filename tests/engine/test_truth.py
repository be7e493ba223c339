"""The engine's logits of real models against the slow float64 reference (tests/helpers/truth.py says how)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from engine.model import LoadedModel, load_model
from engine.requests import LoadSettings
from engine.session import Session
from tests.helpers.truth import (
    N_FAR,
    N_FAR_LAST,
    N_LOGITS,
    N_TEXT,
    ReplayedModel,
    Truth,
    mean_divergence,
    read_logits,
    relative_l2,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TOLERANCE = 1e-2
REPLAYED_TOLERANCE = 1e-4
"""Measured: 1.3e-5 (SmolLM2) and 4e-6 (Gemma 3), what float32 sums of these lengths leave."""
ROUNDING_EXCESS = 1e-4
DIVERGENCE = 1e-4
"""Measured: 3e-7 for both."""
SURE = 0.05
"""Apart in log-probability: no tie."""
CHUNKS = {"one batch": N_LOGITS, "chunks of 16": 16, "token by token": 1}


@pytest.fixture(scope="module", params=["smollm2", "gemma3"])
def truth(request: pytest.FixtureRequest) -> Truth:
    answers: Truth = request.getfixturevalue(f"{request.param}_truth")
    return answers


@pytest.fixture(scope="module")
def model(truth: Truth) -> Iterator[LoadedModel]:
    with closing(load_model(truth.path, LoadSettings(context_size=1024))) as model:
        yield model


@pytest.fixture(scope="module")
def replayed(truth: Truth) -> Iterator[ReplayedModel]:
    yield ReplayedModel(truth.path)


@pytest.mark.parametrize("chunk", CHUNKS.values(), ids=CHUNKS.keys())
def test_logits_at_every_position(
    model: LoadedModel, truth: Truth, replayed: ReplayedModel, chunk: int
) -> None:
    ids = truth.ids[:N_LOGITS]
    with closing(model.new_context()) as context:
        ours = read_logits(model, context, ids, chunk)
        wanted = replayed.replay(ids, context)
    exact, replay = relative_l2(ours, truth.logits[:N_LOGITS]), relative_l2(ours, wanted)
    print(f"exact {exact.max():.1e}, replayed {replay.max():.1e}, rounding {replayed.rounding_excess:.1e}")
    assert exact.max() <= TOLERANCE
    assert replayed.rounding_excess <= ROUNDING_EXCESS
    assert replay.max() <= REPLAYED_TOLERANCE


def test_divergence_of_the_next_token_over_running_text(model: LoadedModel, truth: Truth) -> None:
    with closing(model.new_context()) as context:
        ours = read_logits(model, context, truth.ids[:N_TEXT], model.prompt_chunk)
    divergence = mean_divergence(truth.logits, ours)
    print(f"mean divergence {divergence:.1e}")
    assert divergence <= DIVERGENCE


def test_a_session_gives_the_logits_of_its_context(model: LoadedModel, truth: Truth) -> None:
    with closing(Session(model)) as session:
        for _ in session.prefill(truth.ids[:N_TEXT], lambda: False):
            pass
        ours = session.logits
    assert ours is not None
    assert relative_l2(ours, truth.logits[-1]) <= TOLERANCE


def test_gemma3_beyond_its_window(gemma3_truth: Truth, gemma3_path: Path) -> None:
    """A window of 512 and rings of 640 positions, the oldest of which have been overwritten.

    The last ids are read half in a batch and half one by one.
    """
    assert gemma3_truth.far is not None
    ids, half = gemma3_truth.ids[:N_FAR], N_FAR_LAST // 2
    with (
        closing(load_model(gemma3_path, LoadSettings(context_size=1024))) as model,
        closing(model.new_context()) as context,
    ):
        assert {layer.window for layer in model.cache_spec.layers} == {0, 512}
        in_batch = read_logits(model, context, ids[:-half], model.prompt_chunk, last=half)
        one_by_one = read_logits(model, context, ids[-half:], 1, position=N_FAR - half)
    ours = np.concatenate([in_batch, one_by_one])
    distance = relative_l2(ours, gemma3_truth.far)
    print(f"beyond the window {distance.max():.1e}")
    assert distance.max() <= TOLERANCE
    assert mean_divergence(gemma3_truth.far, ours) <= DIVERGENCE
    second, first = np.sort(gemma3_truth.far, axis=1)[:, -2:].T
    sure = first - second > SURE
    assert sure.sum() > N_FAR_LAST / 2
    assert (ours.argmax(axis=1) == gemma3_truth.far.argmax(axis=1))[sure].all()
