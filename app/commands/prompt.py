"""A raw prompt of the commands `complete` and `logits`: where it comes from, and its ids."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from app.errors import FolderError
from engine.tokenizers import Tokenizer


def add_prompt(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "-p", "--prompt", metavar="PROMPT", help="names of control tokens in it mean those tokens"
    )
    source.add_argument(
        "-f",
        "--prompt-file",
        type=Path,
        metavar="FILE",
        help="read the prompt from a file; - is the standard input",
    )


def prompt_text(options: argparse.Namespace) -> str:
    """Raises `FolderError` where the file cannot be read."""
    if options.prompt is not None:
        return str(options.prompt)
    if str(options.prompt_file) == "-":
        return sys.stdin.read()
    try:
        return str(options.prompt_file.read_bytes().decode("utf-8", "replace"))
    except OSError as error:
        raise FolderError(
            f"The prompt in {options.prompt_file} cannot be read: {error.strerror}.",
            "Check its name, folder and permissions.",
        ) from error


def prompt_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """The ids of the text, its control tokens honoured, with one BOS in front where the file says so.

    An EOS is never added, even where the file asks for it: the text is to be continued.
    """
    return tokenizer.with_bos(tokenizer.encode(text, parse_special=True))
