"""Which tensors a mixture touches, and what takes its place where rows are no whole blocks (case Q-01)."""

from __future__ import annotations

import numpy as np
import pytest

from engine.gguf.tensor_types import TENSOR_TYPES
from engine.quantisation.choosing_types import FALLBACKS, choose_types, fitting_type
from engine.quantisation.mixtures import MIXTURES, ModelShape
from engine.quantisation.quantise import QUANTISERS, make_tensor
from engine.tensor import Tensor

SHAPE = ModelShape("llama", 2, 4, 2, 0, tied=False)
TIED = ModelShape("llama", 2, 4, 2, 0, tied=True)

BYTES_PER_BLOCK = {
    "Q4_0": (32, 18), "Q4_1": (32, 20), "Q5_0": (32, 22), "Q5_1": (32, 24), "Q8_0": (32, 34),
    "IQ4_NL": (32, 18), "Q2_K": (256, 84), "Q3_K": (256, 110), "Q4_K": (256, 144), "Q5_K": (256, 176),
    "Q6_K": (256, 210), "IQ4_XS": (256, 136), "F32": (1, 4), "F16": (1, 2), "BF16": (1, 2),
}  # fmt: skip


def empty(name: str, *shape: int, type_name: str = "F32") -> Tensor:
    type = TENSOR_TYPES[type_name]
    n_bytes = int(np.prod(shape)) // type.block_size * type.block_bytes
    return Tensor.contiguous(name, type, shape, np.zeros(n_bytes, np.uint8))


def chosen(tensors: list[Tensor], mixture: str, shape: ModelShape = SHAPE, **types: str) -> dict[str, str]:
    choices = choose_types({tensor.name: tensor for tensor in tensors}, mixture, shape, **types)
    assert [choice.tensor for choice in choices] == tensors
    return {choice.tensor.name: choice.type.name for choice in choices}


def test_bytes_per_block() -> None:
    assert set(BYTES_PER_BLOCK) == set(QUANTISERS)
    for name, sizes in BYTES_PER_BLOCK.items():
        assert (TENSOR_TYPES[name].block_size, TENSOR_TYPES[name].block_bytes) == sizes


@pytest.mark.parametrize("row", [288, 14464, 13696, 1408, 2688, 4544])
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("Q2_K", "IQ4_NL"),
        ("Q3_K", "IQ4_NL"),
        ("IQ4_XS", "IQ4_NL"),
        ("Q4_K", "Q5_0"),
        ("Q5_K", "Q5_1"),
        ("Q6_K", "Q8_0"),
        ("Q4_0", "Q4_0"),
        ("Q8_0", "Q8_0"),
        ("IQ4_NL", "IQ4_NL"),
        ("F32", "F32"),
    ],
)
def test_rows_that_are_no_multiple_of_256(row: int, wanted: str, expected: str) -> None:
    assert fitting_type(wanted, row).name == expected


@pytest.mark.parametrize("wanted", QUANTISERS)
def test_rows_that_are_no_multiple_of_32(wanted: str) -> None:
    blocks = TENSOR_TYPES[wanted].block_size > 1
    assert fitting_type(wanted, 30).name == ("F16" if blocks else wanted)
    assert fitting_type(wanted, 512).name == wanted


def test_every_large_block_has_a_fallback_that_is_no_less_exact() -> None:
    large = {name for name in QUANTISERS if TENSOR_TYPES[name].block_size == 256}
    assert set(FALLBACKS) == large
    for name, other in FALLBACKS.items():
        assert TENSOR_TYPES[other].bits_per_weight > TENSOR_TYPES[name].bits_per_weight
        assert TENSOR_TYPES[other].block_size == 32


@pytest.mark.parametrize("mixture", MIXTURES)
def test_small_tensors_that_matter_stay_as_they_are(mixture: str) -> None:
    kept = [
        empty("output_norm.weight", 256),
        empty("blk.0.attn_q.bias", 256),
        empty("blk.0.attn_q_norm.weight", 4, 256),
        empty("blk.0.ffn_gate_inp.weight", 8, 256),
        empty("blk.0.ffn_gate_inp_shexp.weight", 1, 256),
        empty("blk.0.ffn_down_exps.bias", 8, 256),
        empty("position_embd.weight", 64, 256, type_name="F16"),
        empty("blk.0.attn_sinks.weight", 8),
        empty("blk.0.experts.weight", 4, 256, type_name="I32"),
        empty("rope_freqs.weight", 32),
    ]
    assert chosen(kept, mixture) == {tensor.name: tensor.type.name for tensor in kept}


@pytest.mark.parametrize("mixture", MIXTURES)
def test_matrices_and_experts_get_the_type(mixture: str) -> None:
    base = MIXTURES[mixture].base
    matrices = [empty("blk.0.attn_q.weight", 8, 256), empty("blk.0.ffn_up_exps.weight", 4, 8, 256)]
    assert set(chosen(matrices, mixture).values()) == {base}


def test_a_tied_embedding_is_an_output() -> None:
    embedding = empty("token_embd.weight", 10, 256)
    assert chosen([embedding], "Q4_0") == {"token_embd.weight": "Q4_0"}
    assert chosen([embedding], "Q4_0", TIED) == {"token_embd.weight": "Q6_K"}
    assert chosen([embedding], "Q4_0", TIED, output_type="F16") == {"token_embd.weight": "F16"}


def test_types_of_output_and_embedding_by_option() -> None:
    tensors = [empty("token_embd.weight", 10, 256), empty("output.weight", 10, 96)]
    assert chosen(tensors, "Q4_K_M") == {"token_embd.weight": "Q4_K", "output.weight": "Q8_0"}
    found = chosen(tensors, "Q4_K_M", output_type="Q5_K", embedding_type="BF16")
    assert found == {"token_embd.weight": "BF16", "output.weight": "Q5_1"}
    found = chosen(tensors[:1], "F16", TIED, output_type="Q8_0", embedding_type="Q4_0")
    assert found == {"token_embd.weight": "Q4_0"}


def test_what_a_choice_tells() -> None:
    tensor = make_tensor("blk.0.attn_q.weight", np.zeros((4, 288)), "Q8_0")
    (again,) = choose_types({tensor.name: tensor}, "Q4_K_S", SHAPE)
    assert again.is_requantised and again.is_fallback and not again.is_copied
    assert again.nbytes == 4 * 288 // 32 * 22
    (same,) = choose_types({tensor.name: tensor}, "Q8_0", SHAPE)
    assert same.is_copied and not same.is_requantised and same.nbytes == tensor.nbytes
