"""Finds the family of a checkpoint by its configuration.

To add a family: one module beside this one with ARCHITECTURE, `metadata` and `tensors` (see `Family`; `llama`
is an example), and a line in FAMILIES for each class name that its checkpoints carry.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Protocol, cast

from engine.conversion import (
    cohere2,
    command_r,
    exaone4,
    falcon,
    gemma,
    gemma2,
    gemma3,
    gpt2,
    gpt_oss,
    gptneox,
    granite,
    granitemoe,
    llama,
    ministral3,
    mistral,
    mixtral,
    olmo2,
    olmoe,
    phi2,
    phi3,
    qwen2,
    qwen2moe,
    qwen3,
    qwen3moe,
    smollm3,
    stablelm,
    starcoder2,
)
from engine.conversion.config import Config
from engine.conversion.tensors import ConvertedTensor
from engine.conversion.text_part import text_config
from engine.conversion.weights import Weights
from engine.errors import UnsupportedModelError
from engine.gguf.writer import StreamedTensor
from engine.models.no_writers import CHOOSE_A_CHAT_MODEL, ENCODER


class Family(Protocol):
    """What a family module offers.

    ARCHITECTURE: ``general.architecture`` of the model file.
    metadata: values as `write_gguf` takes them, by keys without the architecture before them.
    tensors: every tensor of the model file; it takes from the weights what it knows.

    Both raise `ModelFileError` for a damaged checkpoint and `UnsupportedModelError` for a variant that the
    architecture or our graph of it cannot express.
    """

    ARCHITECTURE: str

    def metadata(self, config: Config) -> dict[str, object]: ...

    def tensors(self, config: Config, weights: Weights) -> Iterator[ConvertedTensor | StreamedTensor]: ...


FAMILIES: Mapping[str, Family] = {
    "Cohere2ForCausalLM": cast(Family, cohere2),
    "CohereForCausalLM": cast(Family, command_r),
    "Exaone4ForCausalLM": cast(Family, exaone4),
    "FalconForCausalLM": cast(Family, falcon),
    "GPT2LMHeadModel": cast(Family, gpt2),
    "GPTNeoXForCausalLM": cast(Family, gptneox),
    "Gemma2ForCausalLM": cast(Family, gemma2),
    "Gemma3ForCausalLM": cast(Family, gemma3),
    "GemmaForCausalLM": cast(Family, gemma),
    "GptOssForCausalLM": cast(Family, gpt_oss),
    "GraniteForCausalLM": cast(Family, granite),
    "GraniteMoeForCausalLM": cast(Family, granitemoe),
    "GraniteMoeSharedForCausalLM": cast(Family, granitemoe),
    "LLaMAForCausalLM": cast(Family, llama),
    "LlamaForCausalLM": cast(Family, llama),
    "Ministral3ForCausalLM": cast(Family, ministral3),
    "MinistralForCausalLM": cast(Family, mistral),
    "MistralForCausalLM": cast(Family, mistral),
    "MixtralForCausalLM": cast(Family, mixtral),
    "Olmo2ForCausalLM": cast(Family, olmo2),
    "Olmo3ForCausalLM": cast(Family, olmo2),
    "OlmoeForCausalLM": cast(Family, olmoe),
    "Phi3ForCausalLM": cast(Family, phi3),
    "PhiForCausalLM": cast(Family, phi2),
    "Qwen2ForCausalLM": cast(Family, qwen2),
    "Qwen2MoeForCausalLM": cast(Family, qwen2moe),
    "Qwen3ForCausalLM": cast(Family, qwen3),
    "Qwen3MoeForCausalLM": cast(Family, qwen3moe),
    "RWForCausalLM": cast(Family, falcon),
    "SmolLM3ForCausalLM": cast(Family, smollm3),
    "StableLMEpochForCausalLM": cast(Family, stablelm),
    "StableLmForCausalLM": cast(Family, stablelm),
    "Starcoder2ForCausalLM": cast(Family, starcoder2),
}
"""By the class names in ``architectures``."""

CAUSAL = "ForCausalLM"
ENCODERS = ("Bert", "BERT", "Deberta", "Electra", "MPNet", "Roberta", "T5Encoder")
"""Parts of the class names of encoders."""
WITH_PICTURES = frozenset({"Gemma3ForConditionalGeneration", "Mistral3ForConditionalGeneration"})
"""Class names of checkpoints whose language model is converted and whose other parts are left out."""

MODEL_TYPES = {
    "cohere": "CohereForCausalLM",
    "cohere2": "Cohere2ForCausalLM",
    "exaone4": "Exaone4ForCausalLM",
    "falcon": "FalconForCausalLM",
    "gemma": "GemmaForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "gemma3_text": "Gemma3ForCausalLM",
    "gpt2": "GPT2LMHeadModel",
    "gpt_neox": "GPTNeoXForCausalLM",
    "gpt_oss": "GptOssForCausalLM",
    "granite": "GraniteForCausalLM",
    "granitemoe": "GraniteMoeForCausalLM",
    "granitemoeshared": "GraniteMoeSharedForCausalLM",
    "llama": "LlamaForCausalLM",
    "ministral": "MinistralForCausalLM",
    "ministral3": "Ministral3ForCausalLM",
    "mistral": "MistralForCausalLM",
    "mixtral": "MixtralForCausalLM",
    "olmo2": "Olmo2ForCausalLM",
    "olmo3": "Olmo3ForCausalLM",
    "olmoe": "OlmoeForCausalLM",
    "phi": "PhiForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen2_moe": "Qwen2MoeForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "smollm3": "SmolLM3ForCausalLM",
    "stablelm": "StableLmForCausalLM",
    "starcoder2": "Starcoder2ForCausalLM",
}
"""Class names by ``model_type``: for a configuration without ``architectures``, and for the text part of a
model that also sees pictures."""


def family_of(config: Config) -> Family:
    """config: as it stands in the file.

    Raises `UnsupportedModelError` naming the kind of checkpoint and the nearest that are supported, or saying
    that it is an encoder.
    """
    name = class_name(config)
    family = FAMILIES.get(name)
    if family is None and any(part in name for part in ENCODERS):
        raise UnsupportedModelError(f"A checkpoint of the kind {name[:100]!r} {ENCODER}", CHOOSE_A_CHAT_MODEL)
    if family is None:
        kinds = sorted({known.removesuffix(CAUSAL) for known in FAMILIES})
        near = difflib.get_close_matches(name.partition("For")[0], kinds, n=3, cutoff=0.5)
        raise UnsupportedModelError(
            f"Checkpoints of the kind {name[:100]!r} are not supported.",
            f"The nearest that are: {', '.join(near or kinds)}.",
        )
    return family


def class_name(config: Config) -> str:
    """The first of ``architectures``, else what ``model_type`` stands for."""
    names = config.items("architectures")
    if names and isinstance(names[0], str) and names[0] not in WITH_PICTURES:
        return names[0]
    model_type = text_config(config).text("model_type")
    return MODEL_TYPES.get(model_type, model_type)
