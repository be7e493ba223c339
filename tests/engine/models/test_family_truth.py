"""Every family against `transformers`: tiny random models, converted by our converter, on the cpu backend.

A folder of tests/fixtures/families is a test of its own; a family without a converter or a graph fails here.
The caches keep float32, so that nothing but sums of float32 may differ from the truth in float64.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest

from engine.model import LoadedModel
from engine.requests import LoadSettings
from tests.helpers.family_fixtures import FOLDER, NAMES, FamilyTruth, converted_model, truth_of
from tests.helpers.truth import read_logits, relative_l2

TOLERANCE = 1e-4
"""Relative L2 at any position."""

FAMILIES = """
command-r cohere2 exaone4 falcon gemma gemma2 gemma3 gpt-oss gpt2 gptneox granite granitemoe llama ministral
ministral3 mistral mixtral olmo2 olmoe phi2 phi3 phi4-mini qwen2 qwen2moe qwen3 qwen3moe smollm3
stablelm starcoder2
"""
"""What the folder has to have at least."""

N_KEPT = 27
"""Tokens left after truncation: inside the prompt, and no multiple of anything."""


def test_every_family_has_a_fixture() -> None:
    assert set(FAMILIES.split()) <= set(NAMES)


def test_fixtures_stay_small() -> None:
    sizes = {name: sum(path.stat().st_size for path in (FOLDER / name).iterdir()) for name in NAMES}
    assert max(sizes.values()) <= 300_000
    assert sum(sizes.values()) <= 10_000_000


def test_every_fixture_was_given_to_llama_cpp() -> None:
    """Where it computes something else, the note says why (benchmarks/families.py)."""
    results = json.loads((FOLDER / "llama_cpp.json").read_text(encoding="utf-8"))["families"]
    assert set(results) == set(NAMES)
    for name, result in results.items():
        agrees = result["difference"] is not None and result["difference"] <= 5e-3
        assert agrees != bool(result["note"]), name


@pytest.fixture(scope="module", params=NAMES)
def family(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[LoadedModel, FamilyTruth]]:
    name = request.param
    truth = truth_of(name)
    settings = LoadSettings(context_size=truth.context_size, kv="f32")
    with converted_model(name, tmp_path_factory.mktemp("converted"), settings) as model:
        yield model, truth


@pytest.mark.parametrize("chunk", [64, 7, 1])
def test_logits_at_every_position(family: tuple[LoadedModel, FamilyTruth], chunk: int) -> None:
    """The whole prompt at once, a few tokens at a time, and token by token."""
    model, truth = family
    with closing(model.new_context()) as context:
        ours = read_logits(model, context, truth.ids, chunk)
    assert relative_l2(ours, truth.logits).max() <= TOLERANCE


@pytest.mark.parametrize("chunk", [64, 1])
def test_logits_after_truncation(family: tuple[LoadedModel, FamilyTruth], chunk: int) -> None:
    """Other tokens than the prompt's are read, taken back, and leave no trace."""
    model, truth = family
    others = [
        int(token) for token in np.random.default_rng(3).integers(3, model.description.n_vocabulary, 13)
    ]
    with closing(model.new_context()) as context:
        read_logits(model, context, truth.ids[:N_KEPT] + others, chunk)
        kept = context.truncate(0, N_KEPT)
        assert kept <= N_KEPT
        ours = read_logits(model, context, truth.ids[kept:], chunk, position=kept)
    assert relative_l2(ours, truth.logits[kept:]).max() <= TOLERANCE


def test_another_model_is_told_apart(family: tuple[LoadedModel, FamilyTruth]) -> None:
    """The tolerance means something: the same ids in another order differ by hundreds of it."""
    model, truth = family
    with closing(model.new_context()) as context:
        ours = read_logits(model, context, [*truth.ids[9::-1], *truth.ids[10:]], 64)
    assert relative_l2(ours, truth.logits)[10:].max() > 300 * TOLERANCE
