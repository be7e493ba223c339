"""Packed Q6_K: nibbles and bit pairs of four columns to whole values, for the kernels of products.

A half of a block has values k, k + 32, k + 64 and k + 96 in nibble bytes k and k + 32 and in pair byte k.  They lie in three
words, of an even and an odd row each, and leave in the same three, as q - 32 in six bits: a of the even row, a of the odd
row and the upper four bits of c of the even row; b and c of the odd row likewise; d of both rows and the lower two bits of
both c, where a to d are the four columns.  So a product needs two steps to bring a value to the top of 16 bits, not five.
"""

import numpy as np


def field(nibbles, pairs, nibble_shift, pair_shift):
    """q - 32 of one row, in six bits; the words hold its nibble and its pair at these places."""
    nibble = (nibbles >> nibble_shift) & np.uint16(15)
    return (nibble | (((pairs >> pair_shift) & np.uint16(3)) << np.uint16(4))) ^ np.uint16(32)


def fuse_three(data, first):
    #omp simd
    for lane in range(32):
        low = data[first + lane]
        high = data[first + 32 + lane]
        pairs = data[first + 64 + lane]
        even_c = field(low, pairs, np.uint16(4), np.uint16(4))
        odd_c = field(low, pairs, np.uint16(12), np.uint16(12))
        data[first + lane] = ((field(low, pairs, np.uint16(0), np.uint16(0)) << np.uint16(10))
                              | (field(low, pairs, np.uint16(8), np.uint16(8)) << np.uint16(4)) | (even_c >> np.uint16(2)))
        data[first + 32 + lane] = ((field(high, pairs, np.uint16(0), np.uint16(2)) << np.uint16(10))
                                   | (field(high, pairs, np.uint16(8), np.uint16(10)) << np.uint16(4)) | (odd_c >> np.uint16(2)))
        data[first + 64 + lane] = ((field(high, pairs, np.uint16(4), np.uint16(6)) << np.uint16(10))
                                   | (field(high, pairs, np.uint16(12), np.uint16(14)) << np.uint16(4))
                                   | ((even_c & np.uint16(3)) << np.uint16(2)) | (odd_c & np.uint16(3)))


# pythran export fuse_q6_k(uint16[:,:] order(C), int64[:,:] order(C), int)
def fuse_q6_k(data, pieces, threads):
    """data: uint16[groups, blocks * 6720], changed in place in the groups of pieces, as `interleave` takes them."""
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range((pieces[part, 1] + 63) // 64):
            group = pieces[part, 2] + g
            for block in range(data.shape[1] // 6720):
                for piece in range(4):
                    for k in range(16):
                        fuse_three(data[group], block * 6720 + 64 + piece * 1664 + 128 + k * 96)
