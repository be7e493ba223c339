"""The truth the engine is measured by: both families in float64 NumPy, as plainly as the formulas read.

Sources: RMS norm, Zhang and Sennrich 2019; rotary positions, Su et al. 2021; grouped queries, Ainslie et al.
2023; gated feed-forward, Shazeer 2020; the Llama 2 and Gemma 3 reports.  Nothing of the engine is used but
the file reader and the exact dequantiser.

Shapes: x is float64[n, width]; queries, keys and values are float64[n, heads, head_size].
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.gguf.reader import GGUFFile
from engine.quantisation.dequantise import dequantise

Floats = NDArray[np.float64]

GEMMA3_LOCAL_ROPE_BASE = 10_000.0
GEMMA3_LAYERS_PER_GLOBAL = 6


class Choice(NamedTuple):
    """A greedily chosen id, and how far its log-probability lies above that of the runner-up."""

    id: int
    gap: float


def reference_logits(path: Path, ids: list[int], *, round_kv_to_half: bool = False) -> Floats:
    """float64[n, vocabulary]: the logits after each of the ids."""
    return ReferenceModel(path, round_kv_to_half=round_kv_to_half).forward(ids)


def reference_greedy(path: Path, ids: list[int], n: int, *, round_kv_to_half: bool = False) -> list[Choice]:
    """The n ids that follow, always the likeliest."""
    return ReferenceModel(path, round_kv_to_half=round_kv_to_half).greedy(ids, n)


def log_softmax(logits: Floats) -> Floats:
    """Along the last axis."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


@dataclass
class LayerCache:
    """Keys (rotated) and values of all positions so far."""

    keys: list[Floats] = field(default_factory=list)
    values: list[Floats] = field(default_factory=list)


class ReferenceModel:
    """One model and the keys and values of what it has read."""

    def __init__(self, path: Path, *, round_kv_to_half: bool = False) -> None:
        with GGUFFile.open(path) as file:
            self.weights = {
                name: dequantise(tensor).astype(np.float64) for name, tensor in file.tensors.items()
            }
            metadata = file.metadata
        self.family = metadata.get_string("general.architecture")
        if self.family not in ("llama", "gemma3"):
            raise ValueError(f"no formulas for {self.family}")
        prefix = self.family + "."
        self.width = metadata.get_int(prefix + "embedding_length")
        self.n_layers = metadata.get_int(prefix + "block_count")
        self.n_heads = metadata.get_int(prefix + "attention.head_count")
        self.n_kv_heads = metadata.get_int(prefix + "attention.head_count_kv", self.n_heads)
        self.head_size = metadata.get_int(prefix + "attention.key_length", self.width // self.n_heads)
        self.epsilon = metadata.get_float(prefix + "attention.layer_norm_rms_epsilon")
        self.rope_base = metadata.get_float(prefix + "rope.freq_base", 10_000.0)
        self.rope_size = metadata.get_int(prefix + "rope.dimension_count", self.head_size)
        self.window = metadata.get_int(prefix + "attention.sliding_window", 0)
        self.softcap = metadata.get_float(prefix + "final_logit_softcapping", 0.0)
        self.round_kv_to_half = round_kv_to_half
        self.forget()

    def forget(self) -> None:
        """Starts again at position 0."""
        self.n_read = 0
        self.caches = [LayerCache() for _ in range(self.n_layers)]

    def greedy(self, ids: list[int], n: int) -> list[Choice]:
        """Reads ids from position 0, then n times takes the likeliest."""
        self.forget()
        choices: list[Choice] = []
        logits = self.forward(ids)[-1]
        for _ in range(n):
            log_probabilities = log_softmax(logits)
            second, first = np.argsort(log_probabilities, kind="stable")[-2:]
            choices.append(Choice(int(first), float(log_probabilities[first] - log_probabilities[second])))
            logits = self.forward([int(first)])[-1]
        return choices

    def forward(self, ids: list[int], last: int | None = None) -> Floats:
        """Reads ids after what was read before: float64[n, vocabulary], or of the last ids alone."""
        positions = np.arange(self.n_read, self.n_read + len(ids))
        self.n_read += len(ids)
        x = self.weights["token_embd.weight"][ids]
        if self.family == "gemma3":
            x = x * np.sqrt(self.width)
        for layer in range(self.n_layers):
            x = self.layer(layer, x, positions)
        x = self.norm(x[-(last or len(ids)) :], "output_norm.weight")
        output = self.weights.get("output.weight", self.weights["token_embd.weight"])
        logits = x @ output.T
        return np.tanh(logits / self.softcap) * self.softcap if self.softcap else logits

    def layer(self, layer: int, x: Floats, positions: NDArray[np.int64]) -> Floats:
        attended = self.attention(layer, self.norm(x, f"blk.{layer}.attn_norm.weight"), positions)
        if self.family == "gemma3":
            attended = self.norm(attended, f"blk.{layer}.post_attention_norm.weight")
        x = x + attended
        fed = self.feed_forward(layer, self.norm(x, f"blk.{layer}.ffn_norm.weight"))
        if self.family == "gemma3":
            fed = self.norm(fed, f"blk.{layer}.post_ffw_norm.weight")
        return x + fed

    def attention(self, layer: int, x: Floats, positions: NDArray[np.int64]) -> Floats:
        queries = self.linear(x, f"blk.{layer}.attn_q.weight").reshape(len(x), self.n_heads, -1)
        keys = self.linear(x, f"blk.{layer}.attn_k.weight").reshape(len(x), self.n_kv_heads, -1)
        values = self.linear(x, f"blk.{layer}.attn_v.weight").reshape(len(x), self.n_kv_heads, -1)
        if self.family == "gemma3":
            queries = self.norm(queries, f"blk.{layer}.attn_q_norm.weight")
            keys = self.norm(keys, f"blk.{layer}.attn_k_norm.weight")
        queries = self.rope(queries, positions, layer)
        keys = self.rope(keys, positions, layer)
        keys, values = self.stored(layer, keys, values)
        cache = self.caches[layer]
        cache.keys.extend(keys)
        cache.values.extend(values)
        all_keys, all_values = np.array(cache.keys), np.array(cache.values)
        distance = positions[:, None] - np.arange(len(all_keys))  # [n, positions so far]
        visible = distance >= 0
        if self.is_local(layer):
            visible &= distance < self.window
        heads_per_kv_head = self.n_heads // self.n_kv_heads
        result = np.empty_like(queries)
        for head in range(self.n_heads):
            kv_head = head // heads_per_kv_head
            scores = queries[:, head] @ all_keys[:, kv_head].T / np.sqrt(self.head_size)
            weights = np.exp(log_softmax(np.where(visible, scores, -np.inf)))
            result[:, head] = weights @ all_values[:, kv_head]
        return self.linear(result.reshape(len(x), -1), f"blk.{layer}.attn_output.weight")

    def stored(self, layer: int, keys: Floats, values: Floats) -> tuple[Floats, Floats]:
        """Keys and values as the cache of this layer holds them."""
        if not self.round_kv_to_half:
            return keys, values
        return keys.astype(np.float16).astype(np.float64), values.astype(np.float16).astype(np.float64)

    def feed_forward(self, layer: int, x: Floats) -> Floats:
        gate = self.linear(x, f"blk.{layer}.ffn_gate.weight")
        up = self.linear(x, f"blk.{layer}.ffn_up.weight")
        if self.family == "gemma3":  # GELU, the approximation with tanh
            inner = np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)
            activated = 0.5 * gate * (1 + np.tanh(inner))
        else:  # SiLU
            activated = gate / (1 + np.exp(-gate))
        return self.linear(activated * up, f"blk.{layer}.ffn_down.weight")

    def rope(self, x: Floats, positions: NDArray[np.int64], layer: int) -> Floats:
        """Turns pairs of elements by position / base^(2i / size): llama pairs neighbours, gemma3 halves."""
        half = self.rope_size // 2
        base = GEMMA3_LOCAL_ROPE_BASE if self.is_local(layer) else self.rope_base
        frequencies = base ** (-2 * np.arange(half) / self.rope_size)
        if "rope_freqs.weight" in self.weights:
            frequencies = frequencies / self.weights["rope_freqs.weight"]
        angles = positions[:, None, None] * frequencies  # [n, 1, half]
        if self.family == "gemma3":
            first, second = slice(0, half), slice(half, self.rope_size)
        else:
            first, second = slice(0, self.rope_size, 2), slice(1, self.rope_size, 2)
        turned = x.copy()
        turned[..., first] = x[..., first] * np.cos(angles) - x[..., second] * np.sin(angles)
        turned[..., second] = x[..., first] * np.sin(angles) + x[..., second] * np.cos(angles)
        return turned

    def is_local(self, layer: int) -> bool:
        """Whether a layer sees only the last ``window`` positions: gemma3, five layers of six."""
        return self.family == "gemma3" and (layer + 1) % GEMMA3_LAYERS_PER_GLOBAL != 0

    def norm(self, x: Floats, name: str) -> Floats:
        return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + self.epsilon) * self.weights[name]

    def linear(self, x: Floats, name: str) -> Floats:
        return x @ self.weights[name].T
