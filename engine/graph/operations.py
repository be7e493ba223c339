"""The operations a model family may use, as lazily built, shape-checked nodes.

A `Graph` collects nodes; nothing is computed while building.  Every method below checks the shapes it is
given and raises `ModelFileError` naming the weight where the file contradicts its own metadata.  Shapes are
in NumPy order; ``n`` is the number of tokens of the batch.  The full list is `OPERATIONS`; a backend says
which of them it can run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from engine.errors import ModelFileError
from engine.tensor import Tensor

Attribute = int | float | str

OPERATIONS: Mapping[str, str] = {
    "tokens": "the batch's token ids, int32[n]",
    "hidden": "the batch's hidden states, float32[n, width]: the input of a later part of a split model",
    "embed": "rows of a weight, one per token, times `scale`",
    "embed_positions": "rows of a weight, one per position of the batch's tokens",
    "rms_norm": "x / sqrt(mean(x^2) + epsilon) * weight, over the last axis",
    "layer_norm": "(x - mean) / sqrt(variance + epsilon) * weight (+ bias), over the last axis",
    "linear": "x @ weight.T",
    "add_bias": "x + weight, the same for each token",
    "rope": "rotary position embedding of [n, heads, head_size], pairs by `mode`",
    "grow_with_position": "x * (1 + scale * ln(1 + floor(position / length))) of [n, heads, head_size]",
    "store_kv": "adds this batch's keys and values to the KV cache of `layer`",
    "attention": "softmax(q k^T * scale) v over the KV cache of `layer`, causal, within `window`, with sinks",
    "gate": "activation(gate) * up, activation silu or gelu (tanh form)",
    "choose_experts": "the best experts of each token, int32[n, n_used]; the lower number of equal ones",
    "weigh_experts": "the gating (softmax or sigmoid) of the experts' scores at the chosen ones",
    "experts": "sum over a token's experts of weight * down(activation(gate x, up x))",
    "gate_tokens": "y * sigmoid(x . weight), one factor for each token",
    "activate": "activation gelu (tanh form) or gelu_erf (exact form)",
    "add": "a + b",
    "scale": "x * factor",
    "soft_cap": "cap * tanh(x / cap)",
    "select": "the rows of the tokens whose logits are wanted",
    "view": "the same bytes in another shape",
    "columns": "columns start to stop of [n, width]; of a single row without a copy",
}

IN_PLACE = frozenset(
    {"rms_norm", "layer_norm", "add_bias", "rope", "gate", "gate_tokens", "activate", "add", "scale"}
    | {"soft_cap", "grow_with_position"}
)
"""Operations whose result may overwrite their first input when nobody reads that afterwards."""

NO_RAMP = (-2.0, -1.0)
"""A ramp that ends before the first pair: all of them get the scale."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One operation. ``shape`` and ``dtype`` are of its result; ``()`` and "none" where it has none."""

    operation: str
    name: str
    inputs: tuple[Node, ...]
    weights: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: Literal["float32", "int32", "none"] = "float32"
    attributes: Mapping[str, Attribute] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        size = 0 if self.dtype == "none" else 4
        for length in self.shape:
            size *= length
        return size


@dataclass(frozen=True, slots=True)
class BatchShape:
    """What a plan is made for: n_tokens read at once, n_outputs of them with logits."""

    n_tokens: int
    n_outputs: int

    def __post_init__(self) -> None:
        if not 0 <= self.n_outputs <= self.n_tokens or self.n_tokens < 1:
            raise ValueError(f"no batch has {self.n_tokens} tokens and {self.n_outputs} outputs")


class Graph:
    """Builds nodes for one batch shape over the tensors of a file."""

    def __init__(self, tensors: Mapping[str, Tensor], batch: BatchShape) -> None:
        self.tensors = tensors
        self.batch = batch

    def has(self, weight: str) -> bool:
        return weight in self.tensors

    def weight(self, name: str, shape: tuple[int | None, ...]) -> Tensor:
        """The named tensor; raises `ModelFileError` where it is missing or of another shape (None: any)."""
        tensor = self.tensors.get(name)
        if tensor is None:
            raise ModelFileError(f"The model file lacks the tensor {name}.")
        fits = len(tensor.shape) == len(shape) and all(
            wanted in (None, length) for wanted, length in zip(shape, tensor.shape, strict=True)
        )
        if not fits or 0 in tensor.shape:
            wanted_text = " x ".join("any" if length is None else str(length) for length in shape)
            shape_text = " x ".join(map(str, tensor.shape))
            raise ModelFileError(f"The tensor {name} has the shape {shape_text}; {wanted_text} is needed.")
        return tensor

    def tokens(self) -> Node:
        return Node("tokens", "tokens", (), (), (self.batch.n_tokens,), "int32")

    def hidden(self, width: int) -> Node:
        return Node("hidden", "hidden", (), (), (self.batch.n_tokens, width))

    def embed(self, tokens: Node, weight: str, n_vocabulary: int, width: int, scale: float = 1.0) -> Node:
        self.weight(weight, (n_vocabulary, width))
        shape = (*tokens.shape, width)
        return Node("embed", "embed", (tokens,), (weight,), shape, attributes={"scale": scale})

    def embed_positions(self, weight: str, n_positions: int, width: int) -> Node:
        """Learned embeddings of the positions: float32[n, width]; the weight is [n_positions, width]."""
        self.weight(weight, (n_positions, width))
        return Node("embed_positions", weight, (), (weight,), (self.batch.n_tokens, width))

    def rms_norm(self, x: Node, weight: str, epsilon: float) -> Node:
        self.weight(weight, (x.shape[-1],))
        return Node("rms_norm", weight, (x,), (weight,), x.shape, attributes={"epsilon": epsilon})

    def layer_norm(self, x: Node, weight: str, epsilon: float) -> Node:
        """Over the last axis; a ``.bias`` beside the weight is added.

        Of x [n, heads, head_size] each head has its own row of the weight [heads, head_size].
        """
        shape = x.shape[1:]
        self.weight(weight, shape)
        bias = weight.removesuffix(".weight") + ".bias"
        weights: tuple[str, ...] = (weight,)
        if bias in self.tensors:
            self.weight(bias, shape)
            weights = (weight, bias)
        return Node("layer_norm", weight, (x,), weights, x.shape, attributes={"epsilon": epsilon})

    def linear(self, x: Node, weight: str, n_out: int | None = None) -> Node:
        """float32[n, in] -> float32[n, out]; the weight is [out, in].  A ``.bias`` beside it is added."""
        tensor = self.weight(weight, (n_out, x.shape[-1]))
        y = Node("linear", weight, (x,), (weight,), (*x.shape[:-1], tensor.shape[0]))
        bias = weight.removesuffix(".weight") + ".bias"
        if weight.endswith(".weight") and bias in self.tensors:
            self.weight(bias, (tensor.shape[0],))
            y = Node("add_bias", bias, (y,), (bias,), y.shape)
        return y

    def view(self, x: Node, *shape: int) -> Node:
        node = Node("view", f"{x.name} view", (x,), (), shape, x.dtype)
        if node.nbytes != x.nbytes:
            raise ValueError(f"{x.name}: {x.shape} cannot be seen as {shape}")
        return node

    def columns(self, x: Node, start: int, stop: int) -> Node:
        """[n, width] -> [n, stop - start]: one part of a result of fused weights, such as q of q, k and v."""
        if len(x.shape) != 2 or not 0 <= start < stop <= x.shape[1]:
            raise ValueError(f"{x.name}: {x.shape} has no columns {start} to {stop}")
        shape = (x.shape[0], stop - start)
        return Node("columns", f"{x.name} columns {start}:{stop}", (x,), (), shape, x.dtype, {"start": start})

    def rope(
        self,
        x: Node,
        name: str,
        *,
        mode: Literal["interleaved", "halves"],
        base: float,
        n_dims: int,
        scale: float = 1.0,
        length: float = 1.0,
        ramp: tuple[float, float] | None = None,
        factors: str | None = None,
    ) -> Node:
        """Rotates the first n_dims of each head by position * scale / base^(2i / n_dims), and makes them
        ``length`` times as long.

        interleaved turns the pairs (2i, 2i + 1), halves the pairs (i, i + n_dims / 2).  With a ramp, pairs
        below its start are turned without scale, those above its end with it, those between by a mixture in
        proportion (YaRN).  factors names an optional weight float32[n_dims / 2] that divides the frequencies.
        """
        if len(x.shape) != 3 or not 0 < n_dims <= x.shape[-1] or n_dims % 2:
            raise ModelFileError(f"Rotating {n_dims} of {x.shape[-1]} dimensions of a head is not possible.")
        if factors is not None:
            self.weight(factors, (n_dims // 2,))
        start, end = ramp or NO_RAMP
        attributes: dict[str, Attribute] = {"mode": mode, "base": base, "n_dims": n_dims, "scale": scale}
        attributes |= {"length": length, "ramp_start": start, "ramp_end": end}
        return Node("rope", name, (x,), (factors,) if factors else (), x.shape, attributes=attributes)

    def grow_with_position(self, x: Node, scale: float, length: int) -> Node:
        """Queries times a factor that grows with their positions, in steps of ``length`` positions."""
        attributes: dict[str, Attribute] = {"scale": scale, "length": length}
        return Node("grow_with_position", f"{x.name} grown", (x,), (), x.shape, attributes=attributes)

    def attention(
        self,
        q: Node,
        k: Node,
        v: Node,
        *,
        layer: int,
        scale: float,
        window: int = 0,
        soft_cap: float = 0.0,
        sinks: str | None = None,
    ) -> Node:
        """Stores k, v [n, kv_heads, head_size] in the cache and attends from q [n, heads, head_size].

        sinks names an optional weight float32[heads]: a further score of each head that takes its share of
        the softmax and stands for no value.
        """
        if k.shape != v.shape or q.shape[1] % k.shape[1] or q.shape[2] != k.shape[2]:
            raise ModelFileError(
                f"Attention heads do not fit: {q.shape[1]} query and {k.shape[1]} key heads of "
                f"{q.shape[2]}, {k.shape[2]} and {v.shape[2]} numbers."
            )
        cache: dict[str, Attribute] = {"layer": layer, "window": window}
        stored = Node("store_kv", f"layer {layer} store_kv", (k, v), (), (), "none", cache)
        attributes = {**cache, "scale": scale, "soft_cap": soft_cap, "n_kv_heads": k.shape[1]}
        if sinks is not None:
            self.weight(sinks, (q.shape[1],))
        weights = (sinks,) if sinks else ()
        name = f"layer {layer} attention"
        return Node("attention", name, (q, stored), weights, q.shape, attributes=attributes)

    def gate(self, gate: Node, up: Node, activation: Literal["silu", "gelu"]) -> Node:
        if gate.shape != up.shape:
            raise ModelFileError(f"The gate has the shape {gate.shape}, the up projection {up.shape}.")
        return Node(
            "gate", f"{activation} gate", (gate, up), (), gate.shape, attributes={"activation": activation}
        )

    def add(self, a: Node, b: Node, name: str) -> Node:
        if a.shape != b.shape:
            raise ModelFileError(f"{name}: {a.shape} and {b.shape} cannot be added.")
        return Node("add", name, (a, b), (), a.shape)

    def activate(self, x: Node, activation: Literal["gelu", "gelu_erf"]) -> Node:
        return Node("activate", activation, (x,), (), x.shape, attributes={"activation": activation})

    def scale(self, x: Node, factor: float) -> Node:
        return Node("scale", f"scale by {factor:g}", (x,), (), x.shape, attributes={"factor": factor})

    def soft_cap(self, x: Node, cap: float) -> Node:
        return Node("soft_cap", "soft_cap", (x,), (), x.shape, attributes={"cap": cap})

    def select(self, x: Node) -> Node:
        return Node("select", "select outputs", (x,), (), (self.batch.n_outputs, *x.shape[1:]))
