"""Which tiny models `make_family_fixtures.py` makes: one row for each family of the engine, and for each
variant of it that takes another path through the converter or the graph.

Windows are shorter than the prompt, and there are enough layers for every pattern of layers to show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fixture_sizes import (
    COMMON,
    CONTEXT,
    EVERY_HEAD,
    EXPERTS,
    GROUPED,
    LINEAR,
    LLAMA3,
    NARROW,
    PAIRED,
    UNSHARED,
    WIDE_HEADS,
    YARN,
    long_rope,
)


@dataclass(frozen=True)
class FamilyFixture:
    """model_type and settings are those of a configuration of `transformers`.

    classic: write config.json as releases before version 5 did (``rope_theta`` and ``rope_scaling`` beside
    the sizes), as nearly all published models have it; otherwise with ``rope_parameters``.
    context_size: what the engine is to be loaded with, in tokens: LongRoPE chooses its factors by it.  256 is
    the least that llama.cpp takes.
    """

    name: str
    model_type: str
    settings: Mapping[str, Any]
    classic: bool = True
    context_size: int = CONTEXT


FIXTURES = (
    FamilyFixture("llama", "llama", {**PAIRED, "rms_norm_eps": 1e-5}),
    FamilyFixture("llama-one-kv-head", "llama", {**GROUPED, "tie_word_embeddings": True}, classic=False),
    FamilyFixture("llama-every-head", "llama", {**EVERY_HEAD, "rms_norm_eps": 1e-5}),
    FamilyFixture(
        "llama-biases", "llama", {**PAIRED, **WIDE_HEADS, "attention_bias": True, "mlp_bias": True}
    ),
    FamilyFixture("llama-rope-linear", "llama", {**EVERY_HEAD, "rope_parameters": LINEAR}),
    FamilyFixture("llama-rope-yarn", "llama", {**PAIRED, **WIDE_HEADS, "rope_parameters": YARN}),
    FamilyFixture("llama-rope-llama3", "llama", {**PAIRED, "rope_parameters": LLAMA3}),
    FamilyFixture(
        "llama-rope-llama3-new",
        "llama",
        {**PAIRED, "tie_word_embeddings": True, "rope_parameters": LLAMA3},
        classic=False,
    ),
    FamilyFixture("mistral", "mistral", {**PAIRED, **WIDE_HEADS, "sliding_window": None}),
    FamilyFixture("mistral-sliding", "mistral", {**PAIRED, "sliding_window": 13}),
    FamilyFixture(
        "ministral",
        "ministral",
        {
            **PAIRED,
            **WIDE_HEADS,
            "num_hidden_layers": 3,
            "sliding_window": 11,
            "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
        },
        classic=False,
    ),
    FamilyFixture(
        "ministral3",
        "ministral3",
        {
            **PAIRED,
            **WIDE_HEADS,
            "rope_parameters": {
                "rope_type": "yarn",
                "rope_theta": 10000.0,
                "factor": 8.0,
                "original_max_position_embeddings": 16,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "mscale": 1.0,
                "mscale_all_dim": 1.0,
                "llama_4_scaling_beta": 0.1,
            },
        },
        classic=False,
    ),
    FamilyFixture("mixtral", "mixtral", {**EXPERTS, "num_local_experts": 4}),
    FamilyFixture("qwen2", "qwen2", {**PAIRED, "rms_norm_eps": 1e-6, "tie_word_embeddings": True}),
    FamilyFixture("qwen2-rope-yarn", "qwen2", {**PAIRED, "rope_parameters": YARN}),
    FamilyFixture(
        "qwen2moe",
        "qwen2_moe",
        {
            **EXPERTS,
            "moe_intermediate_size": 20,
            "shared_expert_intermediate_size": 28,
            "num_experts": 6,
        },
    ),
    FamilyFixture("qwen3", "qwen3", {**PAIRED, **WIDE_HEADS, "rope_parameters": {"rope_theta": 1e6}}),
    FamilyFixture("qwen3-tied", "qwen3", {**GROUPED, **WIDE_HEADS, "tie_word_embeddings": True}),
    FamilyFixture(
        "qwen3moe",
        "qwen3_moe",
        {
            **EXPERTS,
            **WIDE_HEADS,
            "moe_intermediate_size": 20,
            "num_experts": 6,
            "norm_topk_prob": True,
        },
    ),
    FamilyFixture("gemma", "gemma", {**GROUPED, **WIDE_HEADS, "hidden_act": "gelu_pytorch_tanh"}),
    FamilyFixture(
        "gemma2",
        "gemma2",
        {
            **NARROW,
            **WIDE_HEADS,
            "num_hidden_layers": 4,
            "query_pre_attn_scalar": 12,
            "sliding_window": 14,
            "attn_logit_softcapping": 5.0,
            "final_logit_softcapping": 6.0,
        },
    ),
    FamilyFixture(
        "gemma3",
        "gemma3_text",
        {
            **NARROW,
            **WIDE_HEADS,
            "num_hidden_layers": 7,
            "query_pre_attn_scalar": 12,
            "sliding_window": 14,
        },
    ),
    FamilyFixture(
        "gemma3-rope-linear",
        "gemma3_text",
        {
            **NARROW,
            "num_hidden_layers": 6,
            "num_key_value_heads": 1,
            "head_dim": 16,
            "query_pre_attn_scalar": 16,
            "sliding_window": 15,
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            },
        },
        classic=False,
    ),
    FamilyFixture("phi2", "phi", {**EVERY_HEAD, "hidden_size": 48, "partial_rotary_factor": 0.5}),
    FamilyFixture(
        "phi3",
        "phi3",
        {**PAIRED, "pad_token_id": 0, "sliding_window": None},
    ),
    FamilyFixture("phi3-sliding", "phi3", {**EVERY_HEAD, "pad_token_id": 0, "sliding_window": 15}),
    FamilyFixture(
        "phi3-longrope-short",
        "phi3",
        {
            **PAIRED,
            "pad_token_id": 0,
            "max_position_embeddings": 512,
            "original_max_position_embeddings": 256,
            "rope_parameters": long_rope(4, 256),
        },
        context_size=256,
    ),
    FamilyFixture(
        "phi3-longrope-long",
        "phi3",
        {
            **PAIRED,
            "pad_token_id": 0,
            "original_max_position_embeddings": 32,
            "rope_parameters": long_rope(4, 32),
        },
    ),
    FamilyFixture(
        "phi4-mini",
        "phi3",
        {
            **NARROW,
            "hidden_size": 64,
            "pad_token_id": 0,
            "tie_word_embeddings": True,
            "original_max_position_embeddings": 32,
            "rope_parameters": {**long_rope(6, 32), "partial_rotary_factor": 0.75},
        },
    ),
    FamilyFixture(
        "granite",
        "granite",
        {
            **PAIRED,
            "embedding_multiplier": 3.0,
            "logits_scaling": 1.7,
            "residual_multiplier": 0.6,
            "attention_multiplier": 0.21,
            "tie_word_embeddings": True,
        },
    ),
    FamilyFixture(
        "granitemoe",
        "granitemoe",
        {
            **EXPERTS,
            "intermediate_size": 20,
            "num_local_experts": 6,
            "embedding_multiplier": 3.0,
            "logits_scaling": 1.7,
            "residual_multiplier": 0.6,
            "attention_multiplier": 0.21,
            "tie_word_embeddings": True,
        },
    ),
    FamilyFixture(
        "granitemoe-shared",
        "granitemoeshared",
        {
            **EXPERTS,
            "intermediate_size": 20,
            "shared_intermediate_size": 28,
            "num_local_experts": 4,
            "embedding_multiplier": 2.0,
            "logits_scaling": 1.5,
            "residual_multiplier": 0.7,
            "attention_multiplier": 0.3,
        },
    ),
    FamilyFixture("olmo2", "olmo2", {**EVERY_HEAD, "pad_token_id": 0}),
    FamilyFixture("olmo2-grouped", "olmo2", {**PAIRED, "pad_token_id": 0}),
    FamilyFixture(
        "olmo3",
        "olmo3",
        {
            **GROUPED,
            "num_hidden_layers": 4,
            "pad_token_id": 0,
            "sliding_window": 14,
            "rope_parameters": {
                "full_attention": YARN,
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            },
        },
        classic=False,
    ),
    FamilyFixture(
        "olmoe",
        "olmoe",
        {
            **EXPERTS,
            "num_key_value_heads": 4,
            "pad_token_id": 0,
            "intermediate_size": 20,
            "num_experts": 6,
        },
    ),
    FamilyFixture("stablelm", "stablelm", {**EVERY_HEAD, "hidden_size": 48, "use_qkv_bias": True}),
    FamilyFixture(
        "stablelm-parallel",
        "stablelm",
        {**NARROW, "hidden_size": 64, "use_parallel_residual": True, "qk_layernorm": True},
    ),
    FamilyFixture("starcoder2", "starcoder2", {**PAIRED, "use_bias": True}),
    FamilyFixture("starcoder2-sliding", "starcoder2", {**GROUPED, "use_bias": True, "sliding_window": 13}),
    FamilyFixture(
        "gpt2",
        "gpt2",
        {
            "vocab_size": 67,
            "n_positions": CONTEXT,
            "n_embd": 36,
            "n_layer": 3,
            "n_head": 3,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
    ),
    FamilyFixture("gptneox", "gpt_neox", {**UNSHARED, "hidden_size": 48}),
    FamilyFixture(
        "gptneox-sequential",
        "gpt_neox",
        {
            **UNSHARED,
            "use_parallel_residual": False,
            "rope_parameters": {"rope_theta": 10000.0, "partial_rotary_factor": 1.0},
        },
        classic=False,
    ),
    FamilyFixture(
        "falcon",
        "falcon",
        {**COMMON, "hidden_size": 40, "num_hidden_layers": 3, "num_attention_heads": 5, "multi_query": True},
    ),
    FamilyFixture(
        "falcon-new",
        "falcon",
        {
            **COMMON,
            "hidden_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 6,
            "num_kv_heads": 2,
            "new_decoder_architecture": True,
        },
    ),
    FamilyFixture(
        "falcon-new-one-norm",
        "falcon",
        {
            **COMMON,
            "hidden_size": 36,
            "ffn_hidden_size": 52,
            "num_hidden_layers": 2,
            "num_attention_heads": 3,
            "num_kv_heads": 1,
            "new_decoder_architecture": True,
            "num_ln_in_parallel_attn": 1,
        },
    ),
    FamilyFixture("command-r", "cohere", {**PAIRED, "pad_token_id": 0, "logit_scale": 0.4}),
    FamilyFixture(
        "command-r-qk-norm",
        "cohere",
        {**PAIRED, "pad_token_id": 0, "logit_scale": 0.4, "use_qk_norm": True},
    ),
    FamilyFixture(
        "cohere2",
        "cohere2",
        {
            **PAIRED,
            "hidden_size": 36,
            "num_attention_heads": 3,
            "num_key_value_heads": 1,
            "num_hidden_layers": 5,
            "pad_token_id": 0,
            "logit_scale": 0.4,
            "sliding_window": 13,
        },
    ),
    FamilyFixture("smollm3", "smollm3", {**GROUPED, "num_hidden_layers": 5, "pad_token_id": 0}),
    FamilyFixture(
        "exaone4",
        "exaone4",
        {**GROUPED, "num_hidden_layers": 5, "sliding_window": 14, "sliding_window_pattern": 4},
    ),
    FamilyFixture(
        "exaone4-global",
        "exaone4",
        {
            **PAIRED,
            "sliding_window": None,
            "tie_word_embeddings": True,
            "layer_types": ["full_attention"] * 2,
            "rope_parameters": {**LLAMA3, "rope_theta": 1e6},
        },
    ),
    FamilyFixture(
        "gpt-oss",
        "gpt_oss",
        {
            **EXPERTS,
            "num_hidden_layers": 4,
            "head_dim": 8,
            "intermediate_size": 20,
            "num_local_experts": 4,
            "sliding_window": 14,
            "rope_parameters": {
                "rope_type": "yarn",
                "rope_theta": 150000.0,
                "factor": 8.0,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "truncate": False,
                "original_max_position_embeddings": 16,
            },
        },
    ),
)
