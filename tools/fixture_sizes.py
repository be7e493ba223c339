"""Sizes and position settings that tiny models share (`family_fixtures.py`).

Numbers differ from each other where a model allows it, so that a transposed matrix or a swapped count shows.
"""

from __future__ import annotations

from typing import Any

CONTEXT = 128

COMMON = {"vocab_size": 67, "max_position_embeddings": CONTEXT, "bos_token_id": 1, "eos_token_id": 2}
GROUPED = {
    **COMMON,
    "hidden_size": 40,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 5,
    "num_key_value_heads": 1,
}
"""Heads of 8, all five sharing one key and value."""
PAIRED = {
    **COMMON,
    "hidden_size": 48,
    "intermediate_size": 60,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
}
"""Heads of 8, three sharing a key and value."""
UNSHARED = {
    **COMMON,
    "hidden_size": 36,
    "intermediate_size": 52,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
}
EVERY_HEAD = {**UNSHARED, "num_key_value_heads": 3}
"""Heads of 12 with a key and value each."""
NARROW = {
    **COMMON,
    "hidden_size": 32,
    "intermediate_size": 44,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
"""Where many layers are needed, or experts."""
EXPERTS = {**NARROW, "num_experts_per_tok": 2}
WIDE_HEADS = {"head_dim": 12}
"""Heads whose sizes do not add up to the width."""

LINEAR = {"rope_type": "linear", "factor": 2.5, "rope_theta": 10000.0}
YARN = {
    "rope_type": "yarn",
    "factor": 4.0,
    "rope_theta": 10000.0,
    "original_max_position_embeddings": 32,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
    "rope_theta": 5000.0,
}


def long_rope(n_pairs: int, original: int) -> dict[str, Any]:
    """LongRoPE with factors that rise over the pairs, trained on `original` positions."""
    return {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "original_max_position_embeddings": original,
        "short_factor": [round(1.0 + 0.07 * i, 3) for i in range(n_pairs)],
        "long_factor": [round(1.2 + 0.9 * i, 3) for i in range(n_pairs)],
    }
