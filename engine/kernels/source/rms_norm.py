"""Root-mean-square normalisation (Zhang and Sennrich 2019): x / sqrt(mean(x * x) + eps) * weight."""

import numpy as np


def normalise(x, weight, out, eps, lanes):
    width = x.shape[0]
    for lane in range(16):
        lanes[lane] = np.float32(0)
    n_blocks = width // 16
    for block in range(n_blocks):
        for lane in range(16):
            lanes[lane] += x[block * 16 + lane] * x[block * 16 + lane]
    total = np.float32(0)
    for lane in range(16):
        total += lanes[lane]
    for i in range(n_blocks * 16, width):
        total += x[i] * x[i]
    factor = np.float32(1.0 / np.sqrt(np.float64(total) / width + eps))
    for i in range(width):
        out[i] = x[i] * factor * weight[i]


# pythran export rms_norm(float32[:,:] order(C), float32[:] order(C), float32[:,:] order(C), float64, int)
def rms_norm(x, weight, out, eps, threads):
    """x, out: float32[rows, width], may be the same array; weight: float32[width]."""
    n_rows = x.shape[0]
    #omp parallel for schedule(static) num_threads(threads) if(n_rows > 15)
    for row in range(n_rows):
        lanes = np.empty(16, np.float32)
        normalise(x[row], weight, out[row], eps, lanes)
