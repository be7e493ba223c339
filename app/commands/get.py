"""Fetches a known model, such as the starter, into the model folder."""

from __future__ import annotations

import argparse

from app import paths
from app.commands.common import add_json, print_json
from app.library import download
from app.library.known_models import known_model, known_models
from app.terminal import ProgressLine, tell
from engine.memory import readable_bytes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = ", ".join(model.name for model in known_models())
    parser.add_argument("name", metavar="NAME", help=f"one of: {names}")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    model = known_model(options.name)
    told = 0
    with ProgressLine() as line:

        def show(progress: download.DownloadProgress) -> None:
            nonlocal told
            for failure in progress.failures[told:]:
                line.clear()
                tell(f"note: {failure}")
                told += 1
            line.show(_in_words(model.title, progress))

        path = download.fetch(model, paths.models_folder(), show)
    if options.json:
        print_json({"file": str(path), "bytes": model.size, "sha256": model.sha256})
    else:
        print(path)
    return 0


def _in_words(title: str, progress: download.DownloadProgress) -> str:
    share = progress.done / progress.total
    left = "" if progress.seconds_left is None else f", {progress.seconds_left:.0f} s left"
    amount = f"{readable_bytes(progress.done)} of {readable_bytes(progress.total)}"
    return f"{title} from {progress.source}: {share:.0%} ({amount}{left})"
