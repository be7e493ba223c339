"""Activations to 16-bit fixed point, in the order in which products read them (why and how: fixed.py).

Numbers below 1e-19, whose squares are no normal float32, may count as zero.
"""

import numpy as np


def norm_of(x, first, lanes):
    """The Euclidean norm of 32 numbers."""
    #omp simd
    for lane in range(16):
        lanes[lane] = x[first + lane] * x[first + lane] + x[first + 16 + lane] * x[first + 16 + lane]
    total = np.float32(0)
    for lane in range(16):
        total += lanes[lane]
    return np.sqrt(total)


def round_numbers(x, first, factor, rounded):
    # truncation rounds down once the number is positive
    half = np.float32(32768.5)
    offset = np.int32(32768)
    #omp simd
    for i in range(32):
        rounded[i] = np.int32(x[first + i] * factor + half) - offset


def pack_block(x, block, out, place, tile, lanes, rounded):
    """32 numbers to out[block, i * tile + place]; gives their scale back."""
    norm = norm_of(x, block * 32, lanes)
    round_numbers(x, block * 32, np.float32(5780) / norm if norm > np.float32(1e-19) else np.float32(0), rounded)
    for i in range(32):
        out[block, i * tile + place] = np.int16(rounded[i])
    return norm / np.float32(5780)


def sum_of(rounded):
    total = np.int32(0)
    for i in range(32):
        total += rounded[i]
    return np.float32(total)


# pythran export tokens_to_fixed(float32[:,:] order(C), int16[:,:,:] order(C), float32[:,:,:] order(C),
#                                float32[:,:,:] order(C), float32[:,:,:] order(C), int32[:,:] order(C), int, int)
def tokens_to_fixed(x, packed, scales, sums, scratch, rounded, tile, threads):
    """x: float32[n, cols]; packed: int16[tiles, col blocks, 32 * tile], scales and sums: float32[tiles, col blocks,
    tile], overwritten, with zeros beyond the last token: x = packed * scale, and the sums of such x.
    Scratch: float32[threads, 3, 1024] and int32[threads, 128].
    """
    n = x.shape[0]
    n_tiles = packed.shape[0]
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for index in range(part * n_tiles // threads, (part + 1) * n_tiles // threads):
            for token in range(tile):
                for block in range(packed.shape[1]):
                    if index * tile + token < n:
                        scale = pack_block(x[index * tile + token], block, packed[index], token, tile, scratch[part, 0],
                                           rounded[part])
                        scales[index, block, token] = scale
                        sums[index, block, token] = scale * sum_of(rounded[part])
                    else:
                        scales[index, block, token] = np.float32(0)
                        sums[index, block, token] = np.float32(0)
                        for i in range(32):
                            packed[index, block, i * tile + token] = np.int16(0)
