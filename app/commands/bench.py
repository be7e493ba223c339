"""How fast a model reads a prompt, writes a reply and starts on this machine, beside how fast memory is.

In order: reading and writing, medians of some rounds; then, the model closed again so that nothing is held
twice, the start, in another process; last, how fast this machine reads memory.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from typing import Any

from app.commands.common import (
    add_json,
    add_loading,
    add_model,
    loaded_model,
    loading_arguments,
    print_json,
)
from app.commands.machine import kernel_facts, kernels_in_use, peak_memory
from app.library.known_models import model_path
from app.measurements.cold_start import seconds_to_first_token
from app.measurements.memory_bandwidth import memory_bandwidth
from app.measurements.speed import SpeedMeter, bytes_per_token
from app.terminal import ProgressLine
from engine.errors import OutOfMemoryError, SettingsError
from engine.memory import readable_bytes, usable_cores

LEAST_CONTEXT = 16
"""Tokens: what measuring the start needs."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add = parser.add_argument
    add("-p", "--prompt-tokens", type=int, default=512, metavar="N", help="tokens to read (default 512)")
    add("-n", "--new-tokens", type=int, default=128, metavar="N", help="tokens to write (default 128)")
    add("--depth", type=int, default=0, metavar="D", help="tokens already in the KV cache (default 0)")
    add("--repeat", type=int, default=3, metavar="R", help="rounds (default 3)")
    add_loading(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    _check(options)
    threads = options.threads or usable_cores()
    content = _measure(options, threads)
    with ProgressLine() as line:
        line.show("starting another process")
        content["first_token_seconds"] = seconds_to_first_token(
            model_path(options.file), loading_arguments(options)
        )
        line.show("reading memory")
        content["memory_bandwidth"] = _bandwidth(threads)
    content["share_of_bandwidth"] = (
        content["weight_bytes_per_token"] * content["write_tokens_per_second"] / content["memory_bandwidth"]
    )
    if options.json:
        print_json(content)
    else:
        _print(content)
    return 0


def _check(options: argparse.Namespace) -> None:
    """Raises `SettingsError`; makes the context large enough where none was asked for."""
    for name, least in (("prompt_tokens", 1), ("new_tokens", 1), ("repeat", 1), ("depth", 0)):
        if getattr(options, name) < least:
            raise SettingsError(f"--{name.replace('_', '-')} must be at least {least}.")
    # Writing behind nothing still needs one token to begin with.
    needed = max(options.depth + options.prompt_tokens, max(options.depth, 1) + options.new_tokens)
    needed = max(needed, LEAST_CONTEXT)
    options.context = options.context or needed
    if options.context < needed:
        raise SettingsError(f"A context of {options.context} tokens cannot hold {needed}.")


def _measure(options: argparse.Namespace, threads: int) -> dict[str, Any]:
    """All that needs the model in this process."""
    started = time.perf_counter()
    with loaded_model(options) as model, contextlib.closing(SpeedMeter(model)) as meter:
        load_seconds = time.perf_counter() - started
        reading, writing = [], []
        with ProgressLine() as line:
            line.show("warming up")
            meter.warm_up()
            for number in range(options.repeat):
                line.show(f"round {number + 1} of {options.repeat}")
                reading.append(meter.read(options.prompt_tokens, options.depth))
                writing.append(meter.write(options.new_tokens, options.depth))
        return {
            "model": model.description.name,
            "family": model.description.architecture,
            "prompt_tokens": options.prompt_tokens,
            "new_tokens": options.new_tokens,
            "depth": options.depth,
            "repeat": options.repeat,
            "read_tokens_per_second": options.prompt_tokens / statistics.median(reading),
            "write_tokens_per_second": options.new_tokens / statistics.median(writing),
            "load_seconds": load_seconds,
            "weight_bytes_per_token": bytes_per_token(model),
            "peak_memory_bytes": peak_memory(),
            "estimated_memory_bytes": model.memory.peak,
            "context_size": model.context_size,
            "threads": threads,
            "backend": options.backend,
            "kernels": kernels_in_use(),
            **kernel_facts(),
        }


def _bandwidth(threads: int) -> float:
    try:
        return memory_bandwidth(threads)
    except MemoryError:
        raise OutOfMemoryError("There is too little memory left to measure how fast it is read.") from None


def _print(content: dict[str, Any]) -> None:
    behind = f" behind {content['depth']} others" if content["depth"] else ""
    compiled = "compiled" if content["kernels_compiled"] else "NOT compiled"
    weights = readable_bytes(content["weight_bytes_per_token"])
    bandwidth = readable_bytes(round(content["memory_bandwidth"]))
    rows = {
        "model": f"{content['model']} ({content['family']})",
        "reading": f"{content['read_tokens_per_second']:.1f} tokens/s ({content['prompt_tokens']}{behind})",
        "writing": f"{content['write_tokens_per_second']:.1f} tokens/s ({content['new_tokens']}{behind})",
        "start": f"{content['first_token_seconds']:.2f} s from the start of the program to the first token",
        "weights": (
            f"{weights} per token, read at {content['share_of_bandwidth']:.0%} "
            f"of the {bandwidth}/s that this machine can"
        ),
        "memory": f"{readable_bytes(content['peak_memory_bytes'])} at most",
        "with": (
            f"{content['backend']}, {content['threads']} threads, {content['cpu_level']} kernels ({compiled})"
        ),
        "kernels": ", ".join(content["kernels"]) or "none",
    }
    for label, value in rows.items():
        print(f"{label + ':':<9}{value}")
