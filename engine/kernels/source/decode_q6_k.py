"""Panels of Q6_K; the format is told in matvec_q6_k.py."""

import numpy as np

from .interleaved import half_scales


def one_scale(packed, d, scales):
    for row in range(64):
        scales[row] = np.float32(np.int8(packed[row])) * d[row]


def low_nibbles(nibbles, pairs, mask, shift, scales, out):
    """Values k, or k + 32, of a half: low nibble and a bit pair that moves up."""
    middle = np.float32(32)
    #omp simd
    for lane in range(32):
        six = (nibbles[lane] & np.uint8(15)) | ((pairs[lane] & mask) << shift)
        out[lane] = (np.float32(six) - middle) * scales[lane]


def high_nibbles(nibbles, pairs, mask, shift, scales, out):
    """Values k + 64, or k + 96: high nibble and a bit pair that moves down."""
    middle = np.float32(32)
    #omp simd
    for lane in range(32):
        six = (nibbles[lane] >> np.uint8(4)) | ((pairs[lane] & mask) >> shift)
        out[lane] = (np.float32(six) - middle) * scales[lane]


def decode_128(nibbles, pairs, first, second, scales):
    for half in range(first.shape[0]):
        lanes = half * 32
        for k in range(first.shape[1] // 64):
            at = k * 64 + lanes
            scale = k // 16 * 64 + lanes
            target = k * 32
            low_nibbles(nibbles[at:], pairs[at:], np.uint8(3), np.uint8(4), scales[scale:], first[half, target:])
            low_nibbles(nibbles[at + 2048:], pairs[at:], np.uint8(12), np.uint8(2), scales[scale + 128:],
                        first[half, target + 1024:])
            high_nibbles(nibbles[at:], pairs[at:], np.uint8(48), np.uint8(0), scales[scale + 256:], second[half, target:])
            high_nibbles(nibbles[at + 2048:], pairs[at:], np.uint8(192), np.uint8(2), scales[scale + 384:],
                         second[half, target + 1024:])


def decode_block(block, panel, first, bits, floats, d, scales, unused):
    half_scales(block[208 * 64:], bits, floats, d)
    for j in range(scales.shape[0] // 64):
        one_scale(block[(192 + j) * 64:], d, scales[j * 64:])
    for part in range(scales.shape[0] // 512):
        decode_128(block[part * 4096:], block[8192 + part * 2048:], panel[first + part * 2], panel[first + part * 2 + 1],
                   scales[part * 512:])


# pythran export decode(uint8[:,:] order(C), float32[:,:,:,:] order(C), int32[:,:] order(C), float32[:,:,:] order(C), int,
#                       int)
def decode(data, panels, bits, scratch, first_group, threads):
    """data: uint8[all groups, blocks * 210 * 64]; panels: float32[groups, col blocks, 2, 64 * 32], overwritten with the
    groups from first_group on: rows are 32 lanes of two halves.  Scratch: bits int32[threads, 64], scratch
    float32[threads, 3, 1024].
    """
    n_groups = panels.shape[0]
    n_blocks = data.shape[1] // 13440
    floats = bits.view(np.float32)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            for block in range(n_blocks):
                decode_block(data[first_group + g, block * 13440:], panels[g], block * 4, bits[part],
                             floats[part], scratch[part, 0], scratch[part, 1], scratch[part, 2])
