"""Scales and quants of parts whose block has chosen the unit of its steps: Q3_K, Q6_K, IQ4_NL and IQ4_XS.

A weight is unit * scale * values[q].  Scales beside the nearest whole number are tried too.
"""

import numpy as np


def place_of(value, inverse):
    return int(min(max(np.floor(value * inverse + 0.5), np.float64(-128)), np.float64(127))) + 128


def error_of(x, part, step, nearest, values):
    inverse = np.float64(0)
    if step != np.float64(0):
        inverse = 1 / step
    total = np.float64(0)
    for i in range(x.shape[1]):
        value = np.float64(x[part, i])
        difference = step * np.float64(values[nearest[place_of(value, inverse)]]) - value
        total += difference * difference
    return total


def choose(x, part, fitted, units, nearest, values, least, most, scales, quants):
    unit = np.float64(units[part])
    near = 0
    if unit != np.float64(0):
        near = int(np.floor(np.float64(fitted[part]) / unit + 0.5))
    near = min(max(near, least), most)
    best = np.float64(-1)
    best_scale = near
    for scale in range(max(near - 2, least), min(near + 2, most) + 1):
        error = error_of(x, part, unit * scale, nearest, values)
        if best < np.float64(0) or error < best:
            best = error
            best_scale = scale
    scales[part] = np.int8(best_scale)
    step = unit * best_scale
    inverse = np.float64(0)
    if step != np.float64(0):
        inverse = 1 / step
    for i in range(x.shape[1]):
        quants[part, i] = nearest[place_of(np.float64(x[part, i]), inverse)]


# pythran export round_to_steps(float32[:,:] order(C), float32[:], float32[:], uint8[:], float32[:], int, int, int8[:], uint8[:,:] order(C), int)
def round_to_steps(x, fitted, units, nearest, values, least, most, scales, quants, threads):
    """fitted, units: float32[parts]; nearest, values: as `fit_steps`; scales: int8[parts], least to most."""
    #omp parallel for num_threads(threads)
    for part in range(x.shape[0]):
        choose(x, part, fitted, units, nearest, values, least, most, scales, quants)
