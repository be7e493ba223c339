"""llama.cpp as the other side of a comparison; run by the Python of an environment that has llama-cpp-python.

Started by `benchmarks.sides`, which tells the protocol.  Only llama.cpp's own functions are between the
clocks: one `llama_decode` for a prompt of up to 512 tokens, one per token for writing, and NumPy's argmax of
the logits.  Everything is at llama.cpp's defaults (memory map, re-laid weights, flash attention where it
chooses so, a KV cache in half precision), except the threads and the batch: 512 tokens at once.
"""

from __future__ import annotations

import ctypes
import json
import resource
import sys
import time

import llama_cpp
import numpy as np

BATCH = 512
FIRST_IDS = 1000


class Meter:
    """The same measurements as `app.measurements.speed.SpeedMeter`, with llama.cpp."""

    def __init__(self, path: str, n_context: int, n_threads: int) -> None:
        self.model = llama_cpp.llama_model_load_from_file(
            path.encode(), llama_cpp.llama_model_default_params()
        )
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx = n_context
        settings.n_batch = settings.n_ubatch = BATCH
        settings.n_threads = settings.n_threads_batch = n_threads
        self.context = llama_cpp.llama_init_from_model(self.model, settings)
        self.memory = llama_cpp.llama_get_memory(self.context)
        self.n_vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        self.length = 0

    def read(self, n_tokens: int, depth: int) -> float:
        self._keep(depth)
        ids = [index % FIRST_IDS for index in range(n_tokens)]
        started = time.perf_counter()
        self._decode(ids)
        self._likeliest()
        return time.perf_counter() - started

    def write(self, n_tokens: int, depth: int) -> float:
        # A prompt of one token at least, and its logits, as on the other side.
        self._keep(max(depth, 1) - 1)
        self._decode([0])
        token = self._likeliest()
        started = time.perf_counter()
        for _ in range(n_tokens):
            self._decode([token])
            token = self._likeliest()
        return time.perf_counter() - started

    def all_logits(self, ids: list[int], chunk: int) -> np.ndarray:
        """float32[ids, vocabulary], reading chunk ids at once into an empty cache."""
        self._keep(0)
        rows = []
        for start in range(0, len(ids), chunk):
            part = ids[start : start + chunk]
            self._decode(part, all_logits=True)
            pointer = llama_cpp.llama_get_logits(self.context)
            rows.append(np.ctypeslib.as_array(pointer, (len(part), self.n_vocabulary)).copy())
        return np.concatenate(rows)

    def _keep(self, length: int) -> None:
        """Makes the cache hold the first tokens only, reading what is missing of them."""
        if not llama_cpp.llama_memory_seq_rm(self.memory, 0, min(length, self.length), -1):
            llama_cpp.llama_memory_clear(self.memory, True)
            self.length = 0
        self.length = min(length, self.length)
        self._decode([index % FIRST_IDS for index in range(self.length, length)])

    def _decode(self, ids: list[int], all_logits: bool = False) -> None:
        """Reads ids, and computes the logits of the last or of all (then at most BATCH ids)."""
        for start in range(0, len(ids), BATCH):
            part = ids[start : start + BATCH]
            tokens = (llama_cpp.llama_token * len(part))(*part)  # a batch only points to them
            batch = llama_cpp.llama_batch_get_one(tokens, len(part))
            if all_logits:
                batch.logits = (ctypes.c_int8 * len(part))(*[1] * len(part))
            if status := llama_cpp.llama_decode(self.context, batch):
                raise RuntimeError(f"llama_decode answered {status}")
            self.length += len(part)

    def _likeliest(self) -> int:
        pointer = llama_cpp.llama_get_logits_ith(self.context, -1)
        return int(np.argmax(np.ctypeslib.as_array(pointer, (self.n_vocabulary,))))


@llama_cpp.llama_log_callback
def _silence(level: int, text: bytes, data: ctypes.c_void_p) -> None:
    """Its messages, thousands of them, would cost time."""


def main() -> None:
    task = json.loads(sys.argv[1])
    started = time.perf_counter()
    llama_cpp.llama_log_set(_silence, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    meter = Meter(task["model"], task["context"], task["threads"])
    meter.read(task["first_prompt"], 0)
    seconds = time.perf_counter() - started
    _answer({"load_to_first_token": seconds, "version": f"llama-cpp-python {llama_cpp.__version__}"})
    meter.read(8, 0)
    meter.write(2, 0)
    for line in sys.stdin:
        order = json.loads(line)
        match order["what"]:
            case "read":
                _answer({"seconds": meter.read(order["tokens"], order["depth"])})
            case "write":
                _answer({"seconds": meter.write(order["tokens"], order["depth"])})
            case "memory":
                _answer({"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024})
            case "logits":
                np.save(order["file"], meter.all_logits(order["ids"], order["chunk"]))
                _answer({})


def _answer(content: dict[str, object]) -> None:
    print(json.dumps(content), flush=True)


if __name__ == "__main__":
    main()
