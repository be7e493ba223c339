"""Steps with which parts of a block are nearest to their weights, where a value is step * values[q].

The values are any fixed ones: whole numbers around zero (Q3_K, Q6_K) or uneven ones (IQ4_NL, IQ4_XS).  For each of
some steps that bring the largest weight near an end of the values, the best step for the q that follow is found
by least squares; the one with the least error is kept.
"""

import numpy as np

TRIALS = 18
TRIAL = 0.02


def fit(x, part, nearest, values, out):
    largest = np.float64(0)
    for i in range(x.shape[1]):
        value = np.float64(x[part, i])
        if abs(value) > abs(largest):
            largest = value
    out[part] = np.float32(0)
    if abs(largest) > np.float64(1e-35):
        best = np.float64(-1)
        for side in range(2):
            end = np.float64(values[0]) if side == 0 else np.float64(values[values.shape[0] - 1])
            for trial in range(-TRIALS, TRIALS + 1):
                inverse = end * (1 + TRIAL * trial) / largest
                sum_xv = np.float64(0)
                sum_vv = np.float64(0)
                for i in range(x.shape[1]):
                    value = np.float64(x[part, i])
                    place = min(max(np.floor(value * inverse + 0.5), np.float64(-128)), np.float64(127))
                    v = np.float64(values[nearest[int(place) + 128]])
                    sum_xv += value * v
                    sum_vv += v * v
                # what the error lacks of the sum of squares of x is sum_xv * step
                if sum_vv > np.float64(0) and sum_xv * sum_xv > best * sum_vv:
                    best = sum_xv * sum_xv / sum_vv
                    out[part] = np.float32(sum_xv / sum_vv)


# pythran export fit_steps(float32[:,:] order(C), uint8[:], float32[:], float32[:], int)
def fit_steps(x, nearest, values, out, threads):
    """x: float32[parts, size]; nearest: uint8[256], q of the value nearest to each of -128 to 127; out: float32[parts]."""
    #omp parallel for num_threads(threads)
    for part in range(x.shape[0]):
        fit(x, part, nearest, values, out)
