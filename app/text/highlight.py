"""Code to coloured pieces: Pygments token types mapped to a handful of roles."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Literal

Role = Literal["plain", "keyword", "string", "number", "comment", "name", "inserted", "deleted"]

MAX_CODE_CHARACTERS = 10_000
MAX_SECONDS = 0.02
"""Longer code, or code that takes longer, goes on without colours."""

LANGUAGES = frozenset(
    """asm awk bash c c# c++ cmake console cpp cs csharp css dart diff docker dockerfile elixir f# fortran
    go golang haskell hs html ini java javascript js json julia kotlin latex lua make makefile
    matlab nix objective-c ocaml pascal perl php powershell ps1 py python python3 r rb ruby rs rust
    scala scss sh shell sql swift tex toml ts tsx typescript verilog vhdl xml yaml yml zig zsh""".split()  # noqa: SIM905 - easier to read
)
"""Words after a fence that are looked up: a model's word alone never makes Pygments search its plugins."""


def highlight(code: str, language: str) -> list[tuple[str, Role]]:
    """The code in pieces with their roles; the pieces joined are the code.  Unknown language: one piece."""
    if language.lower() not in LANGUAGES or len(code) > MAX_CODE_CHARACTERS:
        return [(code, "plain")]
    pieces: list[tuple[str, Role]] = []
    for text, role in _pieces(code, language.lower()):
        if pieces and pieces[-1][1] == role:
            pieces[-1] = (pieces[-1][0] + text, role)
        else:
            pieces.append((text, role))
    return pieces


def _pieces(code: str, language: str) -> Iterator[tuple[str, Role]]:
    from pygments.lexers import get_lexer_by_name  # takes a tenth of a second to import
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        yield code, "plain"
        return
    deadline = time.monotonic() + MAX_SECONDS
    position = 0
    # the unprocessed form neither strips nor adds line breaks
    for start, kind, text in lexer.get_tokens_unprocessed(code):
        if start != position or time.monotonic() > deadline:
            break
        position += len(text)
        yield text, _role(kind)
    if position < len(code):
        yield code[position:], "plain"


def _role(kind: object) -> Role:
    from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String

    named: tuple[tuple[object, Role], ...] = (
        (Comment, "comment"),
        (String, "string"),
        (Number, "number"),
        (Keyword, "keyword"),
        (Operator.Word, "keyword"),
        (Name.Tag, "keyword"),
        (Name.Function, "name"),
        (Name.Class, "name"),
        (Name.Builtin, "name"),
        (Name.Decorator, "name"),
        (Name.Attribute, "name"),
        (Generic.Inserted, "inserted"),
        (Generic.Deleted, "deleted"),
    )
    return next((role for parent, role in named if kind in parent), "plain")  # type: ignore[operator]
