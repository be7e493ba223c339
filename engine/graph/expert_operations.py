"""Operations of layers with experts: each token chooses a few of them, and only those compute for it.

Sources: Shazeer et al., "Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer"
(2017); Jiang et al., "Mixtral of Experts" (2024).  Names of tensors are llama.cpp's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.errors import ModelFileError
from engine.graph.operations import Graph, Node

Activation = Literal["silu", "clamped_swiglu"]
Gating = Literal["softmax", "sigmoid"]

KINDS = ("gate", "up", "down")


@dataclass(frozen=True, slots=True)
class ExpertTensors:
    """Names of an experts node's weights: of each kind one tensor [n_experts, out, in], or one [out, in] for
    each expert, as files of early 2024 have them.  biases: none, or one [n_experts, out] of each kind."""

    gate: tuple[str, ...]
    up: tuple[str, ...]
    down: tuple[str, ...]
    biases: tuple[str, ...] = ()

    @classmethod
    def of(cls, node: Node) -> ExpertTensors:
        """Those of a node that `experts` has made."""
        n = int(node.attributes["n_tensors"])
        names = node.weights
        return cls(names[:n], names[n : 2 * n], names[2 * n : 3 * n], names[3 * n :])

    @property
    def names(self) -> tuple[str, ...]:
        return self.gate + self.up + self.down + self.biases


def choose_experts(graph: Graph, scores: Node, n_used: int) -> Node:
    """float32[n, n_experts] -> int32[n, n_used]: the best of each token, of equal ones the lower number."""
    n_experts = scores.shape[-1]
    if not 0 < n_used <= n_experts:
        raise ModelFileError(f"Of {n_experts} experts {n_used} cannot be chosen.")
    name = f"{scores.name} chosen"
    return Node("choose_experts", name, (scores,), (), (scores.shape[0], n_used), "int32")


def weigh_experts(
    scores: Node, chosen: Node, *, gating: Gating = "softmax", normalised: bool, scale: float = 1.0
) -> Node:
    """float32[n, n_used]: what the chosen experts' results are multiplied with.

    The gating of all scores, taken at the chosen ones; normalised: divided by their sum; then times scale.
    """
    attributes = {"gating": gating, "normalised": int(normalised), "scale": scale}
    return Node(
        "weigh_experts", f"{chosen.name} weights", (scores, chosen), (), chosen.shape, attributes=attributes
    )


def experts(
    graph: Graph,
    x: Node,
    chosen: Node,
    weights: Node,
    block: str,
    *,
    n_experts: int,
    feed_forward: int,
    activation: Activation = "silu",
) -> Node:
    """float32[n, width]: for each token the sum of weights * down(activation(gate x, up x)) of its experts.

    feed_forward: rows of gate and up; 0: as the file has them.  silu is silu(gate) * up; clamped_swiglu is
    gate sigmoid(1.702 gate) (up + 1), with gate held below 7 and up between -7 and 7.
    Where any of the three products has a ``.bias``, all must have one.
    """
    width = x.shape[-1]
    names = _names(graph, block, n_experts)
    rows = {"gate": feed_forward or None, "up": feed_forward or None, "down": width}
    for kind, tensors in zip(KINDS, (names.gate, names.up, names.down), strict=True):
        columns = rows["gate"] if kind == "down" else width
        shape = (rows[kind], columns) if len(tensors) > 1 else (n_experts, rows[kind], columns)
        found = [graph.weight(tensor, shape) for tensor in tensors]
        if len({tensor.type.name for tensor in found}) > 1 or len({tensor.shape for tensor in found}) > 1:
            raise ModelFileError(
                f"The experts' tensors {tensors[0]} and the like are not of one type and shape."
            )
        rows["gate"] = rows["up"] = found[0].shape[-2] if kind == "gate" else rows["gate"]
    for kind, bias in zip(KINDS, names.biases, strict=bool(names.biases)):
        graph.weight(bias, (n_experts, rows[kind]))
    return Node(
        "experts",
        f"{block}experts",
        (x, chosen, weights),
        names.names,
        x.shape,
        attributes={
            "n_experts": n_experts,
            "n_tensors": len(names.gate),
            "feed_forward": rows["gate"] or 0,
            "activation": activation,
        },
    )


def gate_tokens(graph: Graph, x: Node, y: Node, weight: str) -> Node:
    """y * sigmoid(x . weight): one factor for each token; weight is float32[width of x], or one row."""
    in_a_row = graph.has(weight) and len(graph.tensors[weight].shape) == 2
    graph.weight(weight, (1, x.shape[-1]) if in_a_row else (x.shape[-1],))
    if x.shape[0] != y.shape[0]:
        raise ModelFileError(f"{weight}: {x.shape} cannot gate {y.shape}.")
    return Node("gate_tokens", weight, (y, x), (weight,), y.shape)


def _names(graph: Graph, block: str, n_experts: int) -> ExpertTensors:
    if graph.has(f"{block}ffn_gate.0.weight"):
        gate, up, down = (
            tuple(f"{block}ffn_{kind}.{expert}.weight" for expert in range(n_experts)) for kind in KINDS
        )
        return ExpertTensors(gate, up, down)
    gate, up, down = ((f"{block}ffn_{kind}_exps.weight",) for kind in KINDS)
    biases = tuple(f"{block}ffn_{kind}_exps.bias" for kind in KINDS)
    return ExpertTensors(gate, up, down, biases if any(graph.has(bias) for bias in biases) else ())
