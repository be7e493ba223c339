"""From a file to a model that can run: `load_model`.

The order is the promise: everything that can be refused is refused before any long work, and nothing is
allocated before the estimate is compared with the free memory.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from engine.backends.interface import Backend, CacheSpec, Context, LoadedWeights, MemoryEstimate, Progress
from engine.backends.registry import open_backend
from engine.chat_template import ChatTemplate
from engine.errors import OutOfMemoryError, TemplateError
from engine.gguf.metadata import Metadata
from engine.gguf.reader import GGUFFile
from engine.graph.operations import BatchShape
from engine.graph.plan import Plan
from engine.inspection import outline
from engine.kernels.pinning import pin_threads
from engine.memory import free_memory, readable_bytes
from engine.models.description import ModelDescription
from engine.models.registry import plan_layers
from engine.requests import LoadSettings
from engine.templates.choice import choose_template
from engine.tensor import Tensor
from engine.tokenizers import Tokenizer, load_tokenizer

PLANS_KEPT = 16
"""Plans of different batch shapes: one for writing, one for whole prompt chunks, some for their ends."""


@dataclass(eq=False)
class LoadedModel:
    """A model on its backend.  Sessions share it; `close` it after them.

    The file is closed; only weights that are not repacked are still read from its map.  ``notices`` are
    sentences a person should see, such as that the tokenizer is of an unknown kind.
    """

    path: Path
    description: ModelDescription
    tokenizer: Tokenizer
    template: ChatTemplate | None
    context_size: int
    prompt_chunk: int
    cache_spec: CacheSpec
    memory: MemoryEstimate
    notices: tuple[str, ...]
    backend: Backend
    weights: LoadedWeights
    tensors: Mapping[str, Tensor]

    def __post_init__(self) -> None:
        self._plans: OrderedDict[BatchShape, Plan] = OrderedDict()

    def plan_for(self, n_tokens: int, n_outputs: int) -> Plan:
        """The plan of a batch shape, made once and kept while it is among the last few used."""
        shape = BatchShape(n_tokens, n_outputs)
        plan = self._plans.get(shape)
        if plan is None:
            plan = self._plans[shape] = plan_layers(self.description, self.tensors, shape)
            if len(self._plans) > PLANS_KEPT:
                self._plans.popitem(last=False)
        self._plans.move_to_end(shape)
        return plan

    def new_context(self, n_sequences: int = 1) -> Context:
        """KV cache and scratch memory for so many conversations.  Raises `OutOfMemoryError`."""
        max_batch = max(self.cache_spec.max_batch, n_sequences)
        return self.weights.new_context(
            replace(self.cache_spec, n_sequences=n_sequences, max_batch=max_batch)
        )

    def close(self) -> None:
        """Frees weights and backend.  May be called twice."""
        self._plans.clear()
        self.weights.close()
        self.backend.close()


def load_model(
    path: str | os.PathLike[str],
    settings: LoadSettings | None = None,
    on_progress: Progress = lambda share: None,
) -> LoadedModel:
    """Opens, checks and loads a model file.

    on_progress is called with the share loaded, 0 to 1, and may raise `Cancelled`.  Raises `ModelFileError`,
    `UnsupportedModelError`, `TokenizerError`, `OutOfMemoryError`, `UnsupportedByBackendError`, `Cancelled`,
    `SettingsError` where threads cannot be pinned, and `TemplateError` where settings name no known template.
    """
    settings = settings or LoadSettings()
    if settings.pin_threads:
        pin_threads()
    backend = open_backend(settings.backend, settings.threads, settings.repack)
    try:
        with GGUFFile.open(path) as file:
            model = outline(file, settings)
            tokenizer = load_tokenizer(file.metadata)
            template, template_notices = _template_of(file.metadata, tokenizer, settings.template)
            backend.require_types(model.weights)
            backend.require_operations(model.plan)
            memory = model.memory_on(backend)
            require_memory(memory, model.context_size, free_memory())
            file.require_whole()
            weights = backend.load_weights(model.weights, on_progress)
            shapes = model.tensors_without_data()
    except BaseException:
        backend.close()
        raise
    return LoadedModel(
        path=Path(path),
        description=model.description,
        tokenizer=tokenizer,
        template=template,
        context_size=model.context_size,
        prompt_chunk=settings.prompt_chunk,
        cache_spec=model.cache_spec,
        memory=memory,
        notices=(*tokenizer.warnings, *template_notices, *model.notices),
        backend=backend,
        weights=weights,
        tensors=shapes,
    )


def _template_of(
    metadata: Metadata, tokenizer: Tokenizer, name: str
) -> tuple[ChatTemplate | None, tuple[str, ...]]:
    """The chat template; a refused one costs the chat, told in a notice, but not raw continuations."""
    choice = choose_template(metadata, name)
    told = (choice.reason,) if choice.origin == "family" and not name else ()
    try:
        return ChatTemplate.from_tokenizer(tokenizer, choice.source), told
    except TemplateError as error:
        return None, (f"{error.title} This model can continue raw prompts, but not chat.",)


def require_memory(memory: MemoryEstimate, context_size: int, free: int) -> None:
    """Raises `OutOfMemoryError` with the figures where the estimate exceeds the free bytes."""
    if memory.total > free:
        raise OutOfMemoryError(
            f"This model with a context of {context_size:,} tokens needs {readable_bytes(memory.total)} "
            f"of memory; {readable_bytes(free)} are free.",
            lacking=memory.total - free,
        )
