"""The start of a second process, with a tiny model."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from app.measurements import cold_start
from app.measurements.cold_start import seconds_to_first_token
from engine.errors import CauserieError
from tests.helpers.tiny_model import write_tiny_model

FAKE = ["--backend", "fake"]


def test_it_is_part_of_the_time_that_the_process_takes(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf")
    started = time.perf_counter()
    seconds = seconds_to_first_token(path, FAKE)
    assert 0 < seconds < time.perf_counter() - started


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        ("none.gguf", FAKE, "none.gguf"),
        ("tiny.gguf", [*FAKE, "--threads", "0"], "threads must be between"),
        ("tiny.gguf", ["--backend", "nonsense"], "nonsense"),
    ],
)
def test_what_the_process_complains_about_is_told(
    tmp_path: Path, name: str, options: list[str], complaint: str
) -> None:
    write_tiny_model(tmp_path / "tiny.gguf")
    with pytest.raises(CauserieError) as caught:
        seconds_to_first_token(tmp_path / name, options)
    assert complaint in caught.value.advice
    assert "Traceback" not in caught.value.advice


def test_the_single_file_starts_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "causerie"
    program.write_text('#!/bin/sh\necho "$1" "$2" >&2\nexit 3\n')
    program.chmod(0o755)
    monkeypatch.setattr(cold_start, "is_frozen", lambda: True)
    monkeypatch.setattr(cold_start.sys, "executable", str(program))
    with pytest.raises(CauserieError) as caught:
        seconds_to_first_token(Path("a.gguf"), [])
    assert caught.value.advice == "complete a.gguf"
