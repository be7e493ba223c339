"""Sections of RESULTS.md: written one by one, in a fixed order, each leaving the others alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.results_page import BEGINNING, table, write_section


def test_sections_come_in_their_order_and_are_replaced_alone(tmp_path: Path) -> None:
    page = tmp_path / "RESULTS.md"
    write_section("accuracy", "## Accuracy\n\nfirst", page)
    write_section("speed", "## Speed\n\nfast", page)
    before = page.read_text(encoding="utf-8")
    assert before.startswith(BEGINNING)
    assert before.index("## Speed") < before.index("## Accuracy")
    write_section("accuracy", "\n## Accuracy\n\nsecond \N{SNOWMAN}\n\n", page)
    after = page.read_text(encoding="utf-8")
    assert after == before.replace("first", "second \N{SNOWMAN}")


def test_writing_the_same_again_changes_nothing(tmp_path: Path) -> None:
    page = tmp_path / "RESULTS.md"
    for name in ("speed", "memory bandwidth"):
        write_section(name, f"## {name}\n\ntext", page)
    before = page.read_bytes()
    write_section("speed", "## speed\n\ntext", page)
    assert page.read_bytes() == before


def test_an_unknown_section_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="heat"):
        write_section("heat", "## Heat", tmp_path / "RESULTS.md")
    assert list(tmp_path.iterdir()) == []


def test_table() -> None:
    assert table(["a", "b"], [["x", "1"], ["y", "2"]]) == "| a | b |\n| --- | ---: |\n| x | 1 |\n| y | 2 |"
