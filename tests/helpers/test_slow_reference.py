"""The reference is held to numbers of an independent implementation, and agrees with itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.helpers.slow_reference import ReferenceModel, reference_greedy, reference_logits
from tests.helpers.tiny_model import write_tiny_model

IDS = [1, *range(40, 76), 7, 200, 299, 299, 5]

TRANSFORMERS = {
    "llama": (
        [-0.5409, -6.66492, -1.64999, 1.96434, 0.96025, 0.89509],
        [-2.13843, 2.64127, 0.01859],
        [66.99685, 75.03058, 69.69954],
    ),
    "gemma3": (
        [-1.65507, 1.32197, -1.38073, -1.13833, -1.79702, 2.51671],
        [-3.06206, 1.26014, 0.67364],
        [31.04574, 30.94738, 32.5037],
    ),
}
"""Of `transformers` 5.24 (eager attention, float64) with the weights of the tiny models: logits 0 to 5 after
the last id, logits 100 to 102 after the 21st, and the lengths of the logits after first, 21st and last."""


@pytest.mark.parametrize("family", TRANSFORMERS)
def test_logits_of_transformers(tmp_path: Path, family: str) -> None:
    logits = reference_logits(write_tiny_model(tmp_path / "tiny.gguf", family), IDS)
    last, middle, lengths = TRANSFORMERS[family]
    assert logits.shape == (len(IDS), 300) and logits.dtype == np.float64
    np.testing.assert_allclose(logits[-1, :6], last, atol=2e-5)
    np.testing.assert_allclose(logits[20, 100:103], middle, atol=2e-5)
    np.testing.assert_allclose(np.linalg.norm(logits[[0, 20, -1]], axis=1), lengths, atol=1e-4)


@pytest.mark.parametrize("family", ["llama", "gemma3"])
def test_reading_in_pieces_changes_nothing(tmp_path: Path, family: str) -> None:
    model = ReferenceModel(write_tiny_model(tmp_path / "tiny.gguf", family))
    at_once = model.forward(IDS)
    model.forget()
    in_pieces = np.concatenate([model.forward(IDS[:1]), model.forward(IDS[1:30]), model.forward(IDS[30:])])
    np.testing.assert_allclose(in_pieces, at_once, atol=1e-10)


def test_sliding_window_forgets(tmp_path: Path) -> None:
    """An id further back than all windows together reaches the end only through the global layer."""
    path = write_tiny_model(tmp_path / "local.gguf", "gemma3", n_layers=5, sliding_window=4)
    changed = [1, 99, *IDS[2:]]
    reach = 5 * (4 - 1)
    first, second = reference_logits(path, IDS), reference_logits(path, changed)
    np.testing.assert_array_equal(first[1 + reach + 1 :], second[1 + reach + 1 :])
    assert np.abs(first[1 + reach] - second[1 + reach]).max() > 0
    path = write_tiny_model(tmp_path / "global.gguf", "gemma3", n_layers=6, sliding_window=4)
    assert np.abs(reference_logits(path, IDS)[-1] - reference_logits(path, changed)[-1]).max() > 1e-6


def test_half_precision_cache_rounds_a_little(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf")
    exact = reference_logits(path, IDS)
    rounded = reference_logits(path, IDS, round_kv_to_half=True)
    assert 0 < np.linalg.norm(rounded - exact) / np.linalg.norm(exact) < 1e-2


def test_rope_factors_slow_the_turning(tmp_path: Path) -> None:
    plain = reference_logits(write_tiny_model(tmp_path / "plain.gguf"), IDS)
    path = write_tiny_model(tmp_path / "factors.gguf", rope_factors=True)
    stretched = reference_logits(path, IDS)
    np.testing.assert_allclose(stretched[0], plain[0])
    assert np.abs(stretched[1:] - plain[1:]).max() > 0.1


def test_greedy_is_the_likeliest(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf")
    choices = reference_greedy(path, IDS, 8)
    logits = reference_logits(path, IDS + [choice.id for choice in choices])[len(IDS) - 1 : -1]
    assert [choice.id for choice in choices] == logits.argmax(axis=1).tolist()
    ordered = np.sort(logits, axis=1)
    gaps = [choice.gap for choice in choices]
    np.testing.assert_allclose(gaps, ordered[:, -1] - ordered[:, -2], atol=1e-10)
