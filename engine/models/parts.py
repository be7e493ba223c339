"""Pieces that several families share."""

from __future__ import annotations

from typing import Literal

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription

ROPE_FACTORS = "rope_freqs.weight"
"""Divide the frequencies of all pairs (Llama 3's long contexts); most files have none."""
LONG_FACTORS = ("rope_factors_short.weight", "rope_factors_long.weight")
"""The same of LongRoPE, for short and for long contexts."""

NORMS = ("attn_norm", "attn_norm_2", "ffn_norm")
PROJECTIONS = ("attn_qkv", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down")


def require_biases(graph: Graph, block: str, *names: str) -> None:
    """For families that always have them: a file that lacks one would be read as if it were zero.

    names: of weights of the block, as in NORMS; those that the file does not have are left out.  Raises
    `ModelFileError` naming the bias.
    """
    for name in names:
        if graph.has(f"{block}{name}.weight"):
            graph.weight(f"{block}{name}.bias", (None,))


def has_norm(graph: Graph, name: str) -> bool:
    """Whether a file has the norm, or a half of it: then the other half is missed by name."""
    return graph.has(f"{name}.weight") or graph.has(f"{name}.bias")


def heads(graph: Graph, model: ModelDescription, x: Node, weight: str, n_heads: int) -> Node:
    """[n, width] -> [n, n_heads, head_size]."""
    y = graph.linear(x, weight, n_heads * model.head_size)
    return graph.view(y, graph.batch.n_tokens, n_heads, model.head_size)


def query_key_value(graph: Graph, model: ModelDescription, x: Node, block: str) -> tuple[Node, Node, Node]:
    """[n, width] -> [n, n_heads, head_size], and twice [n, n_kv_heads, head_size].

    The weights are three, or one whose rows are those of q, k and v in this order.  Raises `ModelFileError`
    where only some of three have a bias.
    """
    fused = f"{block}attn_qkv.weight"
    if not graph.has(fused):
        three = ("attn_q", "attn_k", "attn_v")
        if any(graph.has(f"{block}{name}.bias") for name in three):
            require_biases(graph, block, *three)
        q = heads(graph, model, x, f"{block}attn_q.weight", model.n_heads)
        k = heads(graph, model, x, f"{block}attn_k.weight", model.n_kv_heads)
        return q, k, heads(graph, model, x, f"{block}attn_v.weight", model.n_kv_heads)
    together = graph.linear(x, fused, (model.n_heads + 2 * model.n_kv_heads) * model.head_size)

    def part(first: int, count: int) -> Node:
        columns = graph.columns(together, first * model.head_size, (first + count) * model.head_size)
        return graph.view(columns, graph.batch.n_tokens, count, model.head_size)

    n, n_kv = model.n_heads, model.n_kv_heads
    return part(0, n), part(n, n_kv), part(n + n_kv, n_kv)


def attended(
    graph: Graph,
    model: ModelDescription,
    q: Node,
    k: Node,
    v: Node,
    layer: int,
    *,
    sinks: str | None = None,
) -> Node:
    """Attention as the description says for the layer, then its output projection: [n, width]."""
    a = graph.attention(
        q,
        k,
        v,
        layer=layer,
        scale=model.attention_scale,
        window=model.window(layer),
        soft_cap=model.attention_soft_cap,
        sinks=sinks,
    )
    a = graph.view(a, graph.batch.n_tokens, model.n_heads * model.head_size)
    return graph.linear(a, f"blk.{layer}.attn_output.weight", model.width)


def rotated(
    graph: Graph,
    model: ModelDescription,
    x: Node,
    name: str,
    layer: int,
    mode: Literal["interleaved", "halves"],
) -> Node:
    """Heads [n, n_heads, head_size] turned by their positions, as the description says for the layer."""
    rope = model.rope_of(layer)
    factors = ROPE_FACTORS if graph.has(ROPE_FACTORS) else LONG_FACTORS[rope.long]
    return graph.rope(
        x,
        f"blk.{layer}.{name} rope",
        mode=mode,
        base=rope.base,
        n_dims=rope.n_dims,
        scale=rope.scale,
        length=rope.attention_factor,
        ramp=rope.ramp,
        factors=factors if graph.has(factors) else None,
    )


def feed_forward(
    graph: Graph, model: ModelDescription, x: Node, block: str, activation: Literal["silu", "gelu"]
) -> Node:
    """down(activation(gate x) * up x)."""
    gate = graph.linear(x, f"{block}ffn_gate.weight", model.feed_forward)
    up = graph.linear(x, f"{block}ffn_up.weight", model.feed_forward)
    return graph.linear(graph.gate(gate, up, activation), f"{block}ffn_down.weight", model.width)


def plain_feed_forward(
    graph: Graph, model: ModelDescription, x: Node, block: str, activation: Literal["gelu", "gelu_erf"]
) -> Node:
    """down(activation(up x)), without a gate."""
    up = graph.linear(x, f"{block}ffn_up.weight", model.feed_forward)
    return graph.linear(graph.activate(up, activation), f"{block}ffn_down.weight", model.width)


def output_logits(
    graph: Graph,
    model: ModelDescription,
    x: Node,
    norm: Literal["rms_norm", "layer_norm"] = "rms_norm",
) -> Node:
    """The last norm and the output projection, for the tokens whose logits are wanted.

    A file without ``output.weight`` uses the embedding for it (tied weights).
    """
    x = graph.select(x)
    normalise = graph.rms_norm if norm == "rms_norm" else graph.layer_norm
    x = normalise(x, "output_norm.weight", model.norm_epsilon)
    output = "output.weight" if graph.has("output.weight") else "token_embd.weight"
    logits = graph.linear(x, output, model.n_vocabulary)
    return graph.soft_cap(logits, model.final_soft_cap) if model.final_soft_cap else logits
