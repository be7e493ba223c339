"""What Markdown means here: a small tree of frozen values, with no HTML anywhere.

The window builds its document from these values alone, so nothing a model writes can become an
image, a style or a script: there is no value that could carry one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Alignment = Literal["left", "center", "right"]


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of text in one style.  link: the target (http, https or mailto), or ""."""

    text: str
    bold: bool = False
    italic: bool = False
    strike: bool = False
    code: bool = False
    link: str = ""


Runs = tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    runs: Runs


@dataclass(frozen=True, slots=True)
class Heading:
    """level: 1 to 6."""

    level: int
    runs: Runs


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """code: exactly what stands between the fences, without the last line break.

    closed is False while the closing fence has not been seen.
    """

    code: str
    language: str
    closed: bool = True


@dataclass(frozen=True, slots=True)
class ListBlock:
    """start: number of the first item of an ordered list, None for a bullet list."""

    start: int | None
    items: tuple[tuple[Block, ...], ...]
    tight: bool


@dataclass(frozen=True, slots=True)
class Quote:
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """rows[0] is the header; every row has as many cells as there are alignments."""

    rows: tuple[tuple[Runs, ...], ...]
    alignments: tuple[Alignment, ...]


@dataclass(frozen=True, slots=True)
class Divider:
    pass


@dataclass(frozen=True, slots=True)
class PlainText:
    """Source shown as written: too long or too deep to be laid out as Markdown."""

    text: str


Block = Paragraph | Heading | CodeBlock | ListBlock | Quote | Table | Divider | PlainText


@dataclass(frozen=True, slots=True)
class TopLevelBlock:
    """A block with the source lines it came from: first_line up to, not including, end_line."""

    first_line: int
    end_line: int
    block: Block


def plain_text(runs: Runs) -> str:
    """The text of the runs without styles."""
    return "".join(run.text for run in runs)
