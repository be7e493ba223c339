"""Text fed in any pieces gives the blocks of the whole text."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.text import streamed_markdown
from app.text.blocks import CodeBlock, ListBlock, TopLevelBlock
from app.text.markdown import parse_blocks
from app.text.streamed_markdown import StreamedMarkdown, parse_markdown

FRAGMENTS = [
    "word", " ", "\n", "\n\n", "# ", "#", "- ", "* ", "1. ", "2) ", "> ", "```", "```py", "~~~", "````",
    "    ",
    "\t", "| a | b |\n", "|---|---|\n", "| 1 | 2 |\n", "---\n", "===\n", "**", "*", "_", "~~", "`",
    "[x](http://a.b)",
    "http://c.d/e", "<b>", "&lt;", "\r\n", "\r", "![i](file:///x)", "  \n", "\\", "[a]: http://e.f\n",
    "x" * 50,
]  # fmt: skip


def feed_in_pieces(source: str, cuts: random.Random) -> StreamedMarkdown:
    streamed = StreamedMarkdown()
    position = 0
    while position < len(source):
        step = cuts.randint(1, 9)
        streamed.feed(source[position : position + step])
        position += step
        if cuts.random() < 0.5:
            before = list(streamed.blocks)
            changed = streamed.refresh()
            if changed is None:
                assert streamed.blocks == before
            else:
                assert streamed.blocks[:changed] == before[:changed]
    streamed.finish()
    return streamed


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=40), st.randoms(use_true_random=False))
def test_equals_the_parse_of_the_whole_text(fragments: list[str], cuts: random.Random) -> None:
    source = "".join(fragments)
    assert feed_in_pieces(source, cuts).blocks == parse_blocks(source) == parse_markdown(source)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=60), st.randoms(use_true_random=False))
def test_equals_it_where_long_blocks_are_passed_over_and_cut(
    fragments: list[str], cuts: random.Random
) -> None:
    source = "".join(fragments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamed_markdown, "ALWAYS_PARSED", 20)
        patch.setattr(streamed_markdown, "MAX_BLOCK_CHARACTERS", 60)
        patch.setattr(streamed_markdown, "MAX_LIST_CHARACTERS", 40)
        assert feed_in_pieces(source, cuts).blocks == parse_markdown(source)


def test_a_long_list_goes_on_with_its_numbers_after_a_cut() -> None:
    source = "".join(f"{number}. item {number}\n     - inner\n" for number in range(1, 601))
    lists = [found.block for found in parse_markdown(source)]
    assert len(lists) > 2
    numbers = []
    for block in lists:
        assert isinstance(block, ListBlock)
        assert block.start is not None
        assert all(len(item) == 2 for item in block.items)  # its text and the inner list
        numbers += range(block.start, block.start + len(block.items))
    assert numbers == list(range(1, 601))


def test_open_code_is_shown_while_it_arrives_and_its_closing_fence_never() -> None:
    streamed = StreamedMarkdown()
    shown = []
    for piece in ("```py\n", "a = 1\n", "b", " = 2\n``", "`", "\nafter"):
        streamed.feed(piece)
        streamed.refresh()
        shown.append(streamed.blocks[0].block)
    codes = [block.code for block in shown if isinstance(block, CodeBlock)]
    assert codes == ["", "a = 1", "a = 1\nb", "a = 1\nb = 2", "a = 1\nb = 2", "a = 1\nb = 2"]
    assert [block.closed for block in shown if isinstance(block, CodeBlock)] == [False] * 5 + [True]


@pytest.mark.parametrize(
    "unit",
    ["word and *word* ", "x" * 40, "- item\n", "> quote\n", "| a | b |\n", "line of text\n"],
    ids=["one line", "no spaces", "list", "quote", "rows", "paragraph"],
)
def test_twice_the_text_costs_at_most_two_and_a_half_times_the_parsing(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = 0

    def counting(source: str) -> list[TopLevelBlock]:
        nonlocal parsed
        parsed += len(source)
        return parse_blocks(source)

    monkeypatch.setattr(streamed_markdown, "parse_blocks", counting)
    costs = []
    for size in (30_000, 60_000):
        parsed = 0
        streamed = StreamedMarkdown()
        for count in range(size // len(unit)):
            streamed.feed(unit)
            if count % 40 == 0:  # some tokens arrive between two repaints
                streamed.refresh()
        streamed.finish()
        costs.append(parsed)
    assert costs[1] < 2.5 * costs[0]


def test_open_code_is_parsed_a_handful_of_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(
        streamed_markdown, "parse_blocks", lambda source: calls.append(source) or parse_blocks(source)
    )
    streamed = StreamedMarkdown()
    for piece in ["```py\n", *["x = 1\n"] * 5_000, "```\n"]:
        streamed.feed(piece)
        streamed.refresh()
    streamed.finish()
    assert len(calls) <= 4
