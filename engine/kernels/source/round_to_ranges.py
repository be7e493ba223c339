"""Scales, minimums and quants of parts whose block has chosen the units of both: Q2_K, Q4_K and Q5_K.

A weight is unit * scale * q - minimum_unit * minimum.  Scale and minimum are tried beside the nearest whole
numbers too, since what one is rounded by the other can make good.
"""

import numpy as np


def error_of(x, part, step, bottom, most):
    inverse = np.float64(0)
    if step > np.float64(0):
        inverse = 1 / step
    total = np.float64(0)
    for i in range(x.shape[1]):
        value = np.float64(x[part, i])
        q = np.floor((value + bottom) * inverse + 0.5)
        q = min(max(q, np.float64(0)), np.float64(most))
        difference = step * q - bottom - value
        total += difference * difference
    return total


def choose(x, part, fitted, units, most, most_scale, codes, quants):
    unit = np.float64(units[part, 0])
    minimum_unit = np.float64(units[part, 1])
    near_scale = 0
    if unit > np.float64(0):
        near_scale = int(np.float64(fitted[part, 0]) / unit + 0.5)
    near_minimum = 0
    if minimum_unit > np.float64(0):
        near_minimum = int(np.float64(fitted[part, 1]) / minimum_unit + 0.5)
    # A small unit that was rounded down in half precision asks for more than there is.
    near_scale = min(near_scale, most_scale)
    near_minimum = min(near_minimum, most_scale)
    # Weights so small that half precision has no unit for their steps are all one number.
    first_minimum = max(near_minimum - 2, 0) if unit > np.float64(0) else 0
    best = np.float64(-1)
    best_scale = 0
    best_minimum = 0
    for scale in range(max(near_scale - 2, 0), min(near_scale + 2, most_scale) + 1):
        for minimum in range(first_minimum, min(near_minimum + 2, most_scale) + 1):
            error = error_of(x, part, unit * scale, minimum_unit * minimum, most)
            if best < np.float64(0) or error < best:
                best = error
                best_scale = scale
                best_minimum = minimum
    codes[part, 0] = np.uint8(best_scale)
    codes[part, 1] = np.uint8(best_minimum)
    step = unit * best_scale
    bottom = minimum_unit * best_minimum
    inverse = np.float64(0)
    if step > np.float64(0):
        inverse = 1 / step
    for i in range(x.shape[1]):
        q = np.floor((np.float64(x[part, i]) + bottom) * inverse + 0.5)
        quants[part, i] = np.uint8(min(max(q, np.float64(0)), np.float64(most)))


# pythran export round_to_ranges(float32[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C), int, int, uint8[:,:] order(C), uint8[:,:] order(C), int)
def round_to_ranges(x, fitted, units, most, most_scale, codes, quants, threads):
    """fitted, units: float32[parts, 2], of steps and of minimums; codes: uint8[parts, 2]; quants: as x."""
    #omp parallel for num_threads(threads)
    for part in range(x.shape[0]):
        choose(x, part, fitted, units, most, most_scale, codes, quants)
