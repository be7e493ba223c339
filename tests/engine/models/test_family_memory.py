"""The memory that is foretold for every family, and weights that stay in the file."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from engine.requests import KVKind, LoadSettings
from tests.helpers.family_fixtures import NAMES, converted_model, truth_of
from tests.helpers.truth import read_logits


@pytest.mark.parametrize("repack", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_a_context_holds_what_was_foretold(name: str, repack: bool, tmp_path: Path) -> None:
    """The largest batch and the smallest are run, with all their arenas, tables and scratch memory."""
    truth = truth_of(name)
    settings = LoadSettings(context_size=truth.context_size, repack=repack)
    with converted_model(name, tmp_path, settings) as model:
        assert model.weights.nbytes == model.memory.weights
        with closing(model.new_context()) as context:
            ids = (truth.ids * truth.context_size)[: truth.context_size]
            read_logits(model, context, ids, truth.context_size, last=1)
            context.truncate(0, 0)
            read_logits(model, context, ids[:9], 1)
            context.truncate(0, 0)
            read_logits(model, context, ids[:4], 4)
            held = context.nbytes
        foretold = model.memory.kv_cache + model.memory.arena
        assert 0.9 * foretold <= held <= foretold


@pytest.mark.parametrize("name", NAMES)
def test_weights_in_the_file_give_the_same_logits(name: str, tmp_path: Path) -> None:
    truth = truth_of(name)
    logits = []
    for repack in (True, False):
        settings = LoadSettings(context_size=truth.context_size, repack=repack)
        with converted_model(name, tmp_path, settings) as model, closing(model.new_context()) as context:
            parts = [read_logits(model, context, truth.ids[:30], 30)]
            parts += [read_logits(model, context, truth.ids[30:], 1, position=30)]
            logits.append(np.concatenate(parts))
    np.testing.assert_array_equal(*logits)


@pytest.mark.parametrize(("kind", "most"), [("f16", 0.02), ("q8", 0.2)])
@pytest.mark.parametrize("name", ["gemma2", "phi4-mini", "exaone4", "gpt-oss"])
def test_smaller_caches_are_near(name: str, kind: KVKind, most: float, tmp_path: Path) -> None:
    truth = truth_of(name)
    settings = LoadSettings(context_size=truth.context_size, kv=kind)
    with converted_model(name, tmp_path, settings) as model, closing(model.new_context()) as context:
        ours = read_logits(model, context, truth.ids, 64)
    difference = np.linalg.norm(ours - truth.logits, axis=-1) / np.linalg.norm(truth.logits, axis=-1)
    assert difference.max() < most
