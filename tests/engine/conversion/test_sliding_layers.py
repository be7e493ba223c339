"""Which layers see only a window, as a configuration lists them, is what the model file says, for every list:
a list that a converter does not write would leave the reader with the usual pattern of the architecture.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from engine.conversion import convert_checkpoint
from engine.gguf.reader import GGUFFile
from engine.models.description import describe
from tests.helpers.checkpoints import changed_checkpoint

WINDOW = 9
KINDS = ("full_attention", "sliding_attention")

FIXTURES = {
    "exaone4": 5,
    "gemma2": 4,
    "gpt-oss": 4,
    "ministral": 3,
    "olmo3": 4,
    "qwen2": 2,
    "qwen3": 2,
}
"""Those of families that take any list, and how many layers they have."""


@pytest.mark.parametrize("fixture", FIXTURES)
def test_any_list_of_layers(fixture: str, tmp_path: Path) -> None:
    for number, kinds in enumerate(product(KINDS, repeat=FIXTURES[fixture])):
        config = {"layer_types": list(kinds), "sliding_window": WINDOW, "use_sliding_window": True}
        folder = changed_checkpoint(fixture, tmp_path / str(number), config)
        convert_checkpoint(folder, tmp_path / "model.gguf", "f32", vocabulary=False)
        with GGUFFile.open(tmp_path / "model.gguf") as file:
            description = describe(file.metadata, 67)
        windows = [description.window(layer) for layer in range(len(kinds))]
        assert windows == [WINDOW if kind == "sliding_attention" else 0 for kind in kinds]
        assert description.sliding_window == WINDOW  # exaone4 rotates by whether there is one at all
