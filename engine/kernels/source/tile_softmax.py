"""The online softmax of Milakov and Gimelshein 2018 over one tile of 64 positions."""

import numpy as np

from .exponential import exponentials

# What a position that a row does not see has for a score: below every score, and finite.
UNSEEN = -3.0e38


def largest(line):
    peak = np.float32(UNSEEN)
    #omp simd reduction(max:peak)
    for lane in range(64):
        peak = max(peak, line[lane])
    return peak


def add_up(line, sums):
    """Sixteen partial sums of a row: adding those up once at the end is cheaper than 64 numbers each time."""
    #omp simd
    for lane in range(16):
        sums[lane] += (line[lane] + line[16 + lane]) + (line[32 + lane] + line[48 + lane])


def cap_scores(line, cap, bits, powers):
    """cap * tanh(score / cap), through exp(2 x)."""
    #omp simd
    for lane in range(64):
        line[lane] *= np.float32(2) / cap
    exponentials(line, 64, bits, powers)
    #omp simd
    for lane in range(64):
        line[lane] = cap - (np.float32(2) * cap) / (np.float32(1) + line[lane])


def exponentials_below(line, peak, bits, powers):
    """line becomes exp(line - peak), where no number of it is above peak; exp(-87) is the least.  Relative error
    below 4e-7, growing with the distance to the peak, as that of the difference itself does.

    2 ** (x / ln 2): the whole part goes into a float's exponent bits, the rest within +-0.5 through the polynomial of
    degree 5 whose largest relative error is the smallest (7.5e-8, found by Lawson's weighted least squares).
    """
    per_ln_2 = np.float32(1.4426950408889634)
    least = np.float32(-125.5)
    half = np.float32(0.5)
    bias = np.int32(127)
    digits = np.int32(23)
    c5 = np.float32(0.001327647129073739)
    c4 = np.float32(0.009675540961325169)
    c3 = np.float32(0.05550713092088699)
    c2 = np.float32(0.24022120237350464)
    c1 = np.float32(0.6931469440460205)
    c0 = np.float32(1.0000001192092896)
    #omp simd
    for i in range(64):
        # In this order a NaN stays one.
        x = max((line[i] - peak) * per_ln_2, least)
        whole = np.int32(x - half)
        bits[i] = (whole + bias) << digits
        rest = x - np.float32(whole)
        line[i] = ((((c5 * rest + c4) * rest + c3) * rest + c2) * rest + c1) * rest + c0
    #omp simd
    for i in range(64):
        line[i] *= powers[i]


def multiply_by(values, factor, count):
    #omp simd
    for i in range(count):
        values[i] *= factor


def rescale(gathered, column, sums, factor):
    """Outputs and sums of a row so far: its 64 lanes of each head block, and 16 partial sums."""
    for block in range(gathered.shape[0]):
        multiply_by(gathered[block, column:], factor, 64)
    multiply_by(sums, factor, 16)


def soften(line, low, high, gathered, column, peaks, sums, row, bits, powers):
    """line[low:high] become exp(score - peak), the rest zero; where the peak rises, sum and outputs follow."""
    for lane in range(low):
        line[lane] = np.float32(UNSEEN)
    for lane in range(high, 64):
        line[lane] = np.float32(UNSEEN)
    peak = max(peaks[row], largest(line))
    if peak > peaks[row]:
        rescale(gathered, column, sums[row * 16:], np.float32(np.exp(np.float64(peaks[row] - peak))))
        peaks[row] = peak
    exponentials_below(line, peak, bits, powers)
    for lane in range(low):
        line[lane] = np.float32(0)
    for lane in range(high, 64):
        line[lane] = np.float32(0)
    add_up(line, sums[row * 16:])


def soften_rows(positions, first, block, n_rows, row_tile, group, window, cap, tile, scores, line, weights,
                gathered, peaks, sums, bits, powers):
    """Scores [tile * 64] of one tile of rows and positions to softmax weights of the same shape."""
    for j in range(tile):
        row = row_tile * tile + j
        low = 0
        high = 0
        if row < n_rows:
            position = positions[first + row // group]
            if window > 0:
                low = max(0, position - window + 1 - block * 64)
            high = min(64, position + 1 - block * 64)
        if low < high:
            #omp simd
            for lane in range(64):
                line[lane] = scores[j * 64 + lane]
            if cap > np.float32(0):
                cap_scores(line, cap, bits, powers)
            soften(line, low, high, gathered, j * 64, peaks, sums, row, bits, powers)
        else:
            #omp simd
            for lane in range(64):
                line[lane] = np.float32(0)
        #omp simd
        for lane in range(64):
            weights[j * 64 + lane] = line[lane]
