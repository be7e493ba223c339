"""Logits of a converted model by llama.cpp; run by the Python of an environment that has llama-cpp-python.

    python run_family_in_llama.py MODEL.gguf IDS.npy LOGITS.npy CONTEXT_SIZE

Keys and values are kept in float32, and the attention is the plain one: what differs from the truth then is
the family, not the rounding.  llama.cpp ends the process for some files, so there is one for each.
"""

from __future__ import annotations

import ctypes
import sys

import llama_cpp
import numpy as np

FLASH_ATTENTION_OFF = 0


def main() -> int:
    model_path, ids_path, logits_path, context_size = sys.argv[1:]
    ids = np.load(ids_path)
    llama_cpp.llama_backend_init()
    model = llama_cpp.llama_model_load_from_file(model_path.encode(), llama_cpp.llama_model_default_params())
    if not model:
        return 3
    settings = llama_cpp.llama_context_default_params()
    settings.n_ctx = int(context_size)
    settings.n_batch = settings.n_ubatch = int(context_size)
    settings.n_threads = settings.n_threads_batch = 1
    settings.type_k = settings.type_v = llama_cpp.GGML_TYPE_F32
    settings.flash_attn_type = FLASH_ATTENTION_OFF
    context = llama_cpp.llama_init_from_model(model, settings)
    if not context:
        return 4
    tokens = (llama_cpp.llama_token * len(ids))(*map(int, ids))
    batch = llama_cpp.llama_batch_get_one(tokens, len(ids))
    batch.logits = (ctypes.c_int8 * len(ids))(*[1] * len(ids))
    if llama_cpp.llama_decode(context, batch):
        return 5
    n_vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
    pointer = llama_cpp.llama_get_logits(context)
    np.save(logits_path, np.ctypeslib.as_array(pointer, (len(ids), n_vocabulary)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
