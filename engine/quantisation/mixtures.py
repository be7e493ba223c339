"""Mixtures of tensor types under the names people know, such as Q4_K_M: which type each weight matrix gets.

The facts are those of llama.cpp's quantiser, whose names these are (src/llama-quant.cpp, without an
importance matrix), so that a file called Q4_K_M is what its readers expect:

- the output matrix, or an embedding that is used as one, gets 6 bits where the mixture has fewer;
- values of attention, the output of attention and the way down in a feed-forward network matter most and are
  small or few, so some mixtures give them more bits, in some or all layers;
- models with 8 experts get 8 bits for keys and values, which are tiny beside the experts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from engine.gguf.file_types import FILE_TYPES
from engine.gguf.tensor_types import TENSOR_TYPES

LayerRule = Callable[[int, int], bool]
"""Whether a rule holds for a layer (from 0) of so many."""

GROUPED = 4
"""From so many query heads for one of keys and values on, values are small enough to get more bits."""
MANY_LAYERS = 80
"""Models of 70 billion weights, whose values are an eighth of their queries."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What a mixture asks of a model.  tied: the embedding is the output matrix too."""

    architecture: str
    n_layers: int
    n_heads: int
    n_kv_heads: int
    n_experts: int
    tied: bool

    @property
    def is_grouped(self) -> bool:
        return self.n_heads // self.n_kv_heads >= GROUPED

    @property
    def has_small_values(self) -> bool:
        return (
            self.architecture in ("llama", "qwen2")
            and self.n_layers == MANY_LAYERS
            and self.n_heads != self.n_kv_heads
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """A type, and the layers that get it."""

    type_name: str
    layers: LayerRule = lambda layer, n_layers: True


@dataclass(frozen=True, slots=True)
class Mixture:
    """base: the type of matrices that no choice is made for; of several choices the first that fits holds.

    values, grouped_values: of attention, the latter where is_grouped and not empty.
    attention_output, attention_output_of_8: the latter for models with 8 experts; "": base.
    """

    base: str
    values: tuple[Choice, ...] = ()
    grouped_values: tuple[Choice, ...] = ()
    attention_output: str = ""
    attention_output_of_8: str = ""
    down: tuple[Choice, ...] = ()

    @property
    def has_blocks(self) -> bool:
        """False where the base is a type of plain numbers, which all matrices get alike."""
        return TENSOR_TYPES[self.base].block_size > 1


def _first(count: int) -> LayerRule:
    return lambda layer, n_layers: layer < count


def _first_share(divisor: int) -> LayerRule:
    return lambda layer, n_layers: layer < n_layers // divisor


def _half(layer: int, n_layers: int) -> bool:
    """The first and the last eighth, and every third between."""
    first = n_layers // 8
    return layer < first or layer >= 7 * n_layers // 8 or (layer - first) % 3 == 2


_Q6_K_IN_HALF = (Choice("Q6_K", _half),)
_Q5_K_FIRST = (Choice("Q5_K", _first_share(8)),)

MIXTURES: dict[str, Mixture] = {
    "F32": Mixture("F32"),
    "F16": Mixture("F16"),
    "BF16": Mixture("BF16"),
    "Q8_0": Mixture("Q8_0"),
    "Q6_K": Mixture("Q6_K"),
    "Q5_K_M": Mixture("Q5_K", values=_Q6_K_IN_HALF, down=_Q6_K_IN_HALF),
    "Q5_K_S": Mixture("Q5_K"),
    "Q5_1": Mixture("Q5_1"),
    "Q5_0": Mixture("Q5_0"),
    "Q4_K_M": Mixture("Q4_K", values=_Q6_K_IN_HALF, down=_Q6_K_IN_HALF, attention_output_of_8="Q5_K"),
    "Q4_K_S": Mixture(
        "Q4_K", values=(Choice("Q5_K", _first(4)),), down=_Q5_K_FIRST, attention_output_of_8="Q5_K"
    ),
    "Q4_1": Mixture("Q4_1"),
    "Q4_0": Mixture("Q4_0"),
    "IQ4_NL": Mixture(
        "IQ4_NL", grouped_values=(Choice("Q5_K"),), down=_Q5_K_FIRST, attention_output_of_8="Q5_K"
    ),
    "IQ4_XS": Mixture(
        "IQ4_XS", grouped_values=(Choice("Q5_K"),), down=_Q5_K_FIRST, attention_output_of_8="Q5_K"
    ),
    "Q3_K_L": Mixture("Q3_K", values=(Choice("Q5_K"),), attention_output="Q5_K", down=(Choice("Q5_K"),)),
    "Q3_K_M": Mixture(
        "Q3_K",
        values=(Choice("Q5_K", _first(2)), Choice("Q4_K")),
        attention_output="Q4_K",
        attention_output_of_8="Q5_K",
        down=(Choice("Q5_K", _first_share(16)), Choice("Q4_K")),
    ),
    "Q3_K_S": Mixture("Q3_K", attention_output_of_8="Q5_K"),
    "Q2_K": Mixture(
        "Q2_K",
        values=(Choice("Q3_K"),),
        grouped_values=(Choice("Q4_K"),),
        attention_output="Q3_K",
        attention_output_of_8="Q5_K",
        down=(Choice("Q3_K"),),
    ),
}
"""By name, the larger first."""

_FALCON: dict[str, Mixture] = {
    "Q4_K_M": replace(MIXTURES["Q4_K_M"], down=(Choice("Q6_K", _first_share(16)), Choice("Q5_K", _half))),
    "Q4_K_S": replace(MIXTURES["Q4_K_S"], down=()),
    "Q3_K_L": replace(MIXTURES["Q3_K_L"], attention_output="Q4_K", down=(Choice("Q4_K"),)),
    "Q3_K_M": replace(
        MIXTURES["Q3_K_M"],
        attention_output="",
        down=(Choice("Q5_K", _first_share(16)), Choice("Q4_K", _half)),
    ),
    "Q2_K": replace(MIXTURES["Q2_K"], attention_output=""),
}
"""Mixtures that Falcon models have of their own."""

FILE_TYPE_NUMBERS: dict[str, int] = {name: number for number, name in FILE_TYPES.items() if name in MIXTURES}
"""What `general.file_type` says of a file of the mixture."""


def mixture_of(name: str, architecture: str) -> Mixture:
    """Raises KeyError for a name that is not in MIXTURES."""
    return _FALCON.get(name, MIXTURES[name]) if architecture == "falcon" else MIXTURES[name]


def types_in_mixture(name: str, shape: ModelShape, matrices: Iterable[str]) -> dict[str, str]:
    """The type of each of these matrices by its name, whatever the length of its rows.

    Raises KeyError for a name of a mixture that is not in MIXTURES.
    """
    mixture = mixture_of(name, shape.architecture)
    names = sorted(matrices, key=_layer_of)
    # Layers count by their values here, since those of some models have none.
    values = {name: index for index, name in enumerate(n for n in names if role_of(n) == "values")}
    return {
        name: _type_of(mixture, shape, name, values.get(name, 0), len(values))
        if mixture.has_blocks
        else mixture.base
        for name in names
    }


def _type_of(mixture: Mixture, shape: ModelShape, name: str, index: int, n_values: int) -> str:
    base = mixture.base
    if is_output(name, shape.tied):
        return "Q8_0" if shape.architecture == "falcon" or base == "Q8_0" else "Q6_K"
    match role_of(name):
        case "values" | "keys" if shape.n_experts == 8:
            return "Q8_0"
        case "values":
            grouped = mixture.grouped_values if shape.is_grouped else ()
            chosen = _chosen(grouped or mixture.values, index, n_values) or base
            return "Q5_K" if chosen in ("Q3_K", "Q4_K") and shape.has_small_values else chosen
        case "attention output" if shape.n_experts == 8:
            return mixture.attention_output_of_8 or base
        case "attention output":
            return mixture.attention_output or base
        case "down":
            return _chosen(mixture.down, _layer_of(name), shape.n_layers) or base
    return base


def is_output(tensor_name: str, tied: bool) -> bool:
    """Whether logits come out of the matrix."""
    return tensor_name == "output.weight" or (tied and is_embedding(tensor_name))


def is_embedding(tensor_name: str) -> bool:
    return tensor_name == "token_embd.weight"


_ROLES = (
    ("attn_v.", "values"),
    ("attn_qkv.", "values"),
    ("attn_k.", "keys"),
    ("attn_output.", "attention output"),
    ("ffn_down", "down"),
)


def role_of(tensor_name: str) -> str:
    """What a matrix of a layer does, as far as mixtures ask; "" for others.  A fused one counts as values."""
    if _layer_of(tensor_name) < 0:
        return ""
    stem = tensor_name.split(".")[2]
    return next((role for start, role in _ROLES if f"{stem}.".startswith(start)), "")


def _layer_of(tensor_name: str) -> int:
    """-1 for a tensor of no layer."""
    head, _, rest = tensor_name.partition(".")
    number, _, stem = rest.partition(".")
    return int(number) if head == "blk" and number.isdecimal() and number.isascii() and stem else -1


def _chosen(choices: tuple[Choice, ...], layer: int, n_layers: int) -> str:
    return next((choice.type_name for choice in choices if choice.layers(layer, n_layers)), "")
