"""Makes a model file (.gguf) of a checkpoint: a folder with config.json and .safetensors files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

from app.commands.common import add_json, print_json
from app.errors import FolderError
from app.terminal import ProgressLine, one_line, tell
from engine.conversion import Conversion, NumberType, convert_checkpoint
from engine.memory import readable_bytes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the checkpoint")
    parser.add_argument("target", type=Path, metavar="OUT.gguf", help="the model file to write")
    parser.add_argument(
        "--type",
        choices=get_args(NumberType),
        default="auto",
        help="numbers of the matrices; auto: as in the checkpoint (default %(default)s)",
    )
    parser.add_argument(
        "--no-vocabulary",
        dest="vocabulary",
        action="store_false",
        help="leave the tokenizer out, for programs that give token ids themselves",
    )
    parser.add_argument("--replace", action="store_true", help="replace a file that is there")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    target: Path = options.target
    if target.is_dir():
        raise FolderError(f"{target} is a folder.", "Name the file to write, ending in .gguf.")
    if target.exists() and not options.replace:
        raise FolderError(f"{target} is already there.", "Choose another name, or add --replace.")
    with ProgressLine() as line:
        conversion = convert_checkpoint(
            options.folder,
            target,
            options.type,
            vocabulary=options.vocabulary,
            on_progress=lambda share: line.show(f"writing {target.name}: {share:.0%}"),
        )
    for notice in conversion.notices:
        tell(f"note: {notice}")
    if options.json:
        print_json(as_json(conversion))
    else:
        print_conversion(conversion)
    return 0


def print_conversion(conversion: Conversion) -> None:
    types = ", ".join(f"{name} {readable_bytes(size)}" for name, size in conversion.types.items())
    rows = {
        "file": f"{conversion.path} ({readable_bytes(conversion.file_bytes)})",
        "name": conversion.name,
        "family": conversion.architecture,
        "parameters": f"{conversion.n_parameters:,} in {conversion.n_tensors} tensors",
        "types": types,
        "vocabulary": f"{conversion.n_tokens:,} tokens" if conversion.n_tokens else "none",
    }
    for label, value in rows.items():
        print(f"{label + ':':<17}{one_line(value)}")


def as_json(conversion: Conversion) -> dict[str, object]:
    """The keys of `--json`, as docs/commands.md documents them."""
    return {
        "file": str(conversion.path),
        "file_bytes": conversion.file_bytes,
        "name": conversion.name,
        "family": conversion.architecture,
        "parameters": conversion.n_parameters,
        "tensors": conversion.n_tensors,
        "types": dict(conversion.types),
        "tokens": conversion.n_tokens,
        "notices": list(conversion.notices),
    }
