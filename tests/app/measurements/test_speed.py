"""What is timed: exactly the tokens asked for, behind exactly the depth asked for, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.measurements import speed
from app.measurements.speed import SpeedMeter, bytes_per_token
from engine.backends.interface import Batch, Context, ShouldStop
from engine.errors import ContextOverflowError
from engine.gguf.reader import GGUFFile
from engine.model import LoadedModel, load_model
from engine.requests import LoadSettings
from tests.helpers.tiny_model import write_tiny_model


class Recorder:
    """Stands between a session and its context, and notes the positions and outputs of each run."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.runs: list[tuple[list[int], int]] = []

    def run(self, plan: Any, batch: Batch, should_stop: ShouldStop | None = None) -> np.ndarray:
        self.runs.append((batch.positions.tolist(), len(batch.outputs)))
        return self.context.run(plan, batch, should_stop)

    def truncate(self, sequence: int, length: int) -> int:
        return self.context.truncate(sequence, length)

    def close(self) -> None:
        self.context.close()

    def take(self) -> list[tuple[list[int], int]]:
        runs, self.runs = self.runs, []
        return runs


def load(path: Path, **settings: Any) -> LoadedModel:
    return load_model(path, LoadSettings(backend="fake", **settings))


@pytest.fixture(params=["llama", "gemma3"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LoadedModel]:
    path = write_tiny_model(tmp_path / "tiny.gguf", request.param, sliding_window=16)
    with closing(load(path, context_size=128, prompt_chunk=32)) as model:
        yield model


@pytest.fixture
def recorder(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder(model.new_context())
    monkeypatch.setattr(model, "new_context", lambda: recorder)
    # The clock counts runs: what is "measured" is the number of runs between its two looks.
    monkeypatch.setattr(speed.time, "perf_counter", lambda: float(len(recorder.runs)))
    return recorder


@pytest.mark.parametrize("depth", [0, 5, 70])
def test_reading(model: LoadedModel, recorder: Recorder, depth: int) -> None:
    with closing(SpeedMeter(model)) as meter:
        for _ in range(3):
            runs = meter.read(40, depth)
            done = recorder.take()
            assert runs == 2  # a chunk of 32 and one of 8
            first, last = done[-2:]
            assert first == (list(range(depth, depth + 32)), 0)
            assert last == (list(range(depth + 32, depth + 40)), 1)


@pytest.mark.parametrize("depth", [0, 5, 70])
def test_writing(model: LoadedModel, recorder: Recorder, depth: int) -> None:
    start = max(depth, 1)
    with closing(SpeedMeter(model)) as meter:
        for _ in range(2):
            meter.read(40, depth)
            recorder.take()
            assert meter.write(6, depth) == 6
            assert recorder.take()[-6:] == [([start + index], 1) for index in range(6)]


def test_a_depth_is_filled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(load(write_tiny_model(tmp_path / "tiny.gguf"), context_size=128)) as model:
        recorder = Recorder(model.new_context())
        monkeypatch.setattr(model, "new_context", lambda: recorder)
        with closing(SpeedMeter(model)) as meter:
            meter.read(10, 70)
            recorder.take()
            meter.write(3, 70)
            meter.read(10, 70)
            read_again = sum(len(positions) for positions, _ in recorder.take())
    # The last of the 70 is read anew each time, for its logits.
    assert read_again == (1 + 3) + (1 + 10)


def test_what_does_not_fit_is_refused(model: LoadedModel) -> None:
    with closing(SpeedMeter(model)) as meter:
        with pytest.raises(ContextOverflowError):
            meter.read(100, 29)
        with pytest.raises(ContextOverflowError):
            meter.write(100, 29)
        assert meter.read(100, 28) > 0


@pytest.mark.parametrize("family", ["llama", "gemma3"])
@pytest.mark.parametrize("quant_type", ["Q4_0", "F16"])
def test_weights_read_per_token(tmp_path: Path, family: str, quant_type: str) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", family, quant_type=quant_type)
    with GGUFFile.open(path) as file:
        sizes = {name: tensor.nbytes for name, tensor in file.tensors.items()}
    if family == "llama":  # gemma3 uses the embedding as its output matrix too
        del sizes["token_embd.weight"]
    with closing(load(path)) as model:
        assert bytes_per_token(model) == sum(sizes.values())
