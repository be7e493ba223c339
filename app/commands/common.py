"""What several commands share: the model argument, settings from options, loading with progress, JSON."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from app.library.known_models import model_path
from app.terminal import ProgressLine, tell
from engine.model import LoadedModel, load_model
from engine.requests import KVKind, LoadSettings, SamplingSettings

DEFAULTS = SamplingSettings()


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="a .gguf model file, or a name such as starter"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object (docs/commands.md)")


def add_loading(parser: argparse.ArgumentParser) -> None:
    """Options of how a model is loaded."""
    parser.add_argument("-t", "--threads", type=int, metavar="N", help="compute threads (default: the cores)")
    parser.add_argument(
        "-c", "--context", type=int, metavar="N", help="tokens of context (default: as trained, at most 4096)"
    )
    parser.add_argument(
        "--kv",
        choices=get_args(KVKind),
        default="f16",
        help="numbers of the KV cache: single or half precision, or 8 bits (default %(default)s)",
    )
    parser.add_argument(
        "--no-repack",
        dest="repack",
        action="store_false",
        help="compute straight from the file: less memory, but slower",
    )
    parser.add_argument(
        "--pin", dest="pin_threads", action="store_true", help="keep each compute thread on a core of its own"
    )
    parser.add_argument("--backend", default="cpu", metavar="NAME", help="compute backend (default: cpu)")


def loading_arguments(options: argparse.Namespace) -> list[str]:
    """The options of `add_loading` as another process of this program wants them."""
    arguments = ["--backend", options.backend, "--kv", options.kv]
    for name, value in (("--threads", options.threads), ("--context", options.context)):
        if value is not None:
            arguments += [name, str(value)]
    if not options.repack:
        arguments.append("--no-repack")
    if options.pin_threads:
        arguments.append("--pin")
    return arguments


def add_sampling(parser: argparse.ArgumentParser) -> None:
    """Options of the sampler chain, and when to stop."""
    group = parser.add_argument_group("sampling")
    add = group.add_argument
    add("-n", "--max-tokens", type=int, metavar="N", help="longest reply in tokens")
    add(
        "--temp",
        type=float,
        default=DEFAULTS.temperature,
        metavar="T",
        help="0: always the likeliest (default %(default)s)",
    )
    add("--top-k", type=int, default=DEFAULTS.top_k, metavar="K", help="0: off (default %(default)s)")
    add("--top-p", type=float, default=DEFAULTS.top_p, metavar="P", help="1: off (default %(default)s)")
    add("--min-p", type=float, default=DEFAULTS.min_p, metavar="P", help="0: off (default %(default)s)")
    add(
        "--repeat-penalty",
        type=float,
        default=DEFAULTS.repetition_penalty,
        metavar="R",
        help="1: off (default %(default)s)",
    )
    add(
        "--repeat-window",
        type=int,
        default=DEFAULTS.repetition_window,
        metavar="N",
        help="tokens it looks back (default %(default)s)",
    )
    add("--seed", type=int, metavar="S", help="the same seed gives the same text")
    add("--stop", action="append", default=[], metavar="TEXT", help="end at this text; may be given again")


def load_settings(options: argparse.Namespace) -> LoadSettings:
    """Raises `SettingsError`."""
    return LoadSettings(
        options.context,
        options.threads,
        options.backend,
        kv=options.kv,
        repack=options.repack,
        pin_threads=options.pin_threads,
    )


def sampling_settings(options: argparse.Namespace) -> SamplingSettings:
    """Raises `SettingsError`."""
    return SamplingSettings(
        temperature=options.temp,
        top_k=options.top_k,
        top_p=options.top_p,
        min_p=options.min_p,
        repetition_penalty=options.repeat_penalty,
        repetition_window=options.repeat_window,
        seed=options.seed,
    )


@contextlib.contextmanager
def loaded_model(options: argparse.Namespace) -> Iterator[LoadedModel]:
    """The model of the options, loaded with a progress line and closed afterwards.

    Raises what `load_model` raises, `OutOfMemoryError` before anything is allocated.
    """
    path = model_path(options.file)
    with ProgressLine() as line:
        model = load_model(
            path, load_settings(options), lambda share: line.show(f"loading {path.name}: {share:.0%}")
        )
    try:
        for notice in model.notices:
            tell(f"note: {notice}")
        yield model
    finally:
        model.close()


def print_json(content: dict[str, Any]) -> None:
    print(json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False))
