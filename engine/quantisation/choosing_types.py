"""Which type each tensor of a model file gets: by a mixture, by options, and where rows fit no block.

Vectors, norms, biases, routers of experts and learned positions stay as they are: they are small and matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from engine.conversion.number_types import ALWAYS_F32
from engine.conversion.weights import stem_of
from engine.gguf.tensor_types import TENSOR_TYPES, QuantType
from engine.quantisation.mixtures import ModelShape, is_embedding, is_output, types_in_mixture
from engine.tensor import Tensor

NUMBER_TYPES = frozenset({"F32", "F16", "BF16", "F64"})
"""Types that hold weights as they were trained, not yet quantised."""
WHOLE_NUMBER_TYPES = frozenset({"I8", "I16", "I32", "I64"})

FALLBACKS = {
    "Q2_K": "IQ4_NL",
    "Q3_K": "IQ4_NL",
    "IQ4_XS": "IQ4_NL",
    "Q4_K": "Q5_0",
    "Q5_K": "Q5_1",
    "Q6_K": "Q8_0",
}
"""With blocks of 32 in place of 256, at least as exact."""
LAST_FALLBACK = "F16"


@dataclass(frozen=True, slots=True)
class ChosenType:
    """What becomes of a tensor.  wanted: the type by mixture or option; type: what its rows allow."""

    tensor: Tensor
    wanted: str
    type: QuantType

    @property
    def is_fallback(self) -> bool:
        return self.wanted != self.type.name

    @property
    def is_copied(self) -> bool:
        return self.type == self.tensor.type

    @property
    def is_requantised(self) -> bool:
        """Whether weights that a quantiser has rounded already are rounded again."""
        return not self.is_copied and self.tensor.type.name not in NUMBER_TYPES

    @property
    def nbytes(self) -> int:
        return self.tensor.n_elements // self.type.block_size * self.type.block_bytes


def choose_types(
    tensors: Mapping[str, Tensor],
    mixture: str,
    shape: ModelShape,
    *,
    output_type: str | None = None,
    embedding_type: str | None = None,
) -> list[ChosenType]:
    """One for each tensor, in their order.

    output_type, embedding_type: take the place of the mixture's; of an embedding that is the output matrix
    too, the latter decides.

    Raises KeyError for a mixture or type that does not exist.
    """
    matrices = {name: tensor for name, tensor in tensors.items() if is_matrix(tensor)}
    wanted = types_in_mixture(mixture, shape, matrices)
    for name in matrices:
        if output_type and is_output(name, shape.tied):
            wanted[name] = output_type
        if embedding_type and is_embedding(name):
            wanted[name] = embedding_type
    return [
        ChosenType(tensor, wanted[name], fitting_type(wanted[name], tensor.shape[-1]))
        if name in wanted
        else copied(tensor)
        for name, tensor in tensors.items()
    ]


def copied(tensor: Tensor) -> ChosenType:
    """The choice to leave a tensor as it is."""
    return ChosenType(tensor, tensor.type.name, tensor.type)


def is_matrix(tensor: Tensor) -> bool:
    """Whether a mixture has a say about the tensor."""
    stem = stem_of(tensor.name)
    return (
        tensor.name.endswith(".weight")
        and prod(tensor.shape[:-1]) > 1
        and not stem.endswith("_norm")
        and stem not in ALWAYS_F32
        and tensor.type.name not in WHOLE_NUMBER_TYPES
    )


def fitting_type(type_name: str, row: int) -> QuantType:
    """The type, or the one that takes its place where a row is no whole number of its blocks."""
    for name in (type_name, FALLBACKS.get(type_name, LAST_FALLBACK)):
        if row % TENSOR_TYPES[name].block_size == 0:
            return TENSOR_TYPES[name]
    return TENSOR_TYPES[LAST_FALLBACK]
