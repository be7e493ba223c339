"""How fast a model reads a prompt and writes a reply on this machine: medians of some rounds."""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from typing import Any

import numpy as np

from app.commands.common import add_json, add_loading, add_model, loaded_model, print_json
from app.commands.machine import kernel_facts, peak_memory
from app.terminal import ProgressLine
from engine.errors import SettingsError
from engine.memory import readable_bytes, usable_cores
from engine.model import LoadedModel
from engine.session import Session

FIRST_IDS = 1000
"""The prompt runs through this many ids of the vocabulary; which ones has no influence on the speed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "-p", "--prompt-tokens", type=int, default=512, metavar="N", help="tokens to read (default 512)"
    )
    parser.add_argument(
        "-n", "--new-tokens", type=int, default=64, metavar="N", help="tokens to write (default 64)"
    )
    parser.add_argument("--repeat", type=int, default=3, metavar="R", help="rounds (default 3)")
    add_loading(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    _check(options)
    started = time.perf_counter()
    with loaded_model(options) as model:
        load_seconds = time.perf_counter() - started
        rounds = []
        with ProgressLine() as line:
            _measure(model, 8, 2)  # the first run wakes threads and pages
            for number in range(options.repeat):
                line.show(f"round {number + 1} of {options.repeat}")
                rounds.append(_measure(model, options.prompt_tokens, options.new_tokens))
        content = {
            "model": model.description.name,
            "family": model.description.architecture,
            "prompt_tokens": options.prompt_tokens,
            "new_tokens": options.new_tokens,
            "repeat": options.repeat,
            "read_tokens_per_second": options.prompt_tokens / statistics.median(read for read, _ in rounds),
            "write_tokens_per_second": options.new_tokens / statistics.median(write for _, write in rounds),
            "load_seconds": load_seconds,
            "peak_memory_bytes": peak_memory(),
            "estimated_memory_bytes": model.memory.total,
            "context_size": model.context_size,
            "threads": options.threads or usable_cores(),
            "backend": options.backend,
            **kernel_facts(),
        }
    if options.json:
        print_json(content)
    else:
        _print(content)
    return 0


def _check(options: argparse.Namespace) -> None:
    """Raises `SettingsError`; makes the context large enough where none was asked for."""
    for name in ("prompt_tokens", "new_tokens", "repeat"):
        if getattr(options, name) < 1:
            raise SettingsError(f"--{name.replace('_', '-')} must be at least 1.")
    needed = options.prompt_tokens + options.new_tokens
    options.context = options.context or max(needed, 16)
    if options.context < needed:
        raise SettingsError(f"A context of {options.context} tokens cannot hold {needed}.")


def _measure(model: LoadedModel, n_read: int, n_write: int) -> tuple[float, float]:
    """Seconds to read n_read tokens, and to write n_write after them, each the likeliest."""
    ids = [index % min(FIRST_IDS, model.description.n_vocabulary) for index in range(n_read)]
    with contextlib.closing(Session(model)) as session:
        started = time.perf_counter()
        for _ in session.prefill(ids, lambda: False):
            pass
        read_seconds = time.perf_counter() - started
        started = time.perf_counter()
        for _ in range(n_write):
            assert session.logits is not None, "the whole prompt was read"
            session.decode(int(np.argmax(session.logits)))
        return read_seconds, time.perf_counter() - started


def _print(content: dict[str, Any]) -> None:
    print(f"model:   {content['model']} ({content['family']})")
    print(f"reading: {content['read_tokens_per_second']:.1f} tokens/s ({content['prompt_tokens']} tokens)")
    print(f"writing: {content['write_tokens_per_second']:.1f} tokens/s ({content['new_tokens']} tokens)")
    print(f"loading: {content['load_seconds']:.2f} s")
    print(f"memory:  {readable_bytes(content['peak_memory_bytes'])} at most")
    print(
        f"with:    {content['backend']}, {content['threads']} threads, {content['cpu_level']} kernels "
        f"({'compiled' if content['kernels_compiled'] else 'NOT compiled'})"
    )
