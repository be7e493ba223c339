"""Puts keys and values into their ring slots of an 8-bit KV cache: 64 numbers of a head share a scale."""

import numpy as np


def scale_of(numbers, count):
    """The largest of count numbers is to become 127.  NaN where one is infinite or no number, so that it shows."""
    largest = np.float32(0)
    for i in range(count):
        size = abs(numbers[i])
        if size > largest or size != size:
            largest = size
    if largest <= np.float32(3.4e38):
        return largest / np.float32(127)
    return np.float32(np.nan)


def inverse_of(scale):
    """1 / scale, or 0 where a scale is none or its inverse is too large: then all numbers become 0."""
    return np.float32(1) / scale if scale > np.float32(1e-37) else np.float32(0)


def rounded(number, inverse):
    # Truncation after adding 128.5 rounds to the nearest integer for negative numbers too.
    return np.int8(np.int32(number * inverse + np.float32(128.5)) - np.int32(128))


# pythran export store_kv_q8(float32[:,:,:] order(C), float32[:,:,:] order(C), int32[:] order(C), int32[:] order(C),
#                            int8[:,:,:,:,:] order(C), int8[:,:,:,:] order(C),
#                            float32[:,:,:,:,:] order(C), float32[:,:,:,:] order(C))
def store_kv_q8(k, v, positions, sequences, keys, values, key_scales, value_scales):
    """k, v: float32[n, heads, head_size]; positions, sequences: int32[n];
    keys: int8[sequences, heads, capacity / 64, head_size, 64]; values: int8[sequences, heads, capacity, head_size];
    key_scales: float32[sequences, heads, capacity / 64, head_size / 64, 64]; value_scales: float32[sequences, heads,
    capacity, head_size / 64], each rounded up.
    """
    capacity = values.shape[2]
    head_size = values.shape[3]
    for token in range(k.shape[0]):
        slot = positions[token] % capacity
        sequence = sequences[token]
        for head in range(k.shape[1]):
            for block in range(value_scales.shape[3]):
                count = min(64, head_size - block * 64)
                key_scale = scale_of(k[token, head, block * 64:], count)
                value_scale = scale_of(v[token, head, block * 64:], count)
                key_scales[sequence, head, slot // 64, block, slot % 64] = key_scale
                value_scales[sequence, head, slot, block] = value_scale
                per_key = inverse_of(key_scale)
                per_value = inverse_of(value_scale)
                for i in range(block * 64, block * 64 + count):
                    key = k[token, head, i] if per_key > np.float32(0) else np.float32(0)
                    value = v[token, head, i] if per_value > np.float32(0) else np.float32(0)
                    keys[sequence, head, slot // 64, i, slot % 64] = rounded(key, per_key)
                    values[sequence, head, slot, i] = rounded(value, per_value)
