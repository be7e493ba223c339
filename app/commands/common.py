"""What several commands share: the model argument, settings from options, loading with progress, JSON."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from app.library.known_models import model_path
from app.terminal import ProgressLine, json_text, tell
from engine.model import LoadedModel, load_model
from engine.requests import KVKind, LoadSettings


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
    parser.set_defaults(chat_template="")


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


def load_settings(options: argparse.Namespace) -> LoadSettings:
    """Raises `SettingsError`."""
    return LoadSettings(
        options.context,
        options.threads,
        options.backend,
        kv=options.kv,
        repack=options.repack,
        pin_threads=options.pin_threads,
        template=options.chat_template,
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
    print(json_text(content, indent=2))
