"""Tiles of 64 positions of a KV cache, as float32 panels for `panel_rows`.

float16 has no type in Pythran: its bits are moved to where float32 has them and multiplied (docs/kernels.md).
8-bit numbers are multiplied with the scale of their position and their 64 numbers of a head; float32 is copied.
"""

import numpy as np


def clear(values, start):
    for i in range(start, values.shape[0]):
        values[i] = np.float32(0)


def widen(halves, bits, floats, count):
    """count float16 bits, as int16, to floats, which bits is the int32 view of.

    Infinities and NaN stay what they are, so that damage shows.
    """
    # 0x8FFFE000: the sign, which a widened int16 carries in all upper bits, once; five bits of exponent; the mantissa.
    moved = np.int32(-0x70002000)
    to_mantissa = np.int32(13)
    exponent = np.int32(0x0F800000)
    infinite = np.int32(0x70000000)
    finite = np.int32(0)
    to_single = np.float32(2.0**112)
    #omp simd
    for i in range(count):
        x = (np.int32(halves[i]) << to_mantissa) & moved
        bits[i] = x | (infinite if (x & exponent) == exponent else finite)
    #omp simd
    for i in range(count):
        floats[i] *= to_single


def decode_half_keys(keys, bits, panel):
    """[head_size * 64] to [head blocks, 64 * 64], bits its int32 view; what lies beyond the head stays zero."""
    for block in range(panel.shape[0]):
        widen(keys[block * 4096:], bits[block], panel[block], min(4096, keys.shape[0] - block * 4096))


def decode_half_values(values, n_slots, bits, panel):
    """[slots, head_size] to [head blocks, 64 * 64]; positions not asked for become zero."""
    head_size = values.shape[1]
    if head_size == 64:
        # One long run is quicker than many short ones.
        widen(values[0], bits[0], panel[0], n_slots * 64)
    else:
        for position in range(n_slots):
            for block in range(panel.shape[0]):
                width = min(64, head_size - block * 64)
                widen(values[position, block * 64:], bits[block, position * 64:], panel[block, position * 64:], width)
    for block in range(panel.shape[0]):
        clear(panel[block], n_slots * 64)


def copy(numbers, out, count):
    #omp simd
    for i in range(count):
        out[i] = numbers[i]


def copy_keys(keys, panel):
    """[head_size * 64] of float32, as `decode_half_keys`."""
    for block in range(panel.shape[0]):
        copy(keys[block * 4096:], panel[block], min(4096, keys.shape[0] - block * 4096))


def copy_values(values, n_slots, panel):
    """[slots, head_size] of float32, as `decode_half_values`."""
    for position in range(n_slots):
        for block in range(panel.shape[0]):
            width = min(64, values.shape[1] - block * 64)
            copy(values[position, block * 64:], panel[block, position * 64:], width)
    for block in range(panel.shape[0]):
        clear(panel[block], n_slots * 64)


def scale_each(numbers, scales, out):
    #omp simd
    for lane in range(64):
        out[lane] = np.float32(numbers[lane]) * scales[lane]


def scale_all(numbers, scale, out, count):
    #omp simd
    for i in range(count):
        out[i] = np.float32(numbers[i]) * scale


def decode_byte_keys(keys, scales, panel):
    """[head_size * 64] and scales [head blocks, 64], as `decode_half_keys`."""
    for i in range(keys.shape[0] // 64):
        scale_each(keys[i * 64:], scales[i // 64], panel[i // 64, i % 64 * 64:])


def decode_byte_values(values, scales, n_slots, panel):
    """[slots, head_size] and scales [slots, head blocks], as `decode_half_values`."""
    head_size = values.shape[1]
    for position in range(n_slots):
        for block in range(panel.shape[0]):
            width = min(64, head_size - block * 64)
            scale_all(values[position, block * 64:], scales[position, block], panel[block, position * 64:], width)
    for block in range(panel.shape[0]):
        clear(panel[block], n_slots * 64)
