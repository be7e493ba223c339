"""A model file checked and planned, but not loaded: for `load_model`, `info` and the model picker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from engine.backends.interface import CacheSpec
from engine.errors import ModelFileError
from engine.gguf.reader import GGUFFile
from engine.graph.operations import BatchShape
from engine.graph.plan import Plan
from engine.models.description import ModelDescription, describe
from engine.models.registry import cache_spec, family_of, plan_layers
from engine.requests import LoadSettings
from engine.tensor import Tensor

DEFAULT_CONTEXT = 4096
"""Where nobody asks for another: enough for a long chat, and small beside the weights."""

EMBEDDING = "token_embd.weight"


@dataclass(frozen=True)
class ModelOutline:
    """A checked model file: its description, the largest plan, the KV cache, and the tensors to load."""

    description: ModelDescription
    context_size: int
    cache_spec: CacheSpec
    plan: Plan
    tensors: Mapping[str, Tensor]

    @cached_property
    def weights(self) -> dict[str, Tensor]:
        """The tensors that the plan uses; a file may hold more."""
        return {name: self.tensors[name] for name in self.plan.weights}

    def tensors_without_data(self) -> dict[str, Tensor]:
        """Names, types and shapes only, which is all that planning needs once the file is closed."""
        nothing = np.empty(0, np.uint8)
        return {
            name: replace(tensor, data=nothing, offset=0, source=None)
            for name, tensor in self.tensors.items()
        }


def outline(file: GGUFFile, settings: LoadSettings) -> ModelOutline:
    """Checks everything that can be checked before loading.

    Raises `ModelFileError` (missing or misshapen tensors, bad hyper-parameters), `UnsupportedModelError`.
    """
    family_of(file.metadata.get_string("general.architecture"))
    if not file.tensors:
        raise ModelFileError(
            f"{file.path.name} holds a vocabulary only, no weights.",
            "Choose a complete model file; `causerie tokenize` works with this one.",
        )
    embedding = file.tensors.get(EMBEDDING)
    if embedding is None or len(embedding.shape) != 2:
        raise ModelFileError(f"The model file lacks the tensor {EMBEDDING}.")
    description = describe(file.metadata, embedding.shape[0])
    context_size = settings.context_size or min(description.context_length, DEFAULT_CONTEXT)
    max_batch = min(settings.prompt_chunk, context_size)
    spec = cache_spec(description, context_size, max_batch, kv=settings.kv)
    plan = plan_layers(description, file.tensors, BatchShape(max_batch, 1))
    return ModelOutline(description, context_size, spec, plan, file.tensors)
