"""How a program's logits are judged, on made-up ones; and that the reference is computed once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import accuracy
from benchmarks.accuracy import Accuracy, judge, reference


def logits(*probabilities: list[float]) -> np.ndarray:
    return np.log(np.array(probabilities)).astype(np.float32)


def test_the_same_distribution_whatever_the_offset() -> None:
    wanted = logits([0.5, 0.3, 0.2], [0.1, 0.1, 0.8])
    found = judge(wanted, wanted + np.float32(7))
    assert found.divergence == pytest.approx(0, abs=1e-6)
    assert (found.n_same, found.n_sure) == (2, 2)


def test_the_divergence_is_the_textbooks() -> None:
    found = judge(logits([0.5, 0.5], [0.25, 0.75]), logits([0.25, 0.75], [0.25, 0.75]))
    assert found.divergence == pytest.approx((0.5 * np.log(2) + 0.5 * np.log(2 / 3)) / 2, rel=1e-5)


def test_only_sure_positions_count() -> None:
    wanted = logits([0.49, 0.50, 0.01], [0.2, 0.7, 0.1], [0.2, 0.7, 0.1])
    given = logits([0.9, 0.09, 0.01], [0.7, 0.2, 0.1], [0.3, 0.6, 0.1])
    found = judge(wanted, given)
    assert found == Accuracy(found.divergence, n_same=1, n_sure=2)


def test_the_reference_is_computed_once_per_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computed = []

    def compute(path: Path, ids: list[int]) -> np.ndarray:
        computed.append(ids)
        return np.arange(len(ids) * 4, dtype=np.float64).reshape(len(ids), 4)

    monkeypatch.setattr(accuracy, "reference_logits", compute)
    monkeypatch.setattr(accuracy, "WORK", tmp_path / "work")
    for ids in ([1, 2], [1, 2], [1, 3]):
        assert reference("gemma", tmp_path, ids).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert computed == [[1, 2], [1, 3]]
