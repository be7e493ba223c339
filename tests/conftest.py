"""For every test: no real window, no folder of the person who runs it, no unnoticed error in the log.

Qt draws offscreen unless ``CAUSERIE_TEST_QT_PLATFORM`` names another platform; it must be said before the
first import of Qt, which pytest-qt makes early.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

os.environ["QT_QPA_PLATFORM"] = os.environ.get("CAUSERIE_TEST_QT_PLATFORM", "offscreen")
# Threads of the kernels that spin while they wait make a machine with other work many times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import hypothesis
import pytest

from tests.helpers import models

# A busy machine makes single examples slow; that is no fault of the code.
hypothesis.settings.register_profile(
    "causerie", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("causerie")

REAL_MODELS = frozenset({"smollm2_path", "gemma3_path"})


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "real_model: needs a real model file (set by its fixtures)")
    config.addinivalue_line("markers", "slow: takes more than some seconds; left out by `dev.py test --fast`")
    config.addinivalue_line("markers", "error_logs: the test provokes ERROR log lines")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if REAL_MODELS & set(getattr(item, "fixturenames", ())):
            item.add_marker("real_model")


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """SmolLM2-135M-Instruct Q4_1: llama family, byte-level BPE, with a chat template."""
    return models.fetch(models.SMOLLM2)


@pytest.fixture(scope="session")
def gemma3_path() -> Path:
    """Gemma-3-270M Q4_K_M: gemma3 family, SentencePiece vocabulary, no chat template."""
    return models.fetch(models.GEMMA3)


@pytest.fixture(autouse=True)
def causerie_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings, chats, models and logs of the app lie below this folder during the test."""
    home = tmp_path_factory.mktemp("causerie-home")
    monkeypatch.setenv("CAUSERIE_HOME", str(home))
    return home


@pytest.fixture(autouse=True)
def _no_unexpected_error_logs(
    request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> Iterator[None]:
    yield
    if request.node.get_closest_marker("error_logs"):
        return
    errors = [record for record in caplog.get_records("call") if record.levelno >= logging.ERROR]
    if errors:
        pytest.fail("the log holds errors: " + "; ".join(record.getMessage() for record in errors))
