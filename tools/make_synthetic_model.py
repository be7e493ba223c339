"""Writes a model file of TinyLlama-1.1B's shape with random weights, to measure speed and memory with.

The weights are random *blocks* with small scales, never quantised from floats, so a file of 640 MB takes
seconds and some 100 MB of memory: every tensor is a window into one pool of blocks of its type.  What the
model says is nonsense, but its logits are finite and of ordinary size, and llama.cpp reads the file too.

    python tools/make_synthetic_model.py model.gguf --type q4_k_m
"""

from __future__ import annotations

import argparse
import itertools
import math
import string
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelWriteError
from engine.gguf.tensor_types import TENSOR_TYPES, QuantType
from engine.gguf.writer import write_gguf
from engine.tensor import Tensor

WEIGHT_DEVIATION = 0.02
"""Standard deviation of the weights: about 1 / sqrt(width), so that activations neither fade nor explode."""

FIRST_TOKENS = ("<unk>", "<s>", "</s>")
FILE_TYPES = {"q4_0": 2, "q4_k_m": 15}
"""--type -> general.file_type of the public GGUF specification."""


@dataclass(frozen=True)
class Shape:
    """TinyLlama-1.1B, unless told otherwise.  Widths are multiples of 256, the largest block."""

    layers: int = 22
    width: int = 2048
    feed_forward: int = 5632
    heads: int = 32
    kv_heads: int = 4
    vocabulary: int = 32_000
    context: int = 2048


def write_synthetic_model(path: Path, mixture: str, shape: Shape, seed: int = 0) -> None:
    """Writes the file.  mixture: a key of FILE_TYPES.

    Raises ValueError for a shape that no such file can have, `ModelWriteError` where it cannot be written.
    """
    if shape.width % 256 or shape.feed_forward % 256 or shape.width % shape.heads:
        raise ValueError("widths must be multiples of 256, and the heads must divide the width")
    if shape.vocabulary < len(FIRST_TOKENS) + 256:
        raise ValueError("the vocabulary needs room for 256 bytes and three control tokens")
    generator = np.random.default_rng(seed)
    rows = list(_matrices(mixture, shape))
    pools: dict[str, NDArray[np.uint8]] = {}
    for type in {type.name: type for _, type, _ in rows}.values():
        largest = max(_blocks(type, dims) for _, other, dims in rows if other is type)
        pools[type.name] = _random_blocks(type, largest + largest // 8 + 1, generator)
    tensors = []
    for name, type, dims in rows:
        pool, count = pools[type.name], _blocks(type, dims)
        start = int(generator.integers(len(pool) - count + 1))
        tensors.append(Tensor.contiguous(name, type, dims, pool[start : start + count].reshape(-1)))
    ones = np.ones(shape.width, np.float32).view(np.uint8)
    norms = ["output_norm.weight"]
    norms += [f"blk.{i}.{part}_norm.weight" for i in range(shape.layers) for part in ("attn", "ffn")]
    tensors += [Tensor.contiguous(name, TENSOR_TYPES["F32"], (shape.width,), ones) for name in norms]
    write_gguf(path, _metadata(mixture, shape), tensors)


def _matrices(mixture: str, shape: Shape) -> Iterator[tuple[str, QuantType, tuple[int, int]]]:
    """Name, type and shape [rows, columns] of every matrix.

    Like llama.cpp's files of these names, both keep the output in Q6_K.  Q4_K_M also keeps value and down
    projections of every second layer in it.
    """
    base = TENSOR_TYPES["Q4_0" if mixture == "q4_0" else "Q4_K"]
    better = TENSOR_TYPES["Q6_K"]
    kv_width = shape.width // shape.heads * shape.kv_heads
    yield "token_embd.weight", base, (shape.vocabulary, shape.width)
    yield "output.weight", better, (shape.vocabulary, shape.width)
    for layer in range(shape.layers):
        careful = better if mixture == "q4_k_m" and layer % 2 == 0 else base
        yield f"blk.{layer}.attn_q.weight", base, (shape.width, shape.width)
        yield f"blk.{layer}.attn_k.weight", base, (kv_width, shape.width)
        yield f"blk.{layer}.attn_v.weight", careful, (kv_width, shape.width)
        yield f"blk.{layer}.attn_output.weight", base, (shape.width, shape.width)
        yield f"blk.{layer}.ffn_gate.weight", base, (shape.feed_forward, shape.width)
        yield f"blk.{layer}.ffn_up.weight", base, (shape.feed_forward, shape.width)
        yield f"blk.{layer}.ffn_down.weight", careful, (shape.width, shape.feed_forward)


def _blocks(type: QuantType, dims: tuple[int, int]) -> int:
    return dims[0] * dims[1] // type.block_size


def _random_blocks(type: QuantType, count: int, generator: np.random.Generator) -> NDArray[np.uint8]:
    """uint8[count, block_bytes]: random bits, with scales that give WEIGHT_DEVIATION around a mean of 0.

    q of 4 bits has a mean of 7.5 and a deviation of 4.61; scales of 6 bits a mean of 31.5 and a root mean
    square of 36.5; q of 6 bits less 32 a root mean square of 18.5; scales of a signed byte one of 73.9.
    """
    blocks = generator.integers(0, 256, (count, type.block_bytes), np.uint8)
    spread = generator.uniform(0.75, 1.25, count) * generator.choice((-1.0, 1.0), count)
    if type.name == "Q4_0":  # d * (q - 8)
        _set_half(blocks, 0, spread * WEIGHT_DEVIATION / math.hypot(4.61, 0.5))
    elif type.name == "Q4_K":  # d * scale * q - dmin * minimum, with dmin = 7.5 d so that the means cancel
        offsets = 7.5 * math.sqrt(2) * 18.5
        d = spread * WEIGHT_DEVIATION / math.hypot(36.5 * 4.61, offsets)
        _set_half(blocks, 0, d)
        _set_half(blocks, 2, 7.5 * d)
    else:  # Q6_K: d * scale * (q - 32)
        _set_half(blocks, 208, spread * WEIGHT_DEVIATION / (18.5 * 73.9))
    return blocks


def _set_half(blocks: NDArray[np.uint8], at: int, values: NDArray[np.float64]) -> None:
    blocks[:, at : at + 2] = values.astype("<f2").view(np.uint8).reshape(-1, 2)


def _metadata(mixture: str, shape: Shape) -> dict[str, object]:
    texts = [*FIRST_TOKENS, *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [2, 3, 3] + [6] * 256
    texts += itertools.islice(_words(), shape.vocabulary - len(texts))
    kinds += [1] * (len(texts) - len(kinds))
    return {
        "general.architecture": "llama",
        "general.name": f"Synthetic {mixture.upper()}",
        "general.file_type": FILE_TYPES[mixture],
        "llama.block_count": shape.layers,
        "llama.context_length": shape.context,
        "llama.embedding_length": shape.width,
        "llama.feed_forward_length": shape.feed_forward,
        "llama.attention.head_count": shape.heads,
        "llama.attention.head_count_kv": shape.kv_heads,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.freq_base": 10_000.0,
        "llama.rope.dimension_count": shape.width // shape.heads,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": texts,
        "tokenizer.ggml.scores": np.array([-float(index) for index in range(len(texts))], np.float32),
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.add_bos_token": True,
    }


def _words() -> Iterator[str]:
    """Strings of letters, short ones first, each with and without the mark of a space before it."""
    yield "\u2581"
    for length in itertools.count(1):
        for letters in itertools.product(string.ascii_lowercase, repeat=length):
            yield "".join(letters)
            yield "\u2581" + "".join(letters)


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes a model with random weights, to measure speed with.")
    parser.add_argument("file", type=Path, help="the .gguf file to write")
    parser.add_argument("--type", choices=FILE_TYPES, required=True, help="how the weights are quantised")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same file")
    for name, value in vars(Shape()).items():
        option = "--" + name.replace("_", "-")
        parser.add_argument(option, type=int, default=value, metavar="N", help="default %(default)s")
    options = parser.parse_args()
    shape = Shape(**{name: getattr(options, name) for name in vars(Shape())})
    try:
        write_synthetic_model(options.file, options.type, shape, options.seed)
    except (ValueError, ModelWriteError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
