"""Layer normalisation (Ba, Kiros and Hinton 2016): (x - mean) / sqrt(variance + eps) * weight + bias."""

import numpy as np


def total(lanes):
    """Sixteen partial sums, so that a compiler may keep them side by side in registers."""
    result = np.float32(0)
    for lane in range(16):
        result += lanes[lane]
    return result


def normalise(x, weight, out, eps, lanes):
    """The mean is taken off before squares are summed: numbers far from zero keep their precision."""
    width = x.shape[0]
    n_blocks = width // 16
    for lane in range(16):
        lanes[lane] = np.float32(0)
    for block in range(n_blocks):
        for lane in range(16):
            lanes[lane] += x[block * 16 + lane]
    summed = total(lanes)
    for i in range(n_blocks * 16, width):
        summed += x[i]
    mean = np.float32(np.float64(summed) / width)
    for lane in range(16):
        lanes[lane] = np.float32(0)
    for block in range(n_blocks):
        for lane in range(16):
            distance = x[block * 16 + lane] - mean
            lanes[lane] += distance * distance
    squares = total(lanes)
    for i in range(n_blocks * 16, width):
        squares += (x[i] - mean) * (x[i] - mean)
    factor = np.float32(1.0 / np.sqrt(np.float64(squares) / width + eps))
    for i in range(width):
        out[i] = (x[i] - mean) * factor * weight[i]


def shift(out, bias):
    for i in range(out.shape[0]):
        out[i] += bias[i]


# pythran export layer_norm(float32[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                           float32[:,:] order(C), float64, int)
def layer_norm(x, weight, bias, out, eps, threads):
    """x, out: float32[rows, width], may be the same array; weight: float32[heads, width], bias the same or empty.

    Row i takes row i % heads of weight and bias.
    """
    n_rows = x.shape[0]
    heads = weight.shape[0]
    has_bias = bias.shape[0] > 0
    #omp parallel for schedule(static) num_threads(threads) if(n_rows > 15)
    for row in range(n_rows):
        lanes = np.empty(16, np.float32)
        head = row % heads
        normalise(x[row], weight[head], out[row], eps, lanes)
        if has_bias:
            shift(out[row], bias[head])
