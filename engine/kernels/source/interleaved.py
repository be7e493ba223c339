"""Steps shared by the kernels that read interleaved rows of numbers: 64 rows side by side are the fast axis."""

import numpy as np


def clear_rows(total):
    zero = np.float32(0)
    for row in range(64):
        total[row] = zero


def store_rows(total, y, first):
    """64 results to y[first:], leaving out the rows that only pad the last group."""
    for row in range(min(64, y.shape[0] - first)):
        y[first + row] = total[row]
