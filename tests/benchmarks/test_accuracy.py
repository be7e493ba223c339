"""How a program's logits are judged, on made-up ones; and that the reference is computed once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import accuracy
from benchmarks.accuracy import Accuracy, judge, reference
from tests.helpers.tiny_model import write_tiny_model


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


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two made-up programs on tiny models: one gives the reference's logits, the other their opposites."""

    class FakeSide:
        def __init__(self, program: str, path: Path, context: int, threads: int) -> None:
            self.sign = {"right": 1, "wrong": -1}[program]

        def logits(self, ids: list[int], chunk: int) -> np.ndarray:
            return self.sign * made_up(tmp_path, ids)

        def __enter__(self) -> FakeSide:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    def made_up(path: Path, ids: list[int]) -> np.ndarray:
        return np.outer(np.ones(len(ids)), np.arange(5)).astype(np.float32)

    path = write_tiny_model(tmp_path / "tiny.gguf")
    sections: list[str] = []
    monkeypatch.setattr(accuracy, "file_path", lambda file: path)
    monkeypatch.setattr(accuracy, "WORK", tmp_path)
    monkeypatch.setattr(accuracy, "reference_logits", made_up)
    monkeypatch.setattr(accuracy, "Side", FakeSide)
    monkeypatch.setattr(accuracy, "variants", lambda: {"good": "right", "bad": "wrong"})
    monkeypatch.setattr(accuracy, "write_section", lambda name, text: sections.append(f"{name}: {text}"))
    return sections


def test_the_table(written: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["accuracy"])
    assert accuracy.main() == 0
    [section] = written
    assert section.startswith("accuracy: ## Accuracy")
    assert section.count("| good | 0.0e+00 | 200 of 200 | one by one |") == 2
    assert section.count("| 0 of 200 |") == 4


def test_a_single_file_is_only_printed(
    written: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["accuracy", "--files", "gemma"])
    assert accuracy.main() == 0
    assert written == []
    assert capsys.readouterr().out.count("Gemma") == 4
    monkeypatch.setattr("sys.argv", ["accuracy", "--files", "q4_0"])
    with pytest.raises(SystemExit):
        accuracy.main()
