"""What a reply has to look like: a grammar or a JSON Schema, from a file or from the command line."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.errors import FolderError
from app.terminal import tell
from engine.grammar.expressions import Grammar
from engine.grammar.gbnf import read_gbnf
from engine.grammar.json_schema import read_json_schema
from engine.requests import Finished


def add_output_rules(parser: argparse.ArgumentParser) -> None:
    rules = parser.add_mutually_exclusive_group()
    rules.add_argument(
        "--grammar", type=Path, metavar="FILE", help="write only what this grammar (GBNF) describes"
    )
    rules.add_argument(
        "--json-schema",
        metavar="FILE|{...}",
        help="write only JSON that fits this schema, in a file or as it is; {} is any JSON",
    )


def grammar_of(options: argparse.Namespace) -> Grammar | None:
    """The grammar asked for.  Raises `GrammarError`, and `FolderError` where a file cannot be read."""
    if options.grammar is not None:
        return read_gbnf(_text_of(options.grammar))
    if options.json_schema is None:
        return None
    given = options.json_schema.strip()
    if not given.startswith(("{", "true", "false")):
        given = _text_of(Path(options.json_schema))
    return read_json_schema(given)


def _text_of(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig", "replace")
    except OSError as error:
        raise FolderError(
            f"{path} cannot be read: {error.strerror}.", "Check its name, folder and permissions."
        ) from error


def tell_cut_off(finished: Finished, grammar: Grammar | None) -> None:
    """Says so where a reply ended before it was what the grammar asks for."""
    if grammar is not None and finished.reason in ("length", "context"):
        tell("note: the reply ends before it is whole; --max-tokens and --context say how long it may be")
