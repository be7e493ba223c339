"""Thoughts told from answers: the marks of a template, and replies split however they are cut into pieces."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.chat_template import ChatTemplate
from engine.reasoning import HARMONY, ReasoningFormat, find_reasoning
from engine.templates.families import FAMILIES

THINK = find_reasoning("{% if '</think>' in message.content %}")
assert THINK is not None


@pytest.mark.parametrize(
    ("source", "opening"),
    [
        ("{{ content.split('</think>')[-1] }}", "<think>"),
        ("{{ '<think>\\n' }}{{ x }}{{ '</think>' }}", "<think>"),
        ("'</seed:think>'", "<seed:think>"),
        ("[THINK]x[/THINK]", "[THINK]"),
        ("<|START_THINKING|><|END_THINKING|>", "<|START_THINKING|>"),
        ("'<|channel>thought\\n<channel|>'", "<|channel>thought"),
    ],
)
def test_formats_are_found_in_templates(source: str, opening: str) -> None:
    found = find_reasoning(source)
    assert found is not None and found.opening == opening
    assert ChatTemplate("{# " + source + " #}{{ messages[0].content }}").reasoning == found


def test_templates_that_do_not_speak_of_thoughts() -> None:
    sources = {family.name: family.source for family in FAMILIES}
    assert find_reasoning(sources.pop("harmony")) is HARMONY
    assert find_reasoning(sources.pop("exaone4")) == THINK
    assert all(find_reasoning(source) is None for source in sources.values())


def split(reasoning: ReasoningFormat, pieces: list[str], is_open: bool = False) -> tuple[str, str]:
    """(answer, thoughts)"""
    splitter = reasoning.splitter(is_open)
    parts = [*map(splitter.push, pieces), splitter.finish()]
    return "".join(part.answer for part in parts), "".join(part.thoughts for part in parts)


TAGS = [
    ("<think>\nhm\n</think>\n\nHello", False, ("Hello", "\nhm\n")),
    (" \n<think>hm</think>Hello", False, ("Hello", "hm")),
    ("<think></think>Hello", False, ("Hello", "")),
    ("Hello", False, ("Hello", "")),
    ("  Hello", False, ("  Hello", "")),
    ("Say <think>x</think> aloud", False, ("Say <think>x</think> aloud", "")),
    ("<think>a</think>b<think>c</think>", False, ("b<think>c</think>", "a")),
    ("<think>never ends", False, ("", "never ends")),
    ("<thinner> soup", False, ("<thinner> soup", "")),
    ("<thin", False, ("<thin", "")),
    ("", False, ("", "")),
    ("hm</think>\nHello", True, ("Hello", "hm")),
    ("<think>hm</think>\nHello", True, ("Hello", "hm")),
    ("never ends", True, ("", "never ends")),
    ("a < b </thi", True, ("", "a < b </thi")),
]
CHANNELS = [
    (
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hello",
        ("Hello", "hm"),
    ),
    (
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary to=f <|constrain|>json"
        "<|message|>b<|end|><|start|>assistant<|channel|>final<|message|>c<|end|>",
        ("c", "ab"),
    ),
    ("<|message|>Hello", ("Hello", "")),
    ("<|start|>assistant<|message|>Hello<|end|>", ("Hello", "")),
    ("Hello", ("Hello", "")),
    ("<|channel|>analysis<|message|>never ends", ("", "never ends")),
    ("<|channel|>analysis", ("", "")),
    ("<|channel|>final<|message|>a <|b", ("a <|b", "")),
    ("<|channel|>analysis<|message|>a<|channel|>final<|message|>b", ("b", "a")),
    ("", ("", "")),
]


@pytest.mark.parametrize(("text", "is_open", "expected"), TAGS)
def test_tags(text: str, is_open: bool, expected: tuple[str, str]) -> None:
    assert split(THINK, [text], is_open) == expected
    assert split(THINK, list(text), is_open) == expected


@pytest.mark.parametrize(("text", "expected"), CHANNELS)
def test_channels(text: str, expected: tuple[str, str]) -> None:
    assert split(HARMONY, [text]) == expected
    assert split(HARMONY, list(text)) == expected


def cut(text: str, places: list[int]) -> list[str]:
    borders = [0, *sorted({place % (len(text) + 1) for place in places}), len(text)]
    return [text[start:stop] for start, stop in itertools.pairwise(borders)]


PARTS = [
    "<think>",
    "</think>",
    "<",
    "<|channel|>",
    "final",
    "analysis",
    "<|message|>",
    "<|end|>",
    "<|start|>",
    "a\n",
]


@given(st.lists(st.sampled_from(PARTS), max_size=12), st.lists(st.integers(0, 99), max_size=9), st.booleans())
def test_the_outcome_does_not_depend_on_the_pieces(
    parts: list[str], places: list[int], is_open: bool
) -> None:
    text = "".join(parts)
    for reasoning in (THINK, HARMONY):
        assert split(reasoning, cut(text, places), is_open) == split(reasoning, [text], is_open)


@given(st.lists(st.sampled_from(PARTS), max_size=12), st.booleans())
def test_nothing_but_marks_and_white_space_is_lost(parts: list[str], is_open: bool) -> None:
    text = "".join(parts)
    answer, thoughts = split(THINK, [text], is_open)
    kept = thoughts + answer
    lost = text
    for mark in ("<think>", "</think>"):
        kept, lost = kept.replace(mark, ""), lost.replace(mark, "")
    assert "".join(kept.split()) == "".join(lost.split())


def test_thoughts_are_shown_as_they_come() -> None:
    splitter = THINK.splitter(is_open=False)
    assert splitter.push("<think>first ").thoughts == "first "
    assert splitter.push("second </th").thoughts == "second "
    assert splitter.push("ird").thoughts == "</third"


@pytest.mark.parametrize(
    ("ending", "is_open"),
    [
        ("{{ '<think>\n' }}", True),
        ("{{ '<think>' }}", True),
        ("{{ '<think>\n\n</think>\n\n' }}", False),
        ("", False),
        ("{{ messages[-1].content }}", False),
    ],
)
def test_a_prompt_that_ends_within_thoughts(ending: str, is_open: bool) -> None:
    source = "{% for m in messages %}{{ m.content.split('</think>')[-1] }};{% endfor %}" + ending
    template = ChatTemplate(source, markup_texts=["<think>", "</think>"])
    segments = template.render([{"role": "user", "content": "what is <think>"}])
    assert template.ends_thinking(segments) == is_open
