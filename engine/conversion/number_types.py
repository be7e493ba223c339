"""Which type each tensor of a converted file gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal, get_args

from engine.conversion.tensors import ConvertedTensor
from engine.conversion.weights import stem_of
from engine.errors import SettingsError
from engine.gguf.tensor_types import TENSOR_TYPES, QuantType

NumberType = Literal["auto", "f32", "f16", "bf16"]

FLOAT_TYPES = ("F32", "F16", "BF16")
"""What the matrices of a converted file can be."""

ALWAYS_F32 = frozenset({"ffn_gate_inp", "ffn_gate_inp_shexp", "position_embd", "token_types"})
"""Matrices that are small and matter much: routers of experts and positions.  As llama.cpp writes them."""


def common_type(tensors: Iterable[ConvertedTensor], wanted: NumberType) -> QuantType:
    """The type of the matrices: the one wanted, or for "auto" that of most of the checkpoint's numbers.

    Raises `SettingsError` for another name.
    """
    if wanted not in get_args(NumberType):
        raise SettingsError(
            f"There is no type {wanted!r} to convert to.", f"Choose {', '.join(get_args(NumberType))}."
        )
    if wanted != "auto":
        return TENSOR_TYPES[wanted.upper()]
    numbers: Counter[str] = Counter()
    for tensor in tensors:
        for source in tensor.sources:
            numbers[source.dtype] += source.row_bytes * (source.shape[0] if source.shape else 1)
    most = numbers.most_common(1)[0][0] if numbers else "F32"
    return TENSOR_TYPES[most if most in FLOAT_TYPES else "F32"]


def type_of(tensor: ConvertedTensor, common: QuantType) -> QuantType:
    """Vectors, norms and biases stay in F32, as every reader expects them."""
    is_matrix = len(tensor.shape) > 1 and tensor.name.endswith(".weight")
    stem = stem_of(tensor.name)
    if not is_matrix or stem in ALWAYS_F32 or stem.endswith("_norm"):
        return TENSOR_TYPES["F32"]
    return common
