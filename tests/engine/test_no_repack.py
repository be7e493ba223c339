"""Whole models straight from the file: the same words, hardly any memory, and a file that is cut short."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from engine.errors import ModelFileError
from engine.model import LoadedModel, load_model
from engine.requests import LoadSettings
from engine.session import Session
from tests.helpers.tiny_model import write_tiny_model

IDS = [int(token) for token in np.random.default_rng(1).integers(3, 300, 40)]


def logits(model: LoadedModel) -> list[np.ndarray]:
    """After a prompt, and after each of some tokens."""
    with closing(Session(model)) as session:
        for _ in session.prefill(IDS, lambda: False):
            pass
        seen = [np.array(session.logits)]
        for token in IDS[:5]:
            session.decode(token)
            seen.append(np.array(session.logits))
        return seen


@pytest.mark.parametrize(
    ("family", "quant_type"), [("llama", "Q4_0"), ("gemma3", "Q4_K"), ("llama", "F32"), ("llama", "IQ2_XS")]
)
def test_the_same_logits(family: str, quant_type: str, tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", family, quant_type=quant_type)
    with closing(load_model(path)) as packed, closing(load_model(path, LoadSettings(repack=False))) as mapped:
        np.testing.assert_array_equal(logits(mapped), logits(packed))
        for model in (packed, mapped):
            assert model.memory.weights == model.weights.nbytes


def test_the_real_model(smollm2_path: Path) -> None:
    settings = LoadSettings(context_size=64, repack=False)
    with closing(load_model(smollm2_path, settings)) as mapped:
        assert mapped.weights.nbytes < 1e6, "only norms are copied"
        assert mapped.memory.weights == mapped.weights.nbytes
        assert mapped.memory.mapped > 90e6
        ours = logits(mapped)
    with closing(load_model(smollm2_path, LoadSettings(context_size=64))) as packed:
        np.testing.assert_array_equal(ours, logits(packed))


def test_a_file_cut_short_while_the_model_is_in_use(tmp_path: Path) -> None:
    """Touching what is missing would end the process; each run asks first."""
    path = write_tiny_model(tmp_path / "tiny.gguf", quant_type="Q8_0")
    with (
        closing(load_model(path, LoadSettings(repack=False))) as model,
        closing(Session(model)) as session,
    ):
        session.decode(5)
        os.truncate(path, path.stat().st_size // 2)
        with pytest.raises(ModelFileError, match="become shorter"):
            session.decode(6)


def test_a_file_deleted_while_the_model_is_in_use(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", quant_type="Q8_0")
    with closing(load_model(path)) as packed:
        wanted = logits(packed)
    with closing(load_model(path, LoadSettings(repack=False))) as model:
        if os.name == "posix":  # elsewhere a file in use cannot be deleted
            path.unlink()
        np.testing.assert_array_equal(logits(model), wanted)
