"""A model file checked and planned, but not loaded: for `load_model`, `info` and the model picker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from engine.backends.interface import Backend, CacheSpec, MemoryEstimate
from engine.errors import ModelFileError, SettingsError
from engine.gguf.metadata import Metadata
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
TOKENS_KEY = "tokenizer.ggml.tokens"

PROGRAM_BYTES = 50_000_000
"""Resident beside a model: Python, NumPy and the engine 43 MB, kernels 4 MB, what loading needs 3 MB.
Measured with Python 3.11 and NumPy 2.4 on Linux, without the window."""
TOKEN_BYTES = 240
"""Python's objects for a token of a vocabulary: two strings, and its places in lists and tables."""
MERGE_BYTES = 180
"""The same for a merge."""


@dataclass(frozen=True)
class ModelOutline:
    """A checked model file: its description, the largest plan, the KV cache, and the tensors to load."""

    description: ModelDescription
    context_size: int
    cache_spec: CacheSpec
    plan: Plan
    tensors: Mapping[str, Tensor]
    program_bytes: int

    @cached_property
    def weights(self) -> dict[str, Tensor]:
        """The tensors that the plan uses; a file may hold more."""
        return {name: self.tensors[name] for name in self.plan.weights}

    @property
    def notices(self) -> tuple[str, ...]:
        """Sentences that a person should see before using the model."""
        notices = []
        trained = self.description.context_length
        if self.context_size > trained:
            notices.append(
                f"This model was trained for {trained:,} tokens; "
                "what it writes beyond them may make no sense."
            )
        if unused := self.unused_tensors:
            more = f" and {len(unused) - 1} more tensors" if len(unused) > 1 else ""
            notices.append(
                f"The file holds {unused[0]}{more}, which nothing uses: it may be a variant that is not "
                "supported, and may write nonsense."
            )
        return tuple(notices)

    @property
    def unused_tensors(self) -> list[str]:
        """Those that look like a part of the model and are not in its plan."""
        return [name for name in self.tensors if name not in self.weights and not self._is_spare(name)]

    def _is_spare(self, name: str) -> bool:
        """Tables of rotations, which we compute, and layers beyond the last that guess ahead."""
        if name.startswith("rope_") or "attn_rot_embd" in name:
            return True
        layer = _layer_of(name)
        return layer >= self.description.n_layers and layer in self._guessing_layers

    @cached_property
    def _guessing_layers(self) -> set[int]:
        return {_layer_of(name) for name in self.tensors if ".nextn." in name}

    def memory_on(self, backend: Backend) -> MemoryEstimate:
        """What loading and running with a full context will take there."""
        estimate = backend.estimate_memory(self.weights, self.cache_spec, self.plan)
        return replace(estimate, program=self.program_bytes)

    def tensors_without_data(self) -> dict[str, Tensor]:
        """Names, types and shapes only, which is all that planning needs once the file is closed."""
        nothing = np.empty(0, np.uint8)
        return {
            name: replace(tensor, data=nothing, offset=0, source=None)
            for name, tensor in self.tensors.items()
        }


def _layer_of(name: str) -> int:
    """The layer that a tensor belongs to; -1 for none."""
    number = name.removeprefix("blk.").partition(".")[0]
    return int(number) if name.startswith("blk.") and number.isdecimal() else -1


def outline(file: GGUFFile, settings: LoadSettings) -> ModelOutline:
    """Checks everything that can be checked before loading.

    Raises `ModelFileError` (missing or misshapen tensors, bad hyper-parameters), `UnsupportedModelError`,
    `SettingsError` for a context that is longer than the positions a model has learned.
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
    n_rows = embedding.shape[0]
    n_tokens = file.metadata.length(TOKENS_KEY) if TOKENS_KEY in file.metadata else 0
    if n_tokens > n_rows:  # fewer are fine: rows beyond them only fill up the matrix
        raise ModelFileError(
            f"{file.path.name}: {TOKENS_KEY} lists {n_tokens} tokens, but {EMBEDDING} has {n_rows} rows."
        )
    description = describe(file.metadata, n_rows)
    context_size = settings.context_size or min(description.context_length, DEFAULT_CONTEXT)
    description = description.for_context(context_size)
    max_batch = min(settings.prompt_chunk, context_size)
    spec = cache_spec(description, context_size, max_batch, kv=settings.kv)
    plan = plan_layers(description, file.tensors, BatchShape(max_batch, 1))
    if "embed_positions" in plan.operations and context_size > description.context_length:
        raise SettingsError(
            f"A context of {context_size:,} tokens is not possible: this model has learned "
            f"{description.context_length:,} positions, and there are no others.",
            f"Choose a context size of at most {description.context_length}.",
        )
    return ModelOutline(description, context_size, spec, plan, file.tensors, program_bytes(file.metadata))


def program_bytes(metadata: Metadata) -> int:
    """Bytes that this process takes beside weights, KV cache and arena: the program and the vocabulary."""
    n_tokens, n_merges = (
        metadata.length(key) if key in metadata else 0 for key in (TOKENS_KEY, "tokenizer.ggml.merges")
    )
    return PROGRAM_BYTES + TOKEN_BYTES * n_tokens + MERGE_BYTES * n_merges
