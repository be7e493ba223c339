"""GELU in its exact form (Hendrycks and Gimpel 2016): x / 2 * (1 + erf(x / sqrt(2))).

1 - erf(z) = (a1 t + a2 t^2 + a3 t^3 + a4 t^4 + a5 t^5) exp(-z^2) with t = 1 / (1 + p z) for z >= 0, to
1.5e-7: formula 7.1.26 of Abramowitz and Stegun, "Handbook of Mathematical Functions" (1964).
"""

import numpy as np

from .exponential import exponentials


def chunk(x, out, length, values, bits, powers):
    near = np.float32(0.3275911 * 0.7071067811865476)
    a1 = np.float32(0.254829592)
    a2 = np.float32(-0.284496736)
    a3 = np.float32(1.421413741)
    a4 = np.float32(-1.453152027)
    a5 = np.float32(1.061405429)
    one = np.float32(1)
    half = np.float32(0.5)
    zero = np.float32(0)
    minus_half = np.float32(-0.5)
    #omp simd
    for i in range(length):
        values[i] = minus_half * x[i] * x[i]
    exponentials(values, length, bits, powers)
    #omp simd
    for i in range(length):
        size = max(x[i], zero - x[i])
        t = one / (one + near * size)
        tail = half * ((((a5 * t + a4) * t + a3) * t + a2) * t + a1) * t * values[i]
        # x (1 - tail) on one side of zero, x tail on the other, without asking which.
        out[i] = max(x[i], zero) - size * tail


# pythran export gelu_erf(float32[:] order(C), float32[:] order(C), int)
def gelu_erf(x, out, threads):
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
