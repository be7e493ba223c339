"""Writes tiny models with random weights, in any family and quantisation type, the same for the same seed.

They know 300 tokens: three control tokens, all 256 bytes and a few merges, so that any text can be read and
written; what they say is nonsense, but the same nonsense every time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from zlib import crc32

import numpy as np

from engine.gguf.tensor_types import TENSOR_TYPES
from engine.gguf.writer import write_gguf
from engine.quantisation.quantise import QUANTISERS, make_tensor
from engine.tensor import Tensor
from tests.helpers.weight_blocks import random_matrix

CONTROL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
END_OF_TEXT, START_OF_MESSAGE, END_OF_MESSAGE = range(3)
N_TOKENS = 300

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

_MERGES_FROM = (
    "the other day the weather there was better than the water in the other teapot and a small house "
    "stood where nobody had ever thought of building one although the view over the bay is wonderful"
)


def write_tiny_model(
    path: Path,
    family: str = "llama",
    *,
    quant_type: str = "F32",
    seed: int = 0,
    width: int | None = None,
    n_layers: int | None = None,
    n_heads: int = 4,
    n_kv_heads: int = 2,
    context_length: int = 512,
    sliding_window: int = 16,
    tied: bool | None = None,
    rope_factors: bool = False,
    metadata: Mapping[str, object | None] | None = None,
    extra_tensors: Mapping[str, Tensor | None] | None = None,
) -> Path:
    """Writes the file and returns its path.

    family: llama (2 layers) or gemma3 (6 layers: five with a sliding window, one without).
    width: 64, or more where the type has larger blocks.
    tied: whether the output matrix is the embedding; gemma3 always, llama not unless asked for.
    rope_factors: adds ``rope_freqs.weight`` (llama).
    metadata, extra_tensors: replace or add entries; None removes one (for tests of damaged files).
    """
    width = width or max(64, TENSOR_TYPES[quant_type].block_size)
    n_layers = n_layers or {"llama": 2, "gemma3": 6}[family]
    build = {"llama": _llama_weights, "gemma3": _gemma3_weights}[family]
    head_size = width // n_heads if family == "llama" else 2 * width // n_heads
    # The old generator, since its stream never changes: some results are pinned.
    generator = np.random.RandomState(seed)
    weights = build(generator, width, n_layers, n_heads, n_kv_heads, head_size)
    if family == "llama" and not tied:
        weights["output.weight"] = _matrix(generator, N_TOKENS, width) * 4
    if rope_factors:
        weights["rope_freqs.weight"] = generator.uniform(1, 8, head_size // 2)
    tensors: dict[str, Tensor | None] = {
        name: _tensor(name, array, quant_type if array.ndim == 2 else "F32")
        for name, array in weights.items()
    }
    tensors.update(extra_tensors or {})
    entries: dict[str, object | None] = {
        "general.architecture": family,
        "general.name": f"Tiny {family}",
        f"{family}.block_count": n_layers,
        f"{family}.context_length": context_length,
        f"{family}.embedding_length": width,
        f"{family}.feed_forward_length": 2 * width,
        f"{family}.attention.head_count": n_heads,
        f"{family}.attention.head_count_kv": n_kv_heads,
        f"{family}.attention.layer_norm_rms_epsilon": 1e-5,
    }
    if family == "llama":
        entries |= {"llama.rope.freq_base": 10000.0, "llama.rope.dimension_count": head_size}
    else:
        entries |= {
            "gemma3.attention.key_length": head_size,
            "gemma3.attention.value_length": head_size,
            "gemma3.attention.sliding_window": sliding_window,
            "gemma3.rope.freq_base": 1000000.0,
        }
    entries |= {**_vocabulary(), **(metadata or {})}
    kept = {key: value for key, value in entries.items() if value is not None}
    write_gguf(path, kept, [tensor for tensor in tensors.values() if tensor is not None])
    return path


def _tensor(name: str, array: np.ndarray, quant_type: str) -> Tensor:
    """The array in that type; random blocks of its size where there is no quantiser.

    Whole numbers are too large for weights: they serve as embedding and output, whose scale matters little.
    """
    if quant_type in ("I8", "I16", "I32", "I64") and name not in ("token_embd.weight", "output.weight"):
        quant_type = "F32"
    if quant_type in QUANTISERS:
        return make_tensor(name, array, quant_type)
    rows, columns = array.shape
    matrix = random_matrix(quant_type, (rows, columns), float(array.std()), crc32(name.encode()))
    return replace(matrix, name=name)


def _matrix(generator: np.random.RandomState, n_rows: int, n_columns: int) -> np.ndarray:
    return generator.standard_normal((n_rows, n_columns)) / np.sqrt(n_columns)


def _norm(generator: np.random.RandomState, width: int) -> np.ndarray:
    return generator.uniform(0.5, 1.5, width)


def _llama_weights(
    generator: np.random.RandomState, width: int, n_layers: int, n_heads: int, n_kv_heads: int, head_size: int
) -> dict[str, np.ndarray]:
    weights = {"token_embd.weight": _matrix(generator, N_TOKENS, width) * 4}
    for layer in range(n_layers):
        weights |= {
            f"blk.{layer}.attn_norm.weight": _norm(generator, width),
            f"blk.{layer}.attn_q.weight": _matrix(generator, n_heads * head_size, width) * 2,
            f"blk.{layer}.attn_k.weight": _matrix(generator, n_kv_heads * head_size, width) * 2,
            f"blk.{layer}.attn_v.weight": _matrix(generator, n_kv_heads * head_size, width),
            f"blk.{layer}.attn_output.weight": _matrix(generator, width, n_heads * head_size),
            f"blk.{layer}.ffn_norm.weight": _norm(generator, width),
            f"blk.{layer}.ffn_gate.weight": _matrix(generator, 2 * width, width),
            f"blk.{layer}.ffn_up.weight": _matrix(generator, 2 * width, width),
            f"blk.{layer}.ffn_down.weight": _matrix(generator, width, 2 * width),
        }
    weights["output_norm.weight"] = _norm(generator, width)
    return weights


def _gemma3_weights(
    generator: np.random.RandomState, width: int, n_layers: int, n_heads: int, n_kv_heads: int, head_size: int
) -> dict[str, np.ndarray]:
    weights = _llama_weights(generator, width, n_layers, n_heads, n_kv_heads, head_size)
    # The family multiplies embeddings by sqrt(width) and uses them as the output matrix too.
    weights["token_embd.weight"] /= 2
    for layer in range(n_layers):
        weights |= {
            f"blk.{layer}.attn_q_norm.weight": _norm(generator, head_size),
            f"blk.{layer}.attn_k_norm.weight": _norm(generator, head_size),
            f"blk.{layer}.post_attention_norm.weight": _norm(generator, width) * 4,
            f"blk.{layer}.post_ffw_norm.weight": _norm(generator, width) * 4,
        }
    return weights


def _vocabulary() -> dict[str, object]:
    tokens = [*CONTROL_TOKENS, *_byte_letters().values()]
    merges = _learn_merges(N_TOKENS - len(tokens))
    tokens += [left + right for left, right in merges]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3] * len(CONTROL_TOKENS) + [1] * (N_TOKENS - len(CONTROL_TOKENS)),
        "tokenizer.ggml.merges": [f"{left} {right}" for left, right in merges],
        "tokenizer.ggml.bos_token_id": START_OF_MESSAGE,
        "tokenizer.ggml.eos_token_id": END_OF_MESSAGE,
        "tokenizer.ggml.padding_token_id": END_OF_MESSAGE,
        "tokenizer.ggml.unknown_token_id": END_OF_TEXT,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": CHAT_TEMPLATE,
    }


def _byte_letters() -> dict[int, str]:
    """The printable letter that stands for each byte in a byte-level vocabulary.

    Visible Latin-1 characters stand for themselves; the others take the code points from 256 on.
    """
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in visible]
    return {byte: chr(byte) if byte in visible else chr(256 + hidden.index(byte)) for byte in range(256)}


def _learn_merges(count: int) -> list[tuple[str, str]]:
    """Byte-pair encoding learnt from a sentence: the most frequent pair first, the smaller on a tie."""
    letters = _byte_letters()
    words = [[letters[byte] for byte in f" {word}".encode()] for word in _MERGES_FROM.split()]
    merges: list[tuple[str, str]] = []
    while len(merges) < count:
        pairs = Counter(pair for word in words for pair in pairwise(word))
        merges.append(min(pairs, key=lambda pair: (-pairs[pair], pair)))
        words = [_merge(word, merges[-1]) for word in words]
    return merges


def _merge(word: list[str], pair: tuple[str, str]) -> list[str]:
    merged: list[str] = []
    for piece in word:
        if merged and (merged[-1], piece) == pair:
            merged[-1] += piece
        else:
            merged.append(piece)
    return merged
