"""What a model file is and needs, without loading it: for `info`, the model picker and `load_model`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from engine.backends.interface import CacheSpec, MemoryEstimate
from engine.backends.registry import backend_class
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
            name: replace(tensor, data=nothing, offset=0, read=None) for name, tensor in self.tensors.items()
        }


@dataclass(frozen=True, slots=True)
class ModelInspection:
    """Facts about a file for people. types: how many weights (numbers) are of each tensor type."""

    path: Path
    file_bytes: int
    description: ModelDescription
    n_parameters: int
    types: Mapping[str, int]
    main_type: str
    context_size: int
    tokenizer_kind: str
    tokenizer_rules: str
    has_template: bool
    memory: MemoryEstimate
    plan: Plan


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
    spec = cache_spec(description, context_size, max_batch)
    plan = plan_layers(description, file.tensors, BatchShape(max_batch, 1))
    return ModelOutline(description, context_size, spec, plan, file.tensors)


def inspect_model(path: str | os.PathLike[str], settings: LoadSettings | None = None) -> ModelInspection:
    """Reads the header of a file and estimates the memory it needs; loads nothing.

    Raises what `outline` raises, and `ModelFileError` for a file that is no GGUF.
    """
    settings = settings or LoadSettings()
    with GGUFFile.open(path) as file:
        model = outline(file, settings)
        backend = backend_class(settings.backend)(settings.threads)
        memory = backend.estimate_memory(model.weights, model.cache_spec, model.plan)
        backend.close()
        types: Counter[str] = Counter()
        for tensor in file.tensors.values():
            types[tensor.type.name] += tensor.n_elements
        return ModelInspection(
            path=Path(path),
            file_bytes=file.size,
            description=model.description,
            n_parameters=sum(types.values()),
            types=dict(types.most_common()),
            main_type=_main_type(file),
            context_size=model.context_size,
            tokenizer_kind=file.metadata.get_string("tokenizer.ggml.model", "none"),
            tokenizer_rules=file.metadata.get_string("tokenizer.ggml.pre", "none"),
            has_template="tokenizer.chat_template" in file.metadata,
            memory=memory,
            plan=model.plan,
        )


def _main_type(file: GGUFFile) -> str:
    """The type of most weights of the layers; embeddings of small models would outvote them."""
    types: Counter[str] = Counter()
    for name, tensor in file.tensors.items():
        if name.startswith("blk."):
            types[tensor.type.name] += tensor.n_elements
    return types.most_common(1)[0][0] if types else "none"
