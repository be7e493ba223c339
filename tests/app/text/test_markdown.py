"""What becomes of model text: the right blocks, and never anything that could act."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.text.blocks import (
    Block,
    CodeBlock,
    Divider,
    Heading,
    ListBlock,
    Paragraph,
    PlainText,
    Quote,
    Run,
    Table,
    plain_text,
)
from app.text.markdown import MAX_TABLE_CELLS, is_allowed_link, parse_blocks
from app.text.streamed_markdown import parse_markdown


def blocks(source: str) -> list[Block]:
    return [found.block for found in parse_markdown(source)]


def paragraph(text: str) -> Paragraph:
    return Paragraph((Run(text),))


def runs_in(value: Any) -> Iterator[Run]:
    """Every run, wherever it stands."""
    if isinstance(value, Run):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from runs_in(item)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from runs_in(getattr(value, field.name))


def text_in(value: Any) -> str:
    if isinstance(value, CodeBlock):
        return value.code
    if isinstance(value, PlainText):
        return value.text
    if isinstance(value, Run):
        return value.text
    if isinstance(value, tuple | list):
        return "".join(text_in(item) for item in value)
    if dataclasses.is_dataclass(value):
        return "".join(text_in(getattr(value, field.name)) for field in dataclasses.fields(value))
    return ""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("# One\n### Three", [Heading(1, (Run("One"),)), Heading(3, (Run("Three"),))]),
        ("a\nb", [Paragraph((Run("a"), Run("\n"), Run("b")))]),
        ("**b** *i* ~~s~~ `c`",
         [Paragraph((Run("b", bold=True), Run(" "), Run("i", italic=True), Run(" "), Run("s", strike=True),
                     Run(" "), Run("c", code=True)))]),
        ("***both***", [Paragraph((Run("both", bold=True, italic=True),))]),
        ("- a\n- b", [ListBlock(None, ((paragraph("a"),), (paragraph("b"),)), tight=True)]),
        ("- a\n\n- b", [ListBlock(None, ((paragraph("a"),), (paragraph("b"),)), tight=False)]),
        ("3. a\n4. b", [ListBlock(3, ((paragraph("a"),), (paragraph("b"),)), tight=True)]),
        ("0) a", [ListBlock(0, ((paragraph("a"),),), tight=True)]),
        ("> a\n> > b", [Quote((paragraph("a"), Quote((paragraph("b"),))))]),
        ("---", [Divider()]),
        ("```py\nx\n```", [CodeBlock("x", "py")]),
        ("```py title=x\nx", [CodeBlock("x", "py", closed=False)]),
        ("    x\n    y", [CodeBlock("x\ny", "")]),
        ("", []),
        ("\n \n", []),
    ],
)  # fmt: skip
def test_blocks(source: str, expected: list[Block]) -> None:
    assert blocks(source) == expected


def test_a_table() -> None:
    (table,) = blocks("| a | **b** | c |\n|---|:-:|--:|\n| 1 | 2 |\n| x | y | z | too many |")
    assert isinstance(table, Table)
    assert table.alignments == ("left", "center", "right")
    assert [[plain_text(cell) for cell in row] for row in table.rows] == [
        ["a", "b", "c"], ["1", "2", ""], ["x", "y", "z"],
    ]  # fmt: skip
    assert table.rows[0][1] == (Run("b", bold=True),)


def test_an_item_with_code_in_it() -> None:
    (found,) = blocks("1. Do:\n\n   ```sh\n   ls\n   ```")
    assert found == ListBlock(1, ((paragraph("Do:"), CodeBlock("ls", "sh")),), tight=False)


def test_the_lines_of_top_level_blocks() -> None:
    found = parse_markdown("# a\n\nb\nc\n\n- d\n- e\n\n```\nf\n```\n")
    assert [(item.first_line, item.end_line) for item in found] == [(0, 1), (2, 4), (5, 7), (8, 11)]


@pytest.mark.parametrize(
    "source",
    ["<b>x</b>", "<script>alert(1)</script>", "&lt;b&gt; &nbsp; &#65;", "<img src=file:///x>", "<!-- c -->",
     "<think>hm</think>", "a < b && c > d", "![alt](file:///etc/passwd)", "[ref]: file:///x", "$x_1$"],
)  # fmt: skip
def test_shown_exactly_as_written(source: str) -> None:
    assert text_in(blocks(source)) == source


@pytest.mark.parametrize(
    "target",
    ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\tscript:alert(1)", "vbscript:x",
     "file:///etc/passwd", "FILE:///x", "data:text/html,<script>", "data:image/png;base64,AAAA",
     "//server/share", "\\\\server\\share",
     "/etc/passwd", "relative.html", "#anchor", "smb://server/x", "causerie:copy/1", "action:copy/1",
     "link:00",
     "http:", "http:///x", "https://", "mailto:", "ftp://x/y", "http://[", "blob:x", "about:blank",
     "ms-word:x"],
)  # fmt: skip
def test_links_that_are_not_offered(target: str) -> None:
    assert not is_allowed_link(target)
    source = f"[text]({target}) [text](<{target}>) <{target}>"
    assert [run for run in runs_in(blocks(source)) if run.link == target] == []


@pytest.mark.parametrize(
    ("source", "link"),
    [
        ("[x](https://a.example/b?c=d&e#f)", "https://a.example/b?c=d&e#f"),
        ("<http://a.example>", "http://a.example"),
        ("see https://a.example/b.", "https://a.example/b"),
        ("www.example.com", "http://www.example.com"),
        ("[m](mailto:a@b.example)", "mailto:a@b.example"),
        ("[**x**](HTTP://a.example)", "HTTP://a.example"),
    ],
)
def test_links_that_are_offered(source: str, link: str) -> None:
    assert [run.link for run in runs_in(blocks(source)) if run.link] == [link]


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.sampled_from(list("[]()<>!:/\\#*_`~|-+ \n\tabhtpfile.javscr\"'&;%0\u202e"))))
def test_no_text_ever_yields_another_kind_of_link(source: str) -> None:
    assert all(is_allowed_link(run.link) for run in runs_in(blocks(source)) if run.link)


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_no_text_makes_it_fail(source: str) -> None:
    parse_markdown(source)


@pytest.mark.parametrize(
    "source",
    ["> " * 1_000 + "deep", "\n".join("  " * depth + "- x" for depth in range(300)), "[" * 20_000,
     "*a " * 10_000, "`" * 9_000 + "a" + "`" * 8_000, "[a](" * 8_000, "![" * 8_000, "<" * 20_000,
     "http:" * 5_000, "a@" * 9_000, "www." * 5_000, "_a" * 9_000, "x" * 300_000],
    ids=["quotes", "lists", "brackets", "stars", "ticks", "links", "images", "angles", "colons", "ats",
         "wwws", "underscores", "word"],
)  # fmt: skip
@pytest.mark.timeout(20)
def test_hostile_text_takes_no_long_time_and_is_not_lost(source: str) -> None:
    shown = text_in(blocks(source))
    assert shown.count("x") == source.count("x")
    assert "deep" not in source or "deep" in shown


def test_a_table_of_too_many_cells_is_shown_as_written() -> None:
    source = "|a|b|\n|-|-|\n" + "|1|2|\n" * (MAX_TABLE_CELLS // 2)
    assert blocks(source) == [PlainText(source.removesuffix("\n"))]


def test_one_pass_and_windows_agree_on_a_long_text() -> None:
    source = "".join(f"## Part {number}\n\nText *{number}*.\n\n```\ncode\n```\n\n" for number in range(4_000))
    assert len(source) > 100_000
    assert parse_markdown(source) == parse_blocks(source)
