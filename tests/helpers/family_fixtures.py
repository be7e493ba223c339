"""The tiny models of tests/fixtures/families (made by tools/make_family_fixtures.py), converted and loaded.

They have no vocabulary: ids go in, logits come out, through the same planning and the same backend as ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from engine.backends.registry import open_backend
from engine.conversion import convert_checkpoint
from engine.gguf.reader import GGUFFile
from engine.inspection import outline
from engine.model import LoadedModel
from engine.requests import LoadSettings
from engine.tokenizers import Tokenizer

FOLDER = Path(__file__).parents[1] / "fixtures/families"
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/truth.npz"))


@dataclass(frozen=True)
class FamilyTruth:
    """ids: the prompt; logits: float32[n, vocabulary], after each id, as `transformers` computes them in
    float64; context_size: what to load the model with."""

    ids: list[int]
    logits: NDArray[np.float32]
    context_size: int


def truth_of(name: str) -> FamilyTruth:
    with np.load(FOLDER / name / "truth.npz") as truth:
        return FamilyTruth(
            [int(token) for token in truth["ids"]], truth["logits"], int(truth["context_size"])
        )


@contextmanager
def converted_model(name: str, folder: Path, settings: LoadSettings) -> Iterator[LoadedModel]:
    """The fixture in F32, on the cpu backend."""
    path = folder / f"{name}.gguf"
    convert_checkpoint(FOLDER / name, path, "f32", vocabulary=False)
    with closing(load_without_vocabulary(path, settings)) as model:
        yield model


def load_without_vocabulary(path: Path, settings: LoadSettings) -> LoadedModel:
    """As `load_model`, without tokenizer and template: what needs these fails."""
    backend = open_backend(settings.backend, settings.threads, settings.repack)
    with GGUFFile.open(path) as file:
        model = outline(file, settings)
        backend.require_types(model.weights)
        backend.require_operations(model.plan)
        return LoadedModel(
            path=path,
            description=model.description,
            tokenizer=cast(Tokenizer, None),
            template=None,
            context_size=model.context_size,
            prompt_chunk=settings.prompt_chunk,
            cache_spec=model.cache_spec,
            memory=model.memory_on(backend),
            notices=(),
            backend=backend,
            weights=backend.load_weights(model.weights, lambda share: None),
            tensors=model.tensors_without_data(),
        )
