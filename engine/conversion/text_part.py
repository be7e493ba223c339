"""The language model inside a checkpoint that also sees pictures: its configuration and its tensors."""

from __future__ import annotations

from collections.abc import Mapping

from engine.conversion.config import Config
from engine.conversion.safetensors import SourceTensor

OTHER_PARTS = ("vision_tower.", "vision_model.", "multi_modal_projector.")


def text_config(config: Config) -> Config:
    """The configuration of the language model, which stands inside the other where there are two."""
    text = config.part("text_config")
    if text is None:
        return config
    # The outer one knows what holds for both, such as the ids of special tokens.
    outer = {
        key: value for key, value in config.values.items() if key not in ("text_config", "architectures")
    }
    return Config({**outer, "model_type": None, **text.values}, text.file_name)


def text_tensors(tensors: Mapping[str, SourceTensor]) -> tuple[dict[str, SourceTensor], int]:
    """Those of the language model, under the names they have where it stands alone; how many others."""
    text = {}
    for name, tensor in tensors.items():
        own = name.removeprefix("model.")
        if own.startswith(OTHER_PARTS):
            continue
        if own.startswith("language_model."):
            # Of old releases language_model.model.*, of new ones model.language_model.*
            own = own.removeprefix("language_model.").removeprefix("model.")
            name = own if own.startswith("lm_head.") else f"model.{own}"
        text[name] = tensor
    return text, len(tensors) - len(text)
