"""Steps and minimums with which parts of a block are nearest to their weights: Q2_K, Q4_K and Q5_K.

A weight is step * q - minimum, q from 0 to most, minimum at least 0.  For each of some spreads of q over the range of
the weights, the best step and minimum for those q follow by least squares; the spread with the least error
is kept.
"""

import numpy as np

# Of spreads that are tried: they make q reach most + TRIAL * trial, so 2 beyond the last value to 2 before it.
TRIALS = 20
TRIAL = 0.1


def fit(x, part, most, out):
    """Best (step, minimum) of one part to out[part]."""
    size = x.shape[1]
    low = np.float64(0)
    high = np.float64(x[part, 0])
    sum_x = np.float64(0)
    for i in range(size):
        value = np.float64(x[part, i])
        low = min(low, value)
        high = max(high, value)
        sum_x += value
    out[part, 0] = np.float32(0)
    out[part, 1] = np.float32(-low)
    if high - low > np.float64(1e-35):
        best = np.float64(-1)
        for trial in range(-TRIALS, TRIALS + 1):
            inverse = (most + TRIAL * trial) / (high - low)
            sum_q = np.float64(0)
            sum_qq = np.float64(0)
            sum_xq = np.float64(0)
            for i in range(size):
                value = np.float64(x[part, i])
                q = np.floor((value - low) * inverse + 0.5)
                q = min(max(q, np.float64(0)), np.float64(most))
                sum_q += q
                sum_qq += q * q
                sum_xq += value * q
            # Without a minimum, which is all there is to find where every weight gets the same q.
            bottom = np.float64(0)
            step = sum_xq / sum_qq
            spread = size * sum_qq - sum_q * sum_q
            if spread > np.float64(0):
                lowest = (sum_qq * sum_x - sum_q * sum_xq) / spread
                if lowest <= np.float64(0):
                    bottom = lowest
                    step = (size * sum_xq - sum_q * sum_x) / spread
            # what the error lacks of the sum of squares of x, which all trials share
            gain = 2 * (step * sum_xq + bottom * sum_x) - step * step * sum_qq
            gain -= size * bottom * bottom + 2 * step * bottom * sum_q
            if gain > best:
                best = gain
                out[part, 0] = np.float32(step)
                out[part, 1] = np.float32(-bottom)


# pythran export fit_ranges(float32[:,:] order(C), int, float32[:,:] order(C), int)
def fit_ranges(x, most, out, threads):
    """x: float32[parts, size]; out: float32[parts, 2], steps and minimums."""
    #omp parallel for num_threads(threads)
    for part in range(x.shape[0]):
        fit(x, part, most, out)
