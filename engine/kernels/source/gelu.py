"""GELU in the tanh form of Hendrycks and Gimpel (2016), as `gelu_multiply`, without a gate."""

import numpy as np

from .exponential import exponentials


def chunk(x, out, length, values, bits, powers):
    minus_two_u = np.float32(-1.5957691216057308)
    cubic = np.float32(0.044715)
    one = np.float32(1)
    #omp simd
    for i in range(length):
        values[i] = minus_two_u * (x[i] + cubic * x[i] * x[i] * x[i])
    exponentials(values, length, bits, powers)
    #omp simd
    for i in range(length):
        out[i] = x[i] / (one + values[i])


# pythran export gelu(float32[:] order(C), float32[:] order(C), int)
def gelu(x, out, threads):
    """float32[size] each, may be the same array."""
    size = x.shape[0]
    #omp parallel for schedule(static) num_threads(threads) if(size > 16383)
    for part in range(threads):
        values = np.empty(64, np.float32)
        bits = np.empty(64, np.int32)
        powers = bits.view(np.float32)
        n_chunks = (size + 63) // 64
        for index in range(part * n_chunks // threads, (part + 1) * n_chunks // threads):
            first = index * 64
            chunk(x[first:], out[first:], min(64, size - first), values, bits, powers)
