"""RESULTS.md: each script writes one section of it and leaves the others as they are.

A section begins with ``<!-- name -->`` and ends where the next one begins.
"""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).with_name("RESULTS.md")
BEGINNING = """# Results

Written by the scripts of this folder (see README.md), each its own section, from their last runs.
"""
SECTIONS = ("speed", "memory bandwidth", "accuracy", "batches", "constrained")
_MARK = re.compile(r"^<!-- ([a-z ]+) -->\n", re.MULTILINE)


def write_section(name: str, text: str, page: Path = PAGE) -> None:
    """Replaces a section, or adds it in its place.  text: Markdown, beginning with its heading.

    Raises ValueError for a name that is none of SECTIONS, OSError where the page cannot be written.
    """
    if name not in SECTIONS:
        raise ValueError(f"no section is called {name!r}")
    sections = _read_sections(page) | {name: text.strip() + "\n"}
    parts = [f"<!-- {known} -->\n{sections[known]}" for known in SECTIONS if known in sections]
    page.write_text("\n".join([BEGINNING, *parts]), encoding="utf-8")


def _read_sections(page: Path) -> dict[str, str]:
    if not page.exists():
        return {}
    _, *parts = _MARK.split(page.read_text(encoding="utf-8"))
    return {name: text.strip() + "\n" for name, text in zip(parts[::2], parts[1::2], strict=True)}


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table, numbers to the right: all columns but the first."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
