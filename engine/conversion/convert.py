"""From the folder of a checkpoint to a model file: `convert_checkpoint`.

The order is the promise: an unsupported family is refused before any tensor is looked at, everything else
that can be refused before anything is written, and the finished file takes its name only when whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from engine.conversion.checkpoint import Checkpoint
from engine.conversion.config import Config
from engine.conversion.number_types import NumberType, common_type, type_of
from engine.conversion.registry import Family, family_of
from engine.conversion.tensors import ConvertedTensor
from engine.conversion.text_part import text_config, text_tensors
from engine.conversion.tokenizers import tokenizer_metadata
from engine.conversion.weights import Weights
from engine.errors import ModelFileError, UnsupportedModelError
from engine.gguf.file_types import FILE_TYPE_KEY, FILE_TYPE_NUMBERS
from engine.gguf.metadata import Metadata
from engine.gguf.values import infer_value
from engine.gguf.writer import Progress, StreamedTensor, write_gguf
from engine.graph.operations import BatchShape
from engine.inspection import EMBEDDING
from engine.models.description import describe
from engine.models.registry import plan_layers
from engine.tensor import Tensor

QUANTISATION_VERSION = 2
OUTPUT = "output.weight"
LONG_ROPE_FACTORS = frozenset({"rope_factors_long.weight", "rope_factors_short.weight"})
"""Of which a context uses one."""
NO_VOCABULARY = {"tokenizer.ggml.model": "no_vocab"}
"""What llama.cpp calls a model without one."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """What was written.  types: bytes of each type; notices: sentences a person should see."""

    path: Path
    architecture: str
    name: str
    n_tensors: int
    n_parameters: int
    n_tokens: int
    types: Mapping[str, int]
    file_bytes: int
    notices: tuple[str, ...]


def convert_checkpoint(
    folder: Path,
    target: Path,
    type: NumberType = "auto",
    *,
    vocabulary: bool = True,
    on_progress: Progress = lambda share: None,
) -> Conversion:
    """Writes target, replacing a file that is there.

    vocabulary: False writes a model without a tokenizer, for programs that give ids themselves.
    on_progress: called with the share written, 0 to 1; what it raises ends the conversion.

    Raises `UnsupportedModelError` for a family or variant that is not supported, `ModelFileError` for a
    damaged checkpoint, `TokenizerError` for its tokenizer, `ModelWriteError`, `SettingsError`.
    """
    checkpoint = Checkpoint.open(folder)
    family = family_of(checkpoint.config)
    config = text_config(checkpoint.config)
    _refuse_quantised(config, family)
    values = _general_metadata(folder, config, family)
    notices: list[str] = []
    with checkpoint.open_weights() as sources:
        own, n_left_out = text_tensors(sources)
        if n_left_out:
            notices.append(f"{n_left_out} tensors that see pictures were left out.")
        tensors = _in_order(_converted(family, config, Weights(own)))
        common = common_type((t for t in tensors if isinstance(t, ConvertedTensor)), type)
        streams = [
            tensor.stream(type_of(tensor, common)) if isinstance(tensor, ConvertedTensor) else tensor
            for tensor in tensors
        ]
        values[FILE_TYPE_KEY] = FILE_TYPE_NUMBERS[common.name]
        if config.get("tie_word_embeddings") is False and not any(s.name == OUTPUT for s in streams):
            notices.append("The checkpoint has no output matrix of its own: the embedding takes its place.")
        if vocabulary:
            n_rows = next((s.shape[0] for s in streams if s.name == EMBEDDING), 0)
            tokenizer, tokenizer_notices = tokenizer_metadata(folder, config, n_rows)
            values |= tokenizer
            notices += tokenizer_notices
        else:
            values |= NO_VOCABULARY
        _require_runnable(values, streams)
        write_gguf(target, values, streams, on_progress=on_progress)
    types: Counter[str] = Counter()
    for stream in streams:
        types[stream.type.name] += stream.nbytes
    return Conversion(
        path=target,
        architecture=family.ARCHITECTURE,
        name=str(values["general.name"]),
        n_tensors=len(streams),
        n_parameters=sum(prod(stream.shape) for stream in streams),
        n_tokens=len(tokens) if isinstance(tokens := values.get("tokenizer.ggml.tokens"), list) else 0,
        types=dict(types),
        file_bytes=target.stat().st_size,
        notices=tuple(notices),
    )


def _general_metadata(folder: Path, config: Config, family: Family) -> dict[str, object]:
    values: dict[str, object] = {
        "general.architecture": family.ARCHITECTURE,
        "general.type": "model",
        "general.name": folder.resolve().name,
        "general.quantization_version": QUANTISATION_VERSION,
    }
    own = {f"{family.ARCHITECTURE}.{key}": value for key, value in family.metadata(config).items()}
    return values | own


def _converted(
    family: Family, config: Config, weights: Weights
) -> Iterator[ConvertedTensor | StreamedTensor]:
    """The family's tensors; an output that is tied to the embedding is not written twice."""
    tied = config.flag("tie_word_embeddings", default=False)
    for tensor in family.tensors(config, weights):
        if not (tied and tensor.name == OUTPUT):
            yield tensor
    weights.require_all_used(family.ARCHITECTURE)


def _in_order(
    tensors: Iterator[ConvertedTensor | StreamedTensor],
) -> list[ConvertedTensor | StreamedTensor]:
    """The embedding and other tensors of the whole model, layer after layer, then the output."""

    def place(tensor: ConvertedTensor | StreamedTensor) -> tuple[int, int]:
        head, _, rest = tensor.name.partition(".")
        if head == "blk":
            return 1, int(rest.partition(".")[0])
        return (2, 0) if head.startswith("output") else (0, 0)

    return sorted(tensors, key=place)


def _refuse_quantised(config: Config, family: Family) -> None:
    quantised = config.part("quantization_config")
    if quantised is not None:
        method = quantised.text("quant_method", default="unknown")
        if (family.ARCHITECTURE, method) == ("gpt-oss", "mxfp4"):
            return
        raise UnsupportedModelError(
            f"The checkpoint is already quantised ({method}), which is not converted.",
            "Choose the checkpoint in F32, F16 or BF16.",
        )


def _require_runnable(values: Mapping[str, object], streams: list[StreamedTensor]) -> None:
    """Plans the model as loading would: a tensor that is missing or of another shape is told now.

    Raises `ModelFileError`, `UnsupportedModelError`, the latter also for tensors that our graph would ignore.
    """
    nothing = np.empty(0, np.uint8)
    tensors = {
        stream.name: Tensor(stream.name, stream.type, stream.shape, (0,) * len(stream.shape), nothing)
        for stream in streams
    }
    embedding = tensors.get(EMBEDDING)
    if embedding is None or len(embedding.shape) != 2:
        raise ModelFileError("The checkpoint has no embedding.")
    metadata = Metadata({key: infer_value(value) for key, value in values.items()}, "the converted file")
    description = describe(metadata, embedding.shape[0])
    plan = plan_layers(description, tensors, BatchShape(1, 1))
    ignored = [name for name in tensors if name not in plan.weights and name not in LONG_ROPE_FACTORS]
    if ignored:
        more = f" and {len(ignored) - 1} more" if len(ignored) > 1 else ""
        raise UnsupportedModelError(f"This variant uses {ignored[0]}{more}, which is not supported.")
