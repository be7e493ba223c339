"""The token ids of a text; nothing is added.  Works on vocabulary-only files too."""

from __future__ import annotations

import argparse

from app.commands.common import add_json, add_model, print_json
from app.library.known_models import model_path
from app.terminal import json_text, tell
from engine.gguf.reader import GGUFFile
from engine.tokenizers import load_tokenizer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("text", metavar="TEXT", help="after -- where it begins with a dash")
    parser.add_argument(
        "--special", action="store_true", help="names of control tokens in TEXT mean those tokens"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    with GGUFFile.open(model_path(options.file)) as file:
        tokenizer = load_tokenizer(file.metadata)
    ids = tokenizer.encode(options.text, parse_special=options.special)
    pieces = [tokenizer.token_text(token) for token in ids]
    for warning in tokenizer.warnings:
        tell(f"note: {warning}")
    if options.json:
        print_json({"ids": ids, "pieces": pieces, "notices": tokenizer.warnings})
        return 0
    for token, piece in zip(ids, pieces, strict=True):
        print(f"{token:>8}  {json_text(piece)}")
    return 0
