"""Converts checkpoints (safetensors) to model files (GGUF): `convert_checkpoint`."""

from engine.conversion.convert import Conversion, convert_checkpoint
from engine.conversion.number_types import NumberType

__all__ = ["Conversion", "NumberType", "convert_checkpoint"]
