"""The slow reference against texts and log-probabilities that llama.cpp computed from the two real models.

llama.cpp rounds activations to 8 bits before each product; the reference does not.  Rounding the
reference's own activations so moves its log-probabilities by as much as the golden ones differ (root mean
square 0.06 to 0.27 over the ten likeliest), and a change of 1e-6 before that rounding moves them as much
again, so nothing closer can be asked of numbers from the golden files.  The reference itself agrees with
`transformers` in float64 on these prompts to a relative 3e-6 (measured once; pinned for tiny models).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.slow_reference import ReferenceModel, log_softmax

GOLDEN = Path(__file__).parents[1] / "golden"

LARGEST_DIFFERENCE = 0.46
ROOT_MEAN_SQUARE = 0.29
NEAR_TIE = 0.29
"""In log-probability: what 8-bit rounding was seen to move."""

SMOLLM2_TIES = {
    0: [(5, 2988, 1797, 0.2198)],
    2: [(6, 466, 448, 0.0498)],
    4: [(2, 8355, 6643, 0.2828), (6, 216, 31338, 0.0090), (27, 40610, 9382, 0.1028), (29, 28, 40610, 0.0612)],
    5: [(22, 28, 284, 0.0645)],
}
GEMMA3_TIES = {
    0: [(15, 532, 236761, 0.0124)],
    1: [
        (3, 880, 2523, 0.0414),
        (9, 1401, 784, 0.0687),
        (12, 236761, 236764, 0.0312),
        (37, 1053, 964, 0.0125),
    ],
    4: [(29, 236881, 192, 0.0042)],
}
"""By prompt: where the golden text takes another id than the reference would, having read the golden text so
far: step, id of the reference, golden id, and how far its log-probability lies below the reference's."""


@pytest.fixture(scope="module")
def smollm2(smollm2_path: Path) -> Iterator[ReferenceModel]:
    yield ReferenceModel(smollm2_path)


@pytest.fixture(scope="module")
def gemma3(gemma3_path: Path) -> Iterator[ReferenceModel]:
    yield ReferenceModel(gemma3_path)


def compare(model: ReferenceModel, case: dict[str, Any], ties: list[tuple[int, int, int, float]]) -> None:
    model.forget()
    read = case["ids"] + case["greedy"][:-1]
    steps = log_softmax(model.forward(read))[len(case["ids"]) - 1 :]

    ids, golden = zip(*case["top10"], strict=True)
    difference = steps[0, list(ids)] - np.array(golden)
    assert np.abs(difference).max() <= LARGEST_DIFFERENCE
    assert np.sqrt(np.mean(difference**2)) <= ROOT_MEAN_SQUARE

    others = [
        (step, int(row.argmax()), golden_id, round(float(row.max() - row[golden_id]), 4))
        for step, (row, golden_id) in enumerate(zip(steps, case["greedy"], strict=True))
        if row.argmax() != golden_id
    ]
    assert [entry[:3] for entry in others] == [entry[:3] for entry in ties]
    np.testing.assert_allclose([entry[3] for entry in others], [entry[3] for entry in ties], atol=1e-4)
    assert all(gap <= NEAR_TIE for *_, gap in others)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("prompt", range(6))
def test_smollm2(smollm2: ReferenceModel, prompt: int) -> None:
    cases = json.loads((GOLDEN / "smollm2-135m-instruct-q4_1.json").read_text(encoding="utf-8"))
    compare(smollm2, cases[prompt], SMOLLM2_TIES.get(prompt, []))


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("prompt", range(6))
def test_gemma3(gemma3: ReferenceModel, prompt: int) -> None:
    cases = json.loads((GOLDEN / "gemma-3-270m-q4_k_m.json").read_text(encoding="utf-8"))
    compare(gemma3, cases[prompt], GEMMA3_TIES.get(prompt, []))
