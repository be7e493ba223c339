"""All tensor types that the engine computes with: how a block is decoded, and how weights are multiplied.

Figures of the container (numbers, sizes of blocks) are in `engine.gguf.tensor_types`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from engine.quantisation import (
    grid_types,
    k_types,
    legacy_types,
    plain_types,
    table_types,
    ternary_types,
)
from engine.quantisation.unpacking import Bytes, Floats, numbers

Product = Literal["float32", "fixed", "decoded"]
"""float32: kernels that read float numbers; fixed: kernels in 16-bit fixed point; decoded: the type has no
product of its own, its rows are decoded to float32 some at a time (engine/kernels/linear_decoded.py)."""


@dataclass(frozen=True, slots=True)
class TypeFormat:
    """decode: uint8[..., block_bytes] to float32[..., block_size], bit for bit as the format defines it.

    halves_at: bytes of a block at which float16 scales begin.  scales: float32[..., n], where a block's
    scales are not float16 numbers of their own.  A scale that is infinite or no number is damage.
    """

    decode: Callable[[Bytes], Floats]
    product: Product
    halves_at: tuple[int, ...] = ()
    scales: Callable[[Bytes], Floats] | None = None


def _float32_at_start(blocks: Bytes) -> Floats:
    scales: Floats = numbers(blocks[..., :4], "<f4")
    return scales


FORMATS: dict[str, TypeFormat] = {
    "F32": TypeFormat(plain_types.decode_f32, "float32"),
    "F16": TypeFormat(plain_types.decode_f16, "float32", (0,)),
    "BF16": TypeFormat(plain_types.decode_bf16, "float32"),
    "F64": TypeFormat(plain_types.decode_as("<f8"), "decoded"),
    "I8": TypeFormat(plain_types.decode_as("i1"), "decoded"),
    "I16": TypeFormat(plain_types.decode_as("<i2"), "decoded"),
    "I32": TypeFormat(plain_types.decode_as("<i4"), "decoded"),
    "I64": TypeFormat(plain_types.decode_as("<i8"), "decoded"),
    "Q1_0": TypeFormat(legacy_types.decode_q1_0, "decoded", (0,)),
    "Q4_0": TypeFormat(legacy_types.decode_q4_0, "fixed", (0,)),
    "Q4_1": TypeFormat(legacy_types.decode_q4_1, "fixed", (0, 2)),
    "Q5_0": TypeFormat(legacy_types.decode_q5_0, "fixed", (0,)),
    "Q5_1": TypeFormat(legacy_types.decode_q5_1, "fixed", (0, 2)),
    "Q8_0": TypeFormat(legacy_types.decode_q8_0, "fixed", (0,)),
    "Q8_1": TypeFormat(legacy_types.decode_q8_1, "decoded", (0,)),
    "Q2_K": TypeFormat(k_types.decode_q2_k, "fixed", (80, 82)),
    "Q3_K": TypeFormat(k_types.decode_q3_k, "fixed", (108,)),
    "Q4_K": TypeFormat(k_types.decode_q4_k, "fixed", (0, 2)),
    "Q5_K": TypeFormat(k_types.decode_q5_k, "fixed", (0, 2)),
    "Q6_K": TypeFormat(k_types.decode_q6_k, "fixed", (208,)),
    "Q8_K": TypeFormat(k_types.decode_q8_k, "decoded", scales=_float32_at_start),
    "IQ4_NL": TypeFormat(table_types.decode_iq4_nl, "fixed", (0,)),
    "IQ4_XS": TypeFormat(table_types.decode_iq4_xs, "fixed", (0,)),
    "MXFP4": TypeFormat(table_types.decode_mxfp4, "decoded", scales=table_types.mxfp4_scales),
    "NVFP4": TypeFormat(table_types.decode_nvfp4, "decoded"),
    "TQ1_0": TypeFormat(ternary_types.decode_tq1_0, "decoded", (52,)),
    "TQ2_0": TypeFormat(ternary_types.decode_tq2_0, "decoded", (64,)),
    "IQ1_S": TypeFormat(grid_types.decode_iq1_s, "decoded", (0,)),
    "IQ1_M": TypeFormat(grid_types.decode_iq1_m, "decoded", scales=grid_types.iq1_m_scale),
    "IQ2_XXS": TypeFormat(grid_types.decode_iq2_xxs, "decoded", (0,)),
    "IQ2_XS": TypeFormat(grid_types.decode_iq2_xs, "decoded", (0,)),
    "IQ2_S": TypeFormat(grid_types.decode_iq2_s, "decoded", (0,)),
    "IQ3_XXS": TypeFormat(grid_types.decode_iq3_xxs, "decoded", (0,)),
    "IQ3_S": TypeFormat(grid_types.decode_iq3_s, "decoded", (0,)),
}
"""By type name."""


def product_of(type_name: str) -> Product:
    """Raises KeyError for a type that is not in FORMATS."""
    return FORMATS[type_name].product
