"""A side: a process that follows the protocol, or says why it cannot."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from benchmarks.sides import Program, Side, causerie
from engine.model import load_model
from tests.helpers.tiny_model import write_tiny_model
from tests.helpers.truth import read_logits


def script(text: str) -> Program:
    return Program("script", (sys.executable, "-c", text))


def test_causerie_as_a_side(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf")
    with Side(causerie(), path, 128, 1) as side:
        assert 0 < side.load_to_first_token < side.start_to_first_token
        assert side.measure("read", 40) > 0
        assert side.measure("write", 3, 20) > 0
        assert side.peak_memory() > 1 << 20
        ids = [5, 6, 7, 8, 9]
        given = {chunk: side.logits(ids, chunk) for chunk in (5, 2)}
    with closing(load_model(path)) as model, closing(model.new_context()) as context:
        wanted = read_logits(model, context, ids, 1)
    for logits in given.values():
        np.testing.assert_allclose(logits, wanted, rtol=1e-3, atol=1e-3)


def test_the_level_is_chosen_by_the_environment(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf")
    with pytest.raises(RuntimeError, match="nonsense"):
        Side(causerie("nonsense"), path, 64, 1)


def test_settings_reach_the_program(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf")
    with Side(causerie(backend="fake"), path, 64, 1) as side:
        assert side.measure("write", 2) > 0
    with pytest.raises(RuntimeError, match="absent"):
        Side(causerie(backend="absent"), path, 64, 1)


@pytest.mark.parametrize("text", ["import sys; sys.exit('out of luck')", "raise ValueError('out of luck')"])
def test_a_program_that_fails_at_once(tmp_path: Path, text: str) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)script ended with status 1.*out of luck"):
        Side(script(text), tmp_path, 64, 1)


def test_a_program_that_fails_later(tmp_path: Path) -> None:
    text = (
        "import json, sys\n"
        "print(json.dumps({'load_to_first_token': 1.5, 'version': 'x'}), flush=True)\n"
        "sys.stdin.readline()\n"
        "sys.exit('tired')\n"
    )
    with Side(script(text), tmp_path, 64, 1) as side:
        assert side.load_to_first_token == 1.5
        with pytest.raises(RuntimeError, match="tired"):
            side.measure("read", 5)


def test_neither_program_inherits_how_the_threads_of_the_other_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    monkeypatch.setenv("GOMP_SPINCOUNT", "1")
    text = "import json, os; print(json.dumps({'load_to_first_token': 1, 'version': sorted(os.environ)}))"
    with Side(script(text), tmp_path, 64, 1) as side:
        assert "PATH" in side.version
        assert "OMP_WAIT_POLICY" not in side.version and "GOMP_SPINCOUNT" not in side.version
