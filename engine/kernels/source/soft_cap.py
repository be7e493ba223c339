"""Soft cap of logits (Gemma 2): cap * tanh(x / cap), with tanh(u) = 1 - 2 / (1 + exp(2 u))."""

import numpy as np

from .exponential import exponentials


def chunk(x, out, length, cap, values, bits, powers):
    one = np.float32(1)
    twice = np.float32(2) * cap
    inverse = np.float32(2) / cap
    #omp simd
    for i in range(length):
        values[i] = x[i] * inverse
    exponentials(values, length, bits, powers)
    #omp simd
    for i in range(length):
        out[i] = cap - twice / (one + values[i])


# pythran export soft_cap(float32[:] order(C), float32[:] order(C), float32, int)
def soft_cap(x, out, cap, threads):
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
            chunk(x[first:], out[first:], min(64, size - first), cap, values, bits, powers)
