"""Puts keys and values into their ring slots of a float32 KV cache."""


# pythran export store_kv_f32(float32[:,:,:] order(C), float32[:,:,:] order(C), int32[:] order(C), int32[:] order(C),
#                             float32[:,:,:,:,:] order(C), float32[:,:,:,:] order(C))
def store_kv_f32(k, v, positions, sequences, keys, values):
    """k, v: float32[n, heads, head_size]; positions, sequences: int32[n];
    keys: [sequences, heads, capacity / 64, head_size, 64]; values: [sequences, heads, capacity, head_size].
    """
    capacity = values.shape[2]
    for token in range(k.shape[0]):
        slot = positions[token] % capacity
        sequence = sequences[token]
        for head in range(k.shape[1]):
            for i in range(k.shape[2]):
                keys[sequence, head, slot // 64, i, slot % 64] = k[token, head, i]
                values[sequence, head, slot, i] = v[token, head, i]
