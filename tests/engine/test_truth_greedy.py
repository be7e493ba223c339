"""Prompt ids and greedy texts of the real models: golden files, the reference, and texts pinned here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest

from engine.generation import generate
from engine.model import LoadedModel, load_model
from engine.requests import CompletionRequest, Finished, LoadSettings, SamplingSettings
from engine.session import Session
from tests.helpers.truth import Truth, read_logits

SURE = 0.05
"""In log-probability: what lies further apart is no tie, and the engine has to choose like the reference."""

PINNED = {
    "smollm2": {
        "Water boils at": (
            " 100°C, which is a perfect Celsius.\n\nThe ratio of the heat released to the heat absorbed is "
            "1:1. This is a fundamental property of heat transfer, where heat is transferred from a hotter "
            "body"
        ),
        "Die Hauptstadt von Deutschland ist": (
            " der Bundesland der deutschen Morgenland, der der Bundruang der deutschen Morgenland, der der "
            "deutschen Morgenland, der der deutschen Morgenland, der"
        ),
        "Q: What is 2 + 2?\nA:": (" 2 + 2 = 4\nB: 2 + 2 = 4\nC: 2 + 2 = 4\nD: 2 + 2 = 4\nE: 2 + "),
    },
    "gemma3": {
        "The three primary colours are": (
            " red, yellow and blue.\n\nThe three primary colours are red, yellow and blue.\n\nThe three "
            "primary colours are red, yellow and blue.\n\nThe three primary colours are red, yellow and blue."
            "\n\nThe three primary colours are"
        ),
        "<|im_start|>user\nName three fruits.<|im_end|>\n<|im_start|>assistant\n": (
            "Name three fruits.<|im_end|>\n<|im_start|>user\nName three fruits.<|im_end|>\n<|im_start|>user\n"
            "Name three fruits.<|im_end|>\n<|"
        ),
        "Q: What is 2 + 2?\nA:": (" 2 + 2 = 4 + 2 = 6 + 2 = 10 + 2 = 14 + 2 = 18 + 2 = 22 + 2 = 2"),
    },
}
"""48 tokens each, as `reference_greedy` writes them; its runner-up is never nearer than 0.06, so that no
order of sums decides."""


@pytest.fixture(scope="module", params=["smollm2", "gemma3"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def model(name: str, request: pytest.FixtureRequest) -> Iterator[LoadedModel]:
    path = request.getfixturevalue(f"{name}_path")
    with closing(load_model(path, LoadSettings(context_size=256))) as model:
        yield model


@pytest.fixture(scope="module")
def truth(name: str, request: pytest.FixtureRequest) -> Truth:
    answers: Truth = request.getfixturevalue(f"{name}_truth")
    return answers


@pytest.mark.parametrize("which", range(3))
def test_pinned_texts(model: LoadedModel, name: str, which: int) -> None:
    prompt, text = list(PINNED[name].items())[which]
    ids = model.tokenizer.encode(prompt, parse_special=True, add_special=True)
    request = CompletionRequest(
        tuple(ids), SamplingSettings(temperature=0, repetition_penalty=1), max_tokens=48
    )
    with closing(Session(model)) as session:
        *_, finished = generate(session, request, lambda: False)
    assert isinstance(finished, Finished)
    assert finished.text == text
    assert (finished.reason, len(finished.ids)) == ("length", 48)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("which", range(6))
def test_golden_prompts(model: LoadedModel, truth: Truth, name: str, which: int) -> None:
    """Prompt ids are exact; along the golden continuation the engine takes what the reference takes.

    So it takes the golden id, except at ties and where the reference leaves it (test_golden_reference.py).
    """
    golden = truth.golden[which]
    ids, greedy = golden.case["ids"], golden.case["greedy"]
    assert model.tokenizer.encode(golden.case["prompt"], parse_special=True, add_special=True) == ids

    with closing(model.new_context()) as context:
        logits = read_logits(model, context, ids + greedy[:-1], model.prompt_chunk, last=len(greedy))
    ours = logits.argmax(axis=1)
    sure = golden.lead > SURE
    assert (ours == golden.best)[sure].all()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_most_steps_are_no_ties(truth: Truth) -> None:
    leads = np.concatenate([golden.lead for golden in truth.golden])
    assert (leads > SURE).mean() > 0.95
