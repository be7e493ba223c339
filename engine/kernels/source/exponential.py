"""exp over short runs, vectorised: the C library's own would be called once per element."""

import numpy as np


def exponentials(values, length, bits, powers):
    """values[:length] = exp(values), relative error below 3e-7; inputs are held to -87 ... 88.

    2 ** (x / ln 2): the whole part goes into a float's exponent bits (powers is bits' float32 view), the rest
    within +-0.5 through the Taylor series of exp to the seventh power.  length <= 64.
    """
    least = np.float32(-87.0)
    most = np.float32(88.0)
    per_ln_2 = np.float32(1.4426950408889634)
    # Truncation after adding 1024.5 rounds to the nearest integer for negative numbers too.
    half_up = np.float32(1024.5)
    # ln 2 in two parts, the first exact in few bits, so that the rest keeps its precision.
    ln_2 = np.float32(0.693359375)
    ln_2_rest = np.float32(2.12194440e-4)
    c7 = np.float32(1.0 / 5040.0)
    c6 = np.float32(1.0 / 720.0)
    c5 = np.float32(1.0 / 120.0)
    c4 = np.float32(1.0 / 24.0)
    c3 = np.float32(1.0 / 6.0)
    c2 = np.float32(0.5)
    c1 = np.float32(1.0)
    #omp simd
    for i in range(length):
        x = min(max(values[i], least), most)
        whole = np.int32(x * per_ln_2 + half_up) - np.int32(1024)
        bits[i] = (whole + np.int32(127)) << np.int32(23)
        rest = (x - np.float32(whole) * ln_2) + np.float32(whole) * ln_2_rest
        series = (((((c7 * rest + c6) * rest + c5) * rest + c4) * rest + c3) * rest + c2) * rest + c1
        values[i] = series * rest + c1
    #omp simd
    for i in range(length):
        values[i] *= powers[i]
