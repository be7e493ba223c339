"""The model that tests of quantising begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.tiny_model import write_tiny_model


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """F32, rows of 256 and 512: whole blocks of every type."""
    return write_tiny_model(tmp_path_factory.mktemp("source") / "source.gguf", width=256)
