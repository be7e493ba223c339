"""Writes tests/fixtures/quantisers/mixtures.json: which types llama.cpp gives to which tensors.

    python -m tools.make_mixture_fixtures PYTHON

PYTHON: of an environment with llama-cpp-python.  Each model has the metadata of a fixture of
tests/fixtures/families, with as many layers as told here, and matrices of two rows of 256, which is enough.

For each model the file has all tensors with their number of axes ("blk.*" for those of every layer), and for
each mixture the types of those that some mixture changes: one for all layers, or one for each.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import numpy as np

from engine.conversion import convert_checkpoint
from engine.gguf.reader import GGUFFile
from engine.gguf.writer import write_gguf
from engine.quantisation.mixtures import FILE_TYPE_NUMBERS, ModelShape
from engine.quantisation.quantise import make_tensor
from engine.tensor import Tensor

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "fixtures"
TARGET = FOLDER / "quantisers" / "mixtures.json"
ROW = 256
HEADS = 8

MODELS = (
    ("llama", 24, 8, 0),
    ("llama", 33, 2, 0),
    ("llama", 80, 1, 0),
    ("qwen2", 80, 1, 0),
    ("qwen3-tied", 28, 4, 0),
    ("gemma2", 26, 4, 0),
    ("mixtral", 32, 2, 8),
    ("qwen3moe", 24, 1, 128),
    ("gpt-oss", 24, 1, 32),
    ("falcon", 32, 1, 0),
    ("falcon-new", 32, 4, 0),
    ("phi2", 32, 8, 0),
    ("gpt2", 12, 8, 0),
)
"""Name of a fixture, number of layers, of heads for keys and values, of experts."""

QUANTISE = """
import ctypes, sys, llama_cpp
settings = llama_cpp.llama_model_quantize_default_params()
settings.nthread = 1
for number, target in zip(sys.argv[2::2], sys.argv[3::2]):
    settings.ftype = int(number)
    if llama_cpp.llama_model_quantize(sys.argv[1].encode(), target.encode(), ctypes.byref(settings)):
        sys.exit(f"llama.cpp refused file type {number}")
"""


def main() -> int:
    models = []
    for name, n_layers, n_kv_heads, n_experts in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "model.gguf"
            shape = write_model(source, name, n_layers, n_kv_heads, n_experts)
            models.append(
                {
                    "shape": asdict(shape),
                    "tensors": axes_of(source),
                    "types": types_of_llama_cpp(sys.argv[1], source),
                }
            )
    lines = ",\n".join(json.dumps(model) for model in models)
    TARGET.write_text(f'{{"models": [\n{lines}\n]}}\n', encoding="utf-8")
    return 0


def write_model(path: Path, name: str, n_layers: int, n_kv_heads: int, n_experts: int) -> ModelShape:
    """Writes the model; returns what our own mixtures ask of it."""
    convert_checkpoint(FOLDER / "families" / name, path, "f32", vocabulary=False)
    with GGUFFile.open(path) as file:
        values: dict[str, object] = dict(file.metadata.values)
        architecture = file.metadata.get_string("general.architecture")
        shapes = {key: tensor.shape for key, tensor in file.tensors.items()}
    values |= {
        f"{architecture}.block_count": n_layers,
        f"{architecture}.embedding_length": ROW,
        f"{architecture}.attention.head_count": HEADS,
        f"{architecture}.attention.head_count_kv": n_kv_heads,
    }
    for key in ("rope.dimension_count", "attention.key_length", "attention.value_length"):
        if f"{architecture}.{key}" in values:
            values[f"{architecture}.{key}"] = ROW // HEADS
    if n_experts:
        values[f"{architecture}.expert_count"] = n_experts
    write_gguf(path, values, _tensors(shapes, n_layers))
    return ModelShape(architecture, n_layers, HEADS, n_kv_heads, n_experts, "output.weight" not in shapes)


def _tensors(shapes: dict[str, tuple[int, ...]], n_layers: int) -> Iterable[Tensor]:
    for name, shape in shapes.items():
        small = np.full((*[2] * (len(shape) - 1), ROW), 0.5, np.float32)
        if not name.startswith("blk."):
            yield make_tensor(name, small)
        elif name.startswith("blk.0."):
            for layer in range(n_layers):
                yield make_tensor(name.replace("blk.0.", f"blk.{layer}."), small)


def axes_of(source: Path) -> dict[str, int]:
    """Name -> number of axes."""
    with GGUFFile.open(source) as file:
        return {
            tensor.name.replace("blk.0.", "blk.*."): len(tensor.shape)
            for tensor in file.tensors.values()
            if not tensor.name.startswith("blk.") or tensor.name.startswith("blk.0.")
        }


def types_of_llama_cpp(python: str, source: Path) -> dict[str, dict[str, str]]:
    """Mixture -> name -> type, or types of all layers, of all tensors but those that always stay F32."""
    targets = {mixture: source.with_name(f"{mixture}.gguf") for mixture in FILE_TYPE_NUMBERS}
    pairs = [
        text for mixture, path in targets.items() for text in (str(FILE_TYPE_NUMBERS[mixture]), str(path))
    ]
    subprocess.run([python, "-c", QUANTISE, str(source), *pairs], check=True, capture_output=True)
    found = {mixture: _types(path) for mixture, path in targets.items()}
    kept = {name for name in found["Q8_0"] if all(types[name] == "F32" for types in found.values())}
    return {
        mixture: {name: one for name, one in types.items() if name not in kept}
        for mixture, types in found.items()
    }


def _types(path: Path) -> dict[str, str]:
    layers: dict[str, dict[int, str]] = {}
    types: dict[str, str] = {}
    with GGUFFile.open(path) as file:
        for name, tensor in file.tensors.items():
            if name.startswith("blk."):
                _, layer, stem = name.split(".", 2)
                layers.setdefault(f"blk.*.{stem}", {})[int(layer)] = tensor.type.name
            else:
                types[name] = tensor.type.name
    for name, by_layer in layers.items():
        same = len(set(by_layer.values())) == 1
        types[name] = by_layer[0] if same else " ".join(by_layer[layer] for layer in sorted(by_layer))
    return types


if __name__ == "__main__":
    sys.exit(main())
