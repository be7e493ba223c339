"""Prompt ids and texts of the two real models against llama.cpp's (tests/golden)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.gguf.reader import GGUFFile
from engine.tokenizers import StreamingDetokenizer, load_tokenizer

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.mark.parametrize(
    ("fixture", "name", "ends"),
    [
        ("smollm2_path", "smollm2-135m-instruct-q4_1", {0, 2}),
        ("gemma3_path", "gemma-3-270m-q4_k_m", {1, 106}),
    ],
)
def test_prompts_and_replies(request: pytest.FixtureRequest, fixture: str, name: str, ends: set[int]) -> None:
    with GGUFFile.open(request.getfixturevalue(fixture)) as file:
        tokenizer = load_tokenizer(file.metadata)
    assert tokenizer.warnings == ()
    assert tokenizer.eog_ids == ends
    cases: list[dict[str, Any]] = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    assert cases
    for case in cases:
        assert tokenizer.encode(case["prompt"], parse_special=True, add_special=True) == case["ids"]
        detokenizer = StreamingDetokenizer(tokenizer, continues_text=True)
        streamed = "".join(map(detokenizer.push, case["greedy"])) + detokenizer.finish()
        assert streamed == case["text"] == tokenizer.decode(case["greedy"], continues_text=True)
