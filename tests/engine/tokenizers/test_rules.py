"""The table of rules: words against another library's, names, patterns found again."""

from __future__ import annotations

import json
from itertools import accumulate, pairwise

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from engine.tokenizers.pretokenize import DigitGroups, PreTokenizer, Rewritten
from engine.tokenizers.rules import PRE_TOKENIZERS, RULES, find_rule
from tests.helpers.vocabularies import FOLDER, published_texts

TEXTS = published_texts("texts") + published_texts("more_texts")
WORDS: dict[str, list[list[int]]] = json.loads((FOLDER / "words.json").read_text(encoding="utf-8"))
"""By the library `tokenizers`: for each rule and text the lengths of the words."""


def cut(text: str, lengths: list[int]) -> list[str]:
    return [text[start:end] for start, end in pairwise([0, *accumulate(lengths)])]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_words_are_those_of_another_library(rule: PreTokenizer) -> None:
    assert [rule.split(text) for text in TEXTS] == [
        cut(text, lengths) for text, lengths in zip(TEXTS, WORDS[rule.name], strict=True)
    ]


@pytest.mark.parametrize(
    ("rule", "text", "words"),
    [
        ("gpt-4o", "camelCase HTTPServer", ["camel", "Case", " HTTPServer"]),
        ("tekken", "it's 42", ["it", "'s", " ", "4", "2"]),
        ("gpt-4o", "it's 4200", ["it's", " ", "420", "0"]),
        ("kimi-k2", "日本語abc", ["日本語", "abc"]),
        ("deepseek-v3", "#include 12345", ["#include", " ", "123", "45"]),
        ("superbpe", "12345 and 1234567", ["12", "345", " and ", "1", "234", "567"]),
        ("tiny_aya", "1234567 x1234", ["1", "234", "567", " x", "1", "234"]),
        ("bloom", "one, two", ["one", ",", " two"]),
        ("viking", " 42", [" ", "4", "2"]),
        ("qwen35", "e\u0301a", ["e\u0301a"]),
        ("qwen2", "e\u0301a", ["e", "\u0301a"]),
        ("exaone-moe", "one two 3", ["one two", " ", "3"]),
        ("gemma4", "a  b\n\nc", ["a  b", "\n\n", "c"]),
        ("jais-2", "a" + " " * 7 + "b", ["a", "    ", "  ", " b"]),
    ],
)
def test_words_worked_out_by_hand(rule: str, text: str, words: list[str]) -> None:
    assert PRE_TOKENIZERS[rule].split(text) == words


def test_every_name_means_one_rule() -> None:
    names = [name for rule in RULES for name in (rule.name, *rule.aliases)]
    assert len(names) == len(set(names)) == len(PRE_TOKENIZERS)
    for rule in RULES:
        assert all(PRE_TOKENIZERS[name] is rule for name in (rule.name, *rule.aliases))
        assert rule.checked


@pytest.mark.parametrize(
    "name",
    (
        *(
            "default",
            "gpt-2",
            "llama-bpe",
            "smollm",
            "qwen2",
            "deepseek-llm",
            "deepseek-coder",
            "deepseek-v3",
        ),
        *(
            "falcon",
            "mpt",
            "starcoder",
            "refact",
            "command-r",
            "olmo",
            "dbrx",
            "stablelm2",
            "phi-2",
            "gpt-4o",
        ),
        *(
            "tekken",
            "smaug",
            "chatglm-bpe",
            "viking",
            "jais",
            "codeshell",
            "bloom",
            "poro",
            "exaone",
            "minerva",
        ),
        *("superbpe", "llama4", "gemma4", "qwen35", "hunyuan", "kimi-k2", "glm4"),
    ),
)
def test_rules_that_must_be_known(name: str) -> None:
    assert name in PRE_TOKENIZERS


def test_only_some_families_take_whole_words_and_begin_with_bos() -> None:
    whole = {rule.name for rule in RULES if rule.ignore_merges}
    assert whole == {"llama-bpe", "glm4", "tekken", "granite-embed-multi-97m", "minicpm5", "youtu"}
    assert {rule.name for rule in RULES if rule.add_bos} == {"llama-bpe", "tekken", "gemma4"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_is_found_by_its_patterns(rule: PreTokenizer) -> None:
    found = find_rule(rule.patterns, ignore_merges=rule.ignore_merges)
    assert found is not None
    assert PRE_TOKENIZERS[found].patterns == rule.patterns
    assert PRE_TOKENIZERS[found].ignore_merges == rule.ignore_merges


def test_spellings_of_patterns_that_mean_the_same() -> None:
    listed = (
        r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    assert find_rule([listed], ignore_merges=True) == "llama-bpe"
    assert find_rule([listed]) == "dbrx"
    assert find_rule([listed.replace("{1,3}", "")]) == "qwen2"
    assert find_rule([listed.replace(r"\r\n", "\r\n")]) == "dbrx"
    without_end = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
    assert find_rule([without_end]) == "gpt-2"
    assert find_rule([r"\p{N}", without_end]) == "smollm"
    assert find_rule([without_end, r"\p{N}"]) is None
    assert find_rule([r"\w+"]) is None
    assert find_rule([]) is None


@given(st.text(alphabet=" x\u00a0\t", max_size=30))
def test_rewritten_patterns_split_in_the_same_places(text: str) -> None:
    steps = [step for rule in RULES for step in rule.steps if isinstance(step, Rewritten)]
    assert steps
    for step in steps:
        assert PreTokenizer("", (step,)).split(text) == PreTokenizer("", (step.published,)).split(text)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_long_runs_before_every_kind_of_character(rule: PreTokenizer) -> None:
    """A pattern that looks ahead to the end of a run from each of its characters would need minutes."""
    for run in ("x", "1", " ", "\t", ".", "日", "\n", "\u0301"):
        for end in ("x", "X", "1", "\n", ".", "日"):
            text = run * 40_000 + end
            assert "".join(rule.split(text)) == text


@given(st.text(alphabet="12x ²_", max_size=40))
def test_counted_digit_groups_are_those_of_the_pattern(text: str) -> None:
    """Against the published pattern itself, whose time grows with the square of a run's length."""
    for name in ("superbpe", "tiny_aya"):
        counted = next(step for step in PRE_TOKENIZERS[name].steps if isinstance(step, DigitGroups))
        # What \b means to the publishers' engine: numbers of every kind are part of a word.
        published = counted.published.replace(r"\b", r"(?![\p{L}\p{M}\p{N}\p{Pc}])")
        ends = {end for match in regex.finditer(published, text) for end in match.span()}
        cuts = sorted(ends | {0, len(text)})
        assert counted.splitter()(text) == [text[start:end] for start, end in pairwise(cuts)]
