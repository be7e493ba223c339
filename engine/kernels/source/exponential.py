"""exp over short runs, vectorised: the C library's own would be called once per element."""

import numpy as np


def exponentials(values, first, length, bits, powers):
    """values[first:first + length] = exp(values), relative error below 3e-7; inputs are held to -87 ... 88.

    2 ** (x / ln 2): the whole part goes into a float's exponent bits (powers is bits' float32 view), the rest
    within +-0.5 through the Taylor series of exp to the seventh power.  length <= 64.
    """
    for i in range(length):
        x = min(max(values[first + i], np.float32(-87.0)), np.float32(88.0))
        # Truncation after adding 1024.5 rounds to the nearest integer for negative numbers too.
        whole = np.int32(x * np.float32(1.4426950408889634) + np.float32(1024.5)) - np.int32(1024)
        bits[i] = (whole + np.int32(127)) << np.int32(23)
        # ln 2 in two parts, the first exact in few bits, so that the rest keeps its precision.
        rest = x - np.float32(whole) * np.float32(0.693359375)
        rest = rest + np.float32(whole) * np.float32(2.12194440e-4)
        series = np.float32(1.0 / 5040.0)
        series = series * rest + np.float32(1.0 / 720.0)
        series = series * rest + np.float32(1.0 / 120.0)
        series = series * rest + np.float32(1.0 / 24.0)
        series = series * rest + np.float32(1.0 / 6.0)
        series = series * rest + np.float32(0.5)
        series = series * rest + np.float32(1.0)
        values[first + i] = series * rest + np.float32(1.0)
    for i in range(length):
        values[first + i] *= powers[i]
