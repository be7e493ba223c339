"""Loading: what is told, and what is refused before any long work."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import OutOfMemoryError
from engine.model import load_model
from engine.requests import LoadSettings
from tests.helpers.tiny_model import write_tiny_model


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    write_tiny_model(path, context_length=64)
    return path


@pytest.mark.parametrize(("context_size", "told"), [(64, False), (65, True)])
def test_a_context_beyond_the_training_is_allowed_and_told(path: Path, context_size: int, told: bool) -> None:
    model = load_model(path, LoadSettings(context_size=context_size))
    assert any("trained for 64 tokens" in notice for notice in model.notices) == told
    model.close()


def test_a_refused_template_costs_the_chat_and_is_told(tmp_path: Path) -> None:
    path = tmp_path / "hostile.gguf"
    template = "{{ lipsum.__globals__['os'] }}{% include 'x' %}"
    write_tiny_model(path, metadata={"tokenizer.chat_template": template})
    model = load_model(path)
    assert model.template is None
    assert any("not chat" in notice for notice in model.notices)
    model.close()


def test_an_absurd_context_is_refused_before_anything_is_loaded(path: Path) -> None:
    shares: list[float] = []
    with pytest.raises(OutOfMemoryError, match=r"1,000,000,000,000 tokens needs .* free"):
        load_model(path, LoadSettings(context_size=10**12), shares.append)
    assert shares == []


def test_the_file_is_not_needed_after_loading(path: Path) -> None:
    model = load_model(path)
    path.write_bytes(b"")
    context = model.new_context()
    context.close()
    model.close()
