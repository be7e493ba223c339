"""Weights to the whole numbers of a block whose step is known: the types Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0.

Halves go up (away from zero where quants are signed).  Products are rounded to float32 once, on the way from
float64 where they are exact, so that no compiler's fused multiply-add changes a bit.
"""

import numpy as np


def whole(product, offset, fused):
    if fused:
        return np.int64(np.float32(product + offset))
    scaled = np.float32(product)
    if scaled < np.float32(0):
        return np.int64(scaled - np.float32(offset))
    return np.int64(scaled + np.float32(offset))


# pythran export round_blocks(float32[:,:] order(C), float32[:], float32[:], float, bool, int, int, int8[:,:] order(C), int)
def round_blocks(x, minimums, inverses, offset, fused, least, most, quants, threads):
    """quants[b, i] = whole part of (x[b, i] - minimums[b]) * inverses[b] + offset, within least and most.

    offset: 0.5 to round to nearest, more for quants that count from a zero.  fused: the offset is added before
    the product is rounded, as a fused multiply-add does.
    """
    #omp parallel for num_threads(threads)
    for block in range(x.shape[0]):
        inverse = np.float64(inverses[block])
        for i in range(x.shape[1]):
            quant = whole(np.float64(x[block, i] - minimums[block]) * inverse, offset, fused)
            quants[block, i] = np.int8(min(max(quant, least), most))
