"""Answers of the slow reference for the real models, computed once for all tests of the engine."""

from pathlib import Path

import pytest

from tests.helpers.truth import Truth, compute_truth


@pytest.fixture(scope="session")
def smollm2_truth(smollm2_path: Path) -> Truth:
    return compute_truth(smollm2_path, "smollm2-135m-instruct-q4_1.json", far=False)


@pytest.fixture(scope="session")
def gemma3_truth(gemma3_path: Path) -> Truth:
    return compute_truth(gemma3_path, "gemma-3-270m-q4_k_m.json", far=True)
