"""The tensors of a checkpoint under their new names: what a family's table of names makes of them.

A table maps names without ``.weight`` or ``.bias`` to names of the model file, with ``{}`` for the number of
the layer and a second ``{}`` for the number of an expert, whose tensors are stacked:

    "model.layers.{}.self_attn.q_proj": "blk.{}.attn_q"
    "model.layers.{}.mlp.experts.{}.up_proj": "blk.{}.ffn_up_exps"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from engine.conversion.safetensors import SourceTensor
from engine.conversion.tensors import Arrangement, ConvertedTensor
from engine.errors import ModelFileError, UnsupportedModelError

Names = Mapping[str, str]

SUFFIXES = (".weight", ".bias")

ALWAYS_LEFT_OUT = ("rotary_emb.inv_freq", "rotary_emb.cos_cached", "rotary_emb.sin_cached")
"""Ends of names of tables that follow from the configuration."""


@dataclass
class Weights:
    """The tensors of a checkpoint, and which of them have been used.

    A family takes each tensor it knows; whatever is left over is an error (`require_all_used`), so that no
    bias is ever lost in silence.
    """

    tensors: Mapping[str, SourceTensor]
    used: set[str] = field(default_factory=set)

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def take(self, name: str) -> SourceTensor:
        """Raises `ModelFileError` where it is missing."""
        if name not in self.tensors:
            raise ModelFileError(f"The checkpoint lacks the tensor {name}.")
        self.used.add(name)
        return self.tensors[name]

    def leave_out(self, *endings: str) -> None:
        """Tensors that the model file has no use for, by the ends of their names."""
        self.used.update(name for name in self.tensors if name.endswith(endings))

    def renamed(
        self,
        names: Names,
        *,
        arrange: Mapping[str, Arrangement] | None = None,
        plus: Mapping[str, float] | None = None,
    ) -> Iterator[ConvertedTensor]:
        """Every tensor that the table names.

        arrange, plus: for `ConvertedTensor`, by the new name without layer and suffix (``attn_q``).

        Raises `ModelFileError` where an expert is missing.
        """
        experts: dict[str, dict[int, SourceTensor]] = {}
        for source_name in self.tensors:
            found = _new_name(source_name, names)
            if found is None:
                continue
            name, expert = found
            source = self.take(source_name)
            if expert is None:
                experts[name] = {-1: source}
            else:
                experts.setdefault(name, {})[expert] = source
        for name, sources in experts.items():
            stem = stem_of(name)
            stacked = -1 not in sources
            if stacked and sorted(sources) != list(range(len(sources))):
                missing = min(set(range(max(sources))) - set(sources))
                raise ModelFileError(f"The checkpoint lacks expert {missing} of {name}.")
            yield ConvertedTensor(
                name,
                tuple(sources[index] for index in sorted(sources)),
                (arrange or {}).get(stem),
                (plus or {}).get(stem, 0.0),
                stacked,
            )

    def require_all_used(self, family: str) -> None:
        """Raises `UnsupportedModelError` naming a tensor that nothing was made of."""
        left = [name for name in self.tensors if name not in self.used and not name.endswith(ALWAYS_LEFT_OUT)]
        if left:
            more = f" and {len(left) - 1} more" if len(left) > 1 else ""
            raise UnsupportedModelError(
                f"The checkpoint has tensors that no model of the family {family} has: {left[0]}{more}.",
                "It may be a variant that is not supported, or an adapter.",
            )


def stem_of(name: str) -> str:
    """``blk.3.attn_q.weight`` -> ``attn_q``; ``output_norm.weight`` -> ``output_norm``."""
    parts = name.split(".")
    return parts[2] if parts[0] == "blk" and len(parts) > 2 else parts[0]


def _new_name(name: str, names: Names) -> tuple[str, int | None] | None:
    """The new name, and the number of the expert where it has one; None where the table lacks it."""
    suffix = next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")
    parts = name.removesuffix(suffix).split(".") if suffix else name.split(".")
    numbers = [int(part) for part in parts if part.isdecimal() and part.isascii()]
    template = ".".join("{}" if part.isdecimal() and part.isascii() else part for part in parts)
    target = names.get(template)
    if target is None:
        return None
    n_layer_numbers = target.count("{}")
    expert = numbers[n_layer_numbers] if len(numbers) > n_layer_numbers else None
    return target.format(*numbers) + suffix, expert
