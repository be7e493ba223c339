"""Puts keys and values, rounded to float16 (nearest even), into their ring slots of the KV cache."""

import numpy as np


def to_half(bits):
    """float32 bits to float16 bits, as IEEE 754 rounds: overflow to infinity, NaN stays NaN."""
    sign = (bits >> np.int32(16)) & np.int32(0x8000)
    rest = bits & np.int32(0x7FFFFFFF)
    if rest > np.int32(0x7F800000):
        half = np.int32(0x7E00)
    elif rest >= np.int32(0x477FF000):
        half = np.int32(0x7C00)
    elif rest >= np.int32(0x38800000):
        # The carry of a rounded-up mantissa raises the exponent, as it should.
        half = (rest + np.int32(0xFFF) + ((rest >> np.int32(13)) & np.int32(1)) - np.int32(0x38000000)) >> np.int32(13)
    elif rest < np.int32(0x33000000):
        half = np.int32(0)
    else:
        shift = np.int32(126) - (rest >> np.int32(23))
        mantissa = (rest & np.int32(0x7FFFFF)) | np.int32(0x800000)
        half = mantissa >> shift
        dropped = mantissa - (half << shift)
        middle = np.int32(1) << (shift - np.int32(1))
        if dropped > middle or (dropped == middle and (half & np.int32(1)) == np.int32(1)):
            half += np.int32(1)
    return np.uint16(sign | half)


# pythran export store_kv(int32[:,:,:] order(C), int32[:,:,:] order(C), int32[:] order(C), int32[:] order(C),
#                         uint16[:,:,:,:,:] order(C), uint16[:,:,:,:] order(C))
def store_kv(k, v, positions, sequences, keys, values):
    """k, v: float32 bits as int32[n, heads, head_size]; positions, sequences: int32[n];
    keys: uint16[sequences, heads, capacity / 64, head_size, 64]; values: uint16[sequences, heads, capacity, head_size].
    """
    capacity = values.shape[2]
    for token in range(k.shape[0]):
        slot = positions[token] % capacity
        sequence = sequences[token]
        for head in range(k.shape[1]):
            for i in range(k.shape[2]):
                keys[sequence, head, slot // 64, i, slot % 64] = to_half(k[token, head, i])
                values[sequence, head, slot, i] = to_half(v[token, head, i])
