"""The gate of gpt-oss's experts: g / (1 + exp(-1.702 g)) * (u + 1), with g = min(gate, 7) and u = up held to -7 ... 7.

Source: OpenAI, "gpt-oss-120b & gpt-oss-20b Model Card" (2025), and the model's published reference code; 1.702 is that
of the sigmoid form of GELU (Hendrycks and Gimpel 2016).
"""

import numpy as np

from .exponential import exponentials


def chunk(gate, up, out, length, values, bits, powers):
    one = np.float32(1)
    steepness = np.float32(-1.702)
    most = np.float32(7)
    least = np.float32(-7)
    #omp simd
    for i in range(length):
        # In this order a NaN stays one.
        values[i] = steepness * min(gate[i], most)
    exponentials(values, length, bits, powers)
    #omp simd
    for i in range(length):
        out[i] = min(gate[i], most) / (one + values[i]) * (max(min(up[i], most), least) + one)


# pythran export clamped_swiglu(float32[:] order(C), float32[:] order(C), float32[:] order(C), int)
def clamped_swiglu(gate, up, out, threads):
    """float32[size] each; out may be gate or up."""
    size = gate.shape[0]
    #omp parallel for schedule(static) num_threads(threads) if(size > 16383)
    for part in range(threads):
        values = np.empty(64, np.float32)
        bits = np.empty(64, np.int32)
        powers = bits.view(np.float32)
        n_chunks = (size + 63) // 64
        for index in range(part * n_chunks // threads, (part + 1) * n_chunks // threads):
            first = index * 64
            chunk(gate[first:], up[first:], out[first:], min(64, size - first), values, bits, powers)
