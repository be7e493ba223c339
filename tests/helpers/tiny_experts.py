"""Tiny models with experts, random weights in files made at test time, and their truth in float64 NumPy.

Sources of the formulas: Jiang et al., "Mixtral of Experts" (2024); OpenAI, "gpt-oss-120b & gpt-oss-20b Model
Card" (2025) and its published reference code; Peng et al., "YaRN" (2023).  Nothing of the engine is used but
the file reader and the exact dequantiser.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.gguf.reader import GGUFFile
from engine.gguf.tensor_types import TENSOR_TYPES
from engine.gguf.writer import write_gguf
from engine.quantisation.dequantise import dequantise
from engine.quantisation.quantise import make_tensor
from engine.tensor import Tensor
from tests.helpers.slow_reference import Floats, ReferenceModel
from tests.helpers.tiny_model import N_TOKENS, write_tiny_model

N_LAYERS = 2
N_EXPERTS, N_USED = 6, 2

GPT_OSS_WIDTH, GPT_OSS_FEED_FORWARD = 64, 96
GPT_OSS_HEADS, GPT_OSS_KV_HEADS, GPT_OSS_HEAD_SIZE = 4, 2, 16
GPT_OSS_LAYERS, GPT_OSS_WINDOW = 4, 14
YARN_FACTOR, YARN_CONTEXT, ROPE_BASE = 8.0, 512, 1_000.0
"""With these the ramp begins and ends between two pairs, where rounding its borders would show."""


def write_tiny_mixtral(
    path: Path,
    quant_type: str = "F32",
    *,
    one_tensor_for_each: bool = False,
    n_experts: int = N_EXPERTS,
    n_used: int = N_USED,
    metadata: dict[str, object | None] | None = None,
    extra_tensors: dict[str, Tensor | None] | None = None,
) -> Path:
    """The tiny llama with experts of twice the width in place of its feed-forward.

    one_tensor_for_each: as files of early 2024 have them.
    """
    rng = np.random.RandomState(7)
    width = max(64, TENSOR_TYPES[quant_type].block_size)
    tensors: dict[str, Tensor | None] = {}
    for layer in range(N_LAYERS):
        block = f"blk.{layer}.ffn_"
        tensors[f"{block}gate_inp.weight"] = make_tensor(
            f"{block}gate_inp.weight", rng.standard_normal((n_experts, width)) / np.sqrt(width) * 3
        )
        for kind, shape in (
            ("gate", (2 * width, width)),
            ("up", (2 * width, width)),
            ("down", (width, 2 * width)),
        ):
            tensors[f"{block}{kind}.weight"] = None
            numbers = rng.standard_normal((n_experts, *shape)) / np.sqrt(shape[1]) * 2
            parts = (
                {f"{block}{kind}.{expert}.weight": numbers[expert] for expert in range(n_experts)}
                if one_tensor_for_each
                else {f"{block}{kind}_exps.weight": numbers}
            )
            for name, part in parts.items():
                tensors[name] = make_tensor(name, part, quant_type)
    counts = {"llama.expert_count": n_experts, "llama.expert_used_count": n_used}
    return write_tiny_model(
        path,
        quant_type=quant_type,
        metadata=counts | (metadata or {}),
        extra_tensors=tensors | (extra_tensors or {}),
    )


class SlowMixtral(ReferenceModel):
    """The llama reference with experts."""

    def feed_forward(self, layer: int, x: Floats) -> Floats:
        block = f"blk.{layer}.ffn_"
        out = np.zeros_like(x)
        for token, scores in enumerate(self.linear(x, f"{block}gate_inp.weight")):
            chosen = np.argsort(-scores, kind="stable")[:N_USED]
            weights = np.exp(scores[chosen] - scores.max())
            for weight, expert in zip(weights / weights.sum(), chosen, strict=True):
                gate, up, down = (self.matrix(block, kind, expert) for kind in ("gate", "up", "down"))
                g = gate @ x[token]
                out[token] += weight * (down @ (g / (1 + np.exp(-g)) * (up @ x[token])))
        return out

    def matrix(self, block: str, kind: str, expert: int) -> Floats:
        stacked = self.weights.get(f"{block}{kind}_exps.weight")
        return self.weights[f"{block}{kind}.{expert}.weight"] if stacked is None else stacked[expert]


def write_tiny_gpt_oss(path: Path, expert_type: str = "MXFP4") -> Path:
    """Every matrix of an expert in expert_type, the rest in F32."""
    rng = np.random.RandomState(11)
    q, kv = GPT_OSS_HEADS * GPT_OSS_HEAD_SIZE, GPT_OSS_KV_HEADS * GPT_OSS_HEAD_SIZE
    width, inner = GPT_OSS_WIDTH, GPT_OSS_FEED_FORWARD
    tensors: list[Tensor] = []

    def matrix(name: str, *shape: int, size: float = 1.0, bias: bool = False) -> None:
        numbers = rng.standard_normal(shape) / np.sqrt(shape[-1]) * size
        tensors.append(make_tensor(f"{name}.weight", numbers))
        if bias:
            tensors.append(make_tensor(f"{name}.bias", rng.standard_normal(shape[:-1]) / 2))

    def experts(name: str, rows: int, columns: int) -> None:
        tensors.append(_expert_tensor(rng, f"{name}.weight", (N_EXPERTS, rows, columns), expert_type))
        tensors.append(make_tensor(f"{name}.bias", rng.standard_normal((N_EXPERTS, rows)) / 2))

    matrix("token_embd", N_TOKENS, width, size=4)
    for layer in range(GPT_OSS_LAYERS):
        block = f"blk.{layer}."
        for norm in ("attn_norm", "post_attention_norm"):
            tensors.append(make_tensor(f"{block}{norm}.weight", rng.uniform(0.5, 1.5, width)))
        for name, rows in (("attn_q", q), ("attn_k", kv), ("attn_v", kv)):
            matrix(f"{block}{name}", rows, width, size=2, bias=True)
        matrix(f"{block}attn_output", width, q, bias=True)
        sinks = rng.standard_normal(GPT_OSS_HEADS) * 2
        tensors.append(make_tensor(f"{block}attn_sinks.weight", sinks))
        matrix(f"{block}ffn_gate_inp", N_EXPERTS, width, size=2, bias=True)
        experts(f"{block}ffn_gate_exps", inner, width)
        experts(f"{block}ffn_up_exps", inner, width)
        experts(f"{block}ffn_down_exps", width, inner)
    tensors.append(make_tensor("output_norm.weight", rng.uniform(0.5, 1.5, width)))
    matrix("output", N_TOKENS, width, size=4)
    entries = {
        "block_count": GPT_OSS_LAYERS,
        "context_length": 128,
        "embedding_length": width,
        "feed_forward_length": inner,
        "attention.head_count": GPT_OSS_HEADS,
        "attention.head_count_kv": GPT_OSS_KV_HEADS,
        "attention.key_length": GPT_OSS_HEAD_SIZE,
        "attention.value_length": GPT_OSS_HEAD_SIZE,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "attention.sliding_window": GPT_OSS_WINDOW,
        "expert_count": N_EXPERTS,
        "expert_used_count": N_USED,
        "expert_feed_forward_length": inner,
        "rope.freq_base": ROPE_BASE,
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": YARN_FACTOR,
        "rope.scaling.original_context_length": YARN_CONTEXT,
    }
    metadata = {f"gpt-oss.{key}": value for key, value in entries.items()}
    write_gguf(path, {"general.architecture": "gpt-oss", **metadata}, tensors)
    return path


def _expert_tensor(rng: np.random.RandomState, name: str, shape: tuple[int, ...], type_name: str) -> Tensor:
    if type_name != "MXFP4":
        return make_tensor(name, rng.standard_normal(shape) / np.sqrt(shape[-1]) * 2, type_name)
    # random codes of every kind, whose scales make rows of about the same size as above
    blocks = rng.randint(0, 256, (*shape[:-1], shape[-1] // 32, 17)).astype(np.uint8)
    blocks[..., 0] = rng.randint(124, 127, blocks.shape[:-1])
    return Tensor.contiguous(name, TENSOR_TYPES["MXFP4"], shape, blocks.reshape(-1))


class SlowGptOss:
    """The whole prompt at once, without a cache."""

    def __init__(self, path: Path) -> None:
        with GGUFFile.open(path) as file:
            self.weights = {
                name: dequantise(tensor).astype(np.float64) for name, tensor in file.tensors.items()
            }

    def forward(self, ids: list[int]) -> Floats:
        """float64[n, vocabulary]."""
        x = self.weights["token_embd.weight"][ids]
        for layer in range(GPT_OSS_LAYERS):
            block = f"blk.{layer}."
            window = GPT_OSS_WINDOW if layer % 2 == 0 else len(ids)
            x = x + self.attention(block, self.norm(x, f"{block}attn_norm.weight"), window)
            x = x + self.experts(block, self.norm(x, f"{block}post_attention_norm.weight"))
        return self.norm(x, "output_norm.weight") @ self.weights["output.weight"].T

    def attention(self, block: str, x: Floats, window: int) -> Floats:
        n = len(x)
        q, k, v = (self.linear(x, f"{block}attn_{kind}").reshape(n, -1, GPT_OSS_HEAD_SIZE) for kind in "qkv")
        q, k = rotated(q), rotated(k)
        distance = np.arange(n)[:, None] - np.arange(n)
        visible = (distance >= 0) & (distance < window)
        out = np.empty_like(q)
        for head in range(GPT_OSS_HEADS):
            kv_head = head // (GPT_OSS_HEADS // GPT_OSS_KV_HEADS)
            scores = np.where(visible, q[:, head] @ k[:, kv_head].T / np.sqrt(GPT_OSS_HEAD_SIZE), -np.inf)
            sink = self.weights[f"{block}attn_sinks.weight"][head]
            powers = np.exp(scores)
            out[:, head] = powers @ v[:, kv_head] / (powers.sum(axis=1) + np.exp(sink))[:, None]
        return self.linear(out.reshape(n, -1), f"{block}attn_output")

    def experts(self, block: str, x: Floats) -> Floats:
        out = np.zeros_like(x)
        for token, scores in enumerate(self.linear(x, f"{block}ffn_gate_inp")):
            chosen = np.argsort(-scores, kind="stable")[:N_USED]
            weights = np.exp(scores[chosen])
            for weight, expert in zip(weights / weights.sum(), chosen, strict=True):
                gate = np.minimum(self.expert(block, "gate", expert, x[token]), 7)
                up = np.clip(self.expert(block, "up", expert, x[token]), -7, 7)
                inner = gate / (1 + np.exp(-1.702 * gate)) * (up + 1)
                out[token] += weight * self.expert(block, "down", expert, inner)
        return out

    def expert(self, block: str, kind: str, expert: int, x: Floats) -> Floats:
        name = f"{block}ffn_{kind}_exps"
        result: Floats = self.weights[f"{name}.weight"][expert] @ x + self.weights[f"{name}.bias"][expert]
        return result

    def norm(self, x: Floats, name: str) -> Floats:
        return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5) * self.weights[name]

    def linear(self, x: Floats, name: str) -> Floats:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]


def rotated(x: Floats) -> Floats:
    """float64[n, heads, size] by YaRN, on halves, with a ramp between exact borders as gpt-oss has it."""
    n, _, size = x.shape
    pairs = np.arange(size // 2)
    frequencies = ROPE_BASE ** (-2 * pairs / size)

    def turns_so_often(turns: float) -> float:
        return float(size * np.log(YARN_CONTEXT / (turns * 2 * np.pi)) / (2 * np.log(ROPE_BASE)))

    low, high = max(turns_so_often(32.0), 0.0), min(turns_so_often(1.0), size - 1.0)
    ramp = np.clip((pairs - low) / (high - low), 0, 1)
    frequencies = frequencies * (1 - ramp) + frequencies / YARN_FACTOR * ramp
    angles = np.arange(n)[:, None, None] * frequencies
    length = 0.1 * np.log(YARN_FACTOR) + 1
    cos, sin = np.cos(angles) * length, np.sin(angles) * length
    first, second = x[..., : size // 2], x[..., size // 2 :]
    turned: NDArray[np.float64] = np.concatenate(
        [first * cos - second * sin, second * cos + first * sin], axis=-1
    )
    return turned
