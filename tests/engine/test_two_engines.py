"""Two engines in one process, each in its own thread: as if each were alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from engine.model import LoadedModel, load_model
from engine.requests import LoadSettings
from engine.session import Session
from tests.helpers.tiny_model import write_tiny_model

PROMPTS = [[int(token) for token in np.random.default_rng(seed).integers(3, 300, 90)] for seed in range(3)]
N_WRITTEN = 40


def reply(model: LoadedModel, prompt: list[int], started: Callable[[], object]) -> np.ndarray:
    """float32[N_WRITTEN + 1, vocabulary]: logits after the prompt and after each greedy token."""
    with closing(Session(model)) as session:
        started()
        for _ in session.prefill(prompt, lambda: False):
            pass
        seen = [np.array(session.logits)]
        for _ in range(N_WRITTEN):
            session.decode(int(np.argmax(seen[-1])))
            seen.append(np.array(session.logits))
        return np.array(seen)


def at_the_same_time(models: list[LoadedModel]) -> list[np.ndarray]:
    """The replies of the models to one prompt each, written in threads that begin together."""
    barrier = threading.Barrier(len(models), timeout=60)
    replies: dict[int, np.ndarray] = {}

    def work(index: int) -> None:
        replies[index] = reply(models[index], PROMPTS[index], barrier.wait)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(models))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [replies[index] for index in range(len(models))]


@pytest.mark.parametrize("repack", [True, False])
def test_two_models_at_the_same_time(repack: bool, tmp_path: Path) -> None:
    llama = write_tiny_model(tmp_path / "llama.gguf", "llama", quant_type="Q4_0")
    gemma = write_tiny_model(tmp_path / "gemma.gguf", "gemma3", quant_type="Q8_0")
    settings = LoadSettings(threads=2, repack=repack)
    with closing(load_model(llama, settings)) as first, closing(load_model(gemma, settings)) as second:
        models = [first, second]
        alone = [reply(model, prompt, lambda: None) for model, prompt in zip(models, PROMPTS, strict=False)]
        for _ in range(3):
            for ours, wanted in zip(at_the_same_time(models), alone, strict=True):
                np.testing.assert_array_equal(ours, wanted)


def test_three_sessions_of_one_model(tmp_path: Path) -> None:
    """They share weights, and nothing else."""
    path = write_tiny_model(tmp_path / "llama.gguf", "llama", quant_type="Q4_1")
    with closing(load_model(path, LoadSettings(threads=2))) as model:
        alone = [reply(model, prompt, lambda: None) for prompt in PROMPTS]
        for ours, wanted in zip(at_the_same_time([model] * 3), alone, strict=True):
            np.testing.assert_array_equal(ours, wanted)


def test_one_loads_while_another_writes(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "llama.gguf", "llama", quant_type="Q5_0")
    with closing(load_model(path, LoadSettings(threads=2))) as model:
        wanted = reply(model, PROMPTS[0], lambda: None)
        done = threading.Event()
        counts: list[int] = []

        def load_again_and_again() -> None:
            count = 0
            while not done.is_set() or count == 0:
                with closing(load_model(path, LoadSettings(threads=2))) as other:
                    assert other.weights.nbytes == model.weights.nbytes
                count += 1
            counts.append(count)

        loading = threading.Thread(target=load_again_and_again)
        loading.start()
        try:
            ours = reply(model, PROMPTS[0], lambda: None)
        finally:
            done.set()
            loading.join()
        assert counts and counts[0] >= 1
        np.testing.assert_array_equal(ours, wanted)
