"""Causerie's inference engine: GGUF files, quantised kernels, KV cache, sessions.  No Qt, no network."""
