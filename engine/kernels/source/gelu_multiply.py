"""The gate of GeGLU (Shazeer 2020) in the tanh form of Hendrycks and Gimpel: gelu(gate) * up.

gelu(x) = x / 2 * (1 + tanh(u)) with u = sqrt(2 / pi) * (x + 0.044715 x**3), which is x / (1 + exp(-2 u)).
"""

import numpy as np

from .exponential import exponentials


def chunk(gate, up, out, length, values, bits, powers):
    minus_two_u = np.float32(-1.5957691216057308)
    cubic = np.float32(0.044715)
    one = np.float32(1)
    #omp simd
    for i in range(length):
        values[i] = minus_two_u * (gate[i] + cubic * gate[i] * gate[i] * gate[i])
    exponentials(values, length, bits, powers)
    #omp simd
    for i in range(length):
        out[i] = gate[i] / (one + values[i]) * up[i]


# pythran export gelu_multiply(float32[:] order(C), float32[:] order(C), float32[:] order(C), int)
def gelu_multiply(gate, up, out, threads):
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
